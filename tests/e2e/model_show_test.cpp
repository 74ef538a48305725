// `kvsweep model show` with the real worker behind it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/geometry.hpp"
#include "core/json.hpp"
#include "tests/support/cli_run.hpp"
#include "tests/support/temp_dir.hpp"

namespace kvsweep {
namespace {

using test::run_cli;
using ::testing::HasSubstr;
using ::testing::Not;

namespace fs = std::filesystem;

const std::string kModel = KVSWEEP_SOURCE_DIR "/models/reference";

TEST(ModelShow, TellsWhatAModelIs) {
  const auto shown = run_cli({"model", "show", kModel});
  ASSERT_EQ(shown.code, 0) << shown.out << shown.err;
  for (const char* part : {"LlamaForCausalLM", "BPE", "per token", "chat template", "ends at"}) {
    EXPECT_THAT(shown.out, HasSubstr(part));
  }
  EXPECT_THAT(shown.out, Not(HasSubstr("refused")));
  EXPECT_THAT(shown.out, Not(HasSubstr("not checked")));

  const auto machine = run_cli({"model", "show", kModel, "--json"});
  ASSERT_EQ(machine.code, 0) << machine.err;
  const Json json = Json::parse(machine.out);
  const auto geometry = read_geometry(kModel);
  ASSERT_TRUE(geometry.ok());
  EXPECT_EQ(json["geometry"], to_json(*geometry));
  EXPECT_EQ(json["kv_bytes_per_token"], geometry->elements_per_token() * 2);
  EXPECT_EQ(json["kv_bytes_at_context"],
            geometry->elements_per_token() * 2 * geometry->max_context);
  EXPECT_EQ(json["hash"], *model_hash(kModel));
  EXPECT_EQ(json["refused"], Json::array());
  EXPECT_EQ(json["unchecked"], Json());
  ASSERT_EQ(json["weights"]["files"].size(), 1u);
  EXPECT_EQ(json["weights"]["files"][0]["bytes"], fs::file_size(kModel + "/model.safetensors"));
  int64_t bytes = 0;
  for (const Json& type : json["weights"]["types"]) bytes += type["bytes"].get<int64_t>();
  EXPECT_LT(bytes, static_cast<int64_t>(fs::file_size(kModel + "/model.safetensors")));
  EXPECT_FALSE(json["eos_ids"].empty());
}

TEST(ModelShow, LeavesOutTheHash) {
  const auto shown = run_cli({"model", "show", kModel, "--no-hash", "--json"});
  ASSERT_EQ(shown.code, 0);
  EXPECT_EQ(Json::parse(shown.out)["hash"], Json());
}

class ModelShowBroken : public ::testing::Test {
 protected:
  ModelShowBroken() { fs::copy(kModel, dir_.path() / "m", fs::copy_options::recursive); }

  std::string model() const { return dir_.file("m"); }

  Json config() const { return *read_json_file(model() + "/config.json"); }

  // What is refused, one reason a line.
  std::string refused() const {
    const auto shown = run_cli({"model", "show", model(), "--json"});
    EXPECT_EQ(shown.code, 1) << shown.out << shown.err;
    const Json json = Json::parse(shown.out, nullptr, false);
    std::string reasons;
    for (const Json& reason : json.at("refused")) {
      reasons += reason.get<std::string>() + "\n";
    }
    return reasons;
  }

  test::TempDir dir_;
};

TEST_F(ModelShowBroken, UnknownFamily) {
  Json other = config();
  other["architectures"] = {"MixtralForCausalLM"};
  dir_.write("m/config.json", other.dump());
  EXPECT_THAT(refused(), HasSubstr("MixtralForCausalLM"));
  const auto shown = run_cli({"model", "show", model()});
  EXPECT_EQ(shown.code, 1);
  EXPECT_THAT(shown.out, HasSubstr("architecture   MixtralForCausalLM"));
  EXPECT_THAT(shown.out, HasSubstr("refused"));
}

TEST_F(ModelShowBroken, WhatOnlyTheWorkerKnows) {
  Json other = config();
  other["rope_scaling"] = {{"rope_type", "nonsense"}, {"factor", 2.0}};
  dir_.write("m/config.json", other.dump());
  dir_.write("m/tokenizer.json", R"({"version": "1.0", "model": {"type": "GPT"}})");
  dir_.write("m/chat_template.jinja", "{% if %}");
  const std::string reasons = refused();
  EXPECT_THAT(reasons, HasSubstr("nonsense"));
  EXPECT_THAT(reasons, HasSubstr("model.type is \"GPT\""));
  EXPECT_THAT(reasons, HasSubstr("chat template has a mistake"));
}

TEST_F(ModelShowBroken, DamagedWeights) {
  fs::resize_file(model() + "/model.safetensors", 1000);
  EXPECT_THAT(refused(), HasSubstr("model.safetensors"));
}

TEST(ModelShow, SaysWhatItCouldNotCheck) {
  const auto shown = run_cli({"model", "show", kModel, "--worker-program", "/nonexistent/worker"});
  EXPECT_EQ(shown.code, 0);
  EXPECT_THAT(shown.out, HasSubstr("not checked"));
  EXPECT_THAT(shown.out, HasSubstr("/nonexistent/worker"));
}

TEST(ModelShow, NothingThereAndWrongWords) {
  const auto absent = run_cli({"model", "show", "/nonexistent/model"});
  EXPECT_EQ(absent.code, 1);
  EXPECT_THAT(absent.out, HasSubstr("/nonexistent/model/config.json"));
  const auto wrong = run_cli({"model", "print", kModel});
  EXPECT_EQ(wrong.code, 1);
  EXPECT_THAT(wrong.err, HasSubstr("allowed is show"));
}

}  // namespace
}  // namespace kvsweep
