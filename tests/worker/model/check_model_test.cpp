// check_model refuses what load_model refuses before it reads weights, and reads none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/json.hpp"
#include "tests/support/temp_dir.hpp"
#include "worker/model/model.hpp"
#include "worker/model/weights.hpp"

namespace kvsweep::model {
namespace {

using ::testing::HasSubstr;

namespace fs = std::filesystem;

const std::string kTiny = KVSWEEP_SOURCE_DIR "/tests/worker/model/tiny/";

TEST(CheckModel, AcceptsWhatLoads) {
  for (const char* name : {"plain", "tied_linear", "untied_llama3"}) {
    const Status accepted = check_model(kTiny + name);
    EXPECT_TRUE(accepted.ok()) << accepted.error().message;
    EXPECT_TRUE(load_model(kTiny + name, {}).ok());  // checking leaves no trace
  }
}

TEST(CheckModel, RefusesWithTheWordsOfLoading) {
  const test::TempDir dir;
  fs::copy(kTiny + "plain", dir.path() / "m", fs::copy_options::recursive);
  const std::string model = dir.file("m");
  const auto expect = [&](const std::string& part) {
    const Status checked = check_model(model);
    ASSERT_FALSE(checked.ok());
    EXPECT_EQ(checked.error().message, load_model(model, {}).error().message);
    EXPECT_THAT(checked.error().message, HasSubstr(part));
  };
  Json config = *read_json_file(model + "/config.json");
  config["rope_scaling"] = {{"rope_type", "nonsense"}, {"factor", 2.0}};
  dir.write("m/config.json", config.dump());
  expect("nonsense");
  config.erase("rope_scaling");
  config["architectures"] = {"GPT2LMHeadModel"};
  dir.write("m/config.json", config.dump());
  expect("GPT2LMHeadModel");
  config["architectures"] = {"LlamaForCausalLM"};
  dir.write("m/config.json", config.dump());
  fs::resize_file(model + "/model.safetensors", 500);
  expect("model.safetensors");
  fs::remove(model + "/config.json");
  expect("config.json is missing");
}

TEST(WeightTotals, CountTensorsElementsAndBytes) {
  const auto files = WeightFiles::open(kTiny + "untied_llama3");
  ASSERT_TRUE(files.ok());
  EXPECT_EQ(files->paths().size(), 3u);
  int64_t elements = 0;
  for (const auto& [type, totals] : files->totals()) {
    EXPECT_EQ(totals.bytes, totals.elements * (type == "F32" ? 4 : 2)) << type;
    EXPECT_GT(totals.tensors, 0);
    elements += totals.elements;
  }
  EXPECT_EQ(elements, files->elements());
}

}  // namespace
}  // namespace kvsweep::model
