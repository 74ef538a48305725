// AWQ and GPTQ layers against matrices that numpy packed (make_quantized_goldens.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "core/hash.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/worker/model/support.hpp"
#include "worker/model/weights.hpp"

namespace kvsweep::model {
namespace {

using testing::HasSubstr;

Json read_cases() {
  auto json =
      read_json_file(KVSWEEP_SOURCE_DIR "/tests/worker/model/golden/quantized_weights.json");
  if (!json.ok()) throw std::runtime_error(json.error().message);
  return std::move(json).value();
}

struct Tensor {
  std::string dtype;
  std::vector<int64_t> shape;
  std::string bytes;
};
using Tensors = std::map<std::string, Tensor>;

template <typename T>
std::string bytes_of(const Json& numbers) {
  std::string out;
  for (const Json& number : numbers) {
    const auto value = static_cast<T>(number.get<int64_t>());
    out.append(reinterpret_cast<const char*>(&value), sizeof(T));
  }
  return out;
}

Tensors tensors_of(const Json& one) {
  Tensors out;
  for (const auto& [name, tensor] : one.at("tensors").items()) {
    const bool half = tensor.contains("half");
    out["x." + name] = {
        half ? "F16" : "I32", tensor.at("shape").get<std::vector<int64_t>>(),
        half ? bytes_of<uint16_t>(tensor.at("half")) : bytes_of<int32_t>(tensor.at("word"))};
  }
  return out;
}

void write_folder(const test::TempDir& dir, const Json& config, const Tensors& tensors) {
  Json header = Json::object();
  std::string data;
  for (const auto& [name, tensor] : tensors) {
    header[name] = {{"dtype", tensor.dtype},
                    {"shape", tensor.shape},
                    {"data_offsets", {data.size(), data.size() + tensor.bytes.size()}}};
    data += tensor.bytes;
  }
  const std::string text = header.dump();
  const uint64_t size = text.size();
  std::string out(reinterpret_cast<const char*>(&size), sizeof(size));
  dir.write("model.safetensors", out + text + data);
  dir.write("config.json", Json{{"quantization_config", config}}.dump());
}

std::string hash_of(const std::vector<float>& values) {
  return sha256_hex({reinterpret_cast<const char*>(values.data()), values.size() * 4});
}

std::string error_of(const Json& config, const Tensors& tensors) {
  const test::TempDir dir;
  write_folder(dir, config, tensors);
  const auto files = WeightFiles::open(dir.path().string());
  if (files.ok()) return "";
  EXPECT_EQ(files.error().code, ErrorCode::bad_input);
  EXPECT_THAT(files.error().message, HasSubstr(dir.path().string()));
  return files.error().message;
}

TEST(QuantizedWeights, EqualNumpy) {
  const Json golden = read_cases();
  const auto in = golden.at("in").get<int64_t>();
  const auto out = golden.at("out").get<int64_t>();
  ASSERT_EQ(golden.at("cases").size(), 7u);
  for (const Json& one : golden.at("cases")) {
    SCOPED_TRACE(one.at("name").get<std::string>());
    const test::TempDir dir;
    write_folder(dir, one.at("config"), tensors_of(one));
    auto files = WeightFiles::open(dir.path().string());
    ASSERT_TRUE(files.ok()) << files.error().message;
    EXPECT_TRUE(files->has("x.weight"));
    EXPECT_FALSE(files->has("x.qweight"));
    EXPECT_EQ(files->elements(), in * out);
    std::vector<float> found(static_cast<size_t>(in * out));
    const Status status = files->read("x.weight", {out, in}, found.data());
    ASSERT_TRUE(status.ok()) << status.error().message;
    for (size_t i = 0; i < one.at("first").size(); ++i) {
      EXPECT_EQ(found[i], one.at("first")[i].get<float>()) << i;
    }
    EXPECT_EQ(hash_of(found), one.at("sha256").get<std::string>());
    EXPECT_TRUE(files->check_all_used().ok());
    EXPECT_THAT(files->read("x.weight", {in, out}, found.data()).error().message,
                HasSubstr("[8, 32]"));
    EXPECT_THAT(files->stored("x.weight", out, in).error().message, HasSubstr("plain type"));
  }
}

TEST(QuantizedWeights, WithoutIndexGroupsAreInOrder) {
  const Json golden = read_cases();
  const Json& one = golden.at("cases")[2];
  Tensors tensors = tensors_of(one);
  ASSERT_EQ(tensors.erase("x.g_idx"), 1u);
  const test::TempDir dir;
  write_folder(dir, one.at("config"), tensors);
  auto files = WeightFiles::open(dir.path().string());
  ASSERT_TRUE(files.ok()) << files.error().message;
  std::vector<float> found(32 * 8);
  ASSERT_TRUE(files->read("x.weight", {8, 32}, found.data()).ok());
  EXPECT_EQ(hash_of(found), one.at("sha256").get<std::string>());
}

TEST(QuantizedWeights, ZeroBiasIsNoTensorTooMany) {
  const Json golden = read_cases();
  const Json& one = golden.at("cases")[2];
  for (const bool zero : {true, false}) {
    Tensors tensors = tensors_of(one);
    tensors["x.bias"] = {"F16", {8}, std::string(16, '\0')};
    if (!zero) tensors["x.bias"].bytes[5] = 0x3c;
    const test::TempDir dir;
    write_folder(dir, one.at("config"), tensors);
    auto files = WeightFiles::open(dir.path().string());
    ASSERT_TRUE(files.ok());
    files->ignore("x.weight");
    EXPECT_EQ(files->check_all_used().ok(), zero);
  }
}

TEST(QuantizedWeights, ConfigsAreRefusedByName) {
  const Json golden = read_cases();
  const Tensors awq = tensors_of(golden.at("cases")[0]);
  const auto expect = [&](const Json& config, const std::vector<std::string>& parts) {
    const std::string message = error_of(config, awq);
    for (const std::string& part : parts) EXPECT_THAT(message, HasSubstr(part));
  };
  expect({{"bits", 4}}, {"quantization_config.quant_method is missing"});
  expect({{"quant_method", "bitsandbytes"}}, {"quant_method is \"bitsandbytes\"", "awq", "gptq"});
  expect({{"quant_method", "awq"}}, {"quantization_config.bits is missing"});
  expect({{"quant_method", "awq"}, {"bits", 8}}, {"bits is 8", "only 4"});
  expect({{"quant_method", "awq"}, {"bits", 4}, {"group_size", 0}}, {"group_size is 0"});
  expect({{"quant_method", "awq"}, {"bits", 4}, {"version", "gemv"}}, {"version is \"gemv\""});
  expect({{"quant_method", "gptq"}, {"bits", 4}, {"checkpoint_format", "marlin"}},
         {"checkpoint_format is \"marlin\"", "gptq_v2"});
  expect({{"quant_method", "gptq"}, {"bits", 4}, {"dynamic", {{"lm_head", {{"bits", 8}}}}}},
         {"dynamic"});
}

TEST(QuantizedWeights, PartsAreCheckedByName) {
  const Json golden = read_cases();
  const Json& one = golden.at("cases")[4];
  const Json& config = one.at("config");
  const auto expect = [&](const std::function<void(Tensors&)>& change,
                          const std::vector<std::string>& parts) {
    Tensors tensors = tensors_of(one);
    change(tensors);
    const std::string message = error_of(config, tensors);
    for (const std::string& part : parts) EXPECT_THAT(message, HasSubstr(part));
  };
  for (const std::string name : {"x.scales", "x.qzeros"}) {
    expect([&](Tensors& t) { t.erase(name); }, {name + " is missing"});
    expect(
        [&](Tensors& t) {
          t[name].shape = {
              1, static_cast<int64_t>(t[name].bytes.size()) / (name == "x.scales" ? 2 : 4)};
        },
        {name, "[4, "});
  }
  expect([](Tensors& t) { t["x.qweight"].dtype = "F32"; }, {"x.qweight is F32", "I32"});
  expect([](Tensors& t) { t["x.qweight"].shape = {32}; }, {"x.qweight"});
  expect([](Tensors& t) { t["x.scales"].dtype = "I16"; }, {"x.scales is I16"});
  expect([](Tensors& t) { t["x.g_idx"].bytes[0] = 4; },
         {"x.g_idx holds 4 for input 0", "4 groups"});
  expect([](Tensors& t) { t["x.g_idx"].bytes[3] = '\xff'; }, {"x.g_idx holds -"});
  expect(
      [](Tensors& t) {
        t["x.weight"] = {"F16", {2}, "abcd"};
      },
      {"x.weight and x.qweight are both there"});
}

}  // namespace
}  // namespace kvsweep::model
