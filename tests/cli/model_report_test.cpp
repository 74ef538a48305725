#include "cli/model_report.hpp"

#include <gmock/gmock.h>

#include <cstdio>

namespace kvsweep::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

ModelReport sample() {
  ModelReport report;
  report.path = "/models/x";
  report.architecture = "LlamaForCausalLM";
  report.geometry = ModelGeometry{"llama", 4096, {{8, 128}, {8, 128}, {2, 256}, {8, 128}}};
  report.query_heads = 32;
  report.worker = {
      {"weights",
       {{"files", {{{"name", "a"}, {"bytes", 5000}}, {{"name", "b"}, {"bytes", 3000}}}},
        {"types", {{{"type", "BF16"}, {"tensors", 9}, {"elements", 2048}, {"bytes", 4096}}}}}},
      {"tokenizer", {{"kind", "BPE, byte-level"}, {"tokens", 128256}}},
      {"chat_template", true},
      {"eos_ids", {128001, 128009}},
      {"eos_text", "<|end|>"},
      {"refused", Json::array()}};
  report.hash = "abc";
  return report;
}

TEST(ModelReport, SaysWhichLayersDiffer) {
  const Terminal out(stdout);
  const std::string text = model_text(sample(), out);
  EXPECT_THAT(text,
              HasSubstr("0-1: 8 KV heads of 128; 2: 2 KV heads of 256; 3: 8 KV heads of 128"));
  // (3 * 8 * 128 + 2 * 256) elements of keys and as many of values, 2 bytes each: 14336 bytes;
  // times 4096 tokens 56 MiB.
  EXPECT_THAT(text, HasSubstr("14.00 KiB per token, 56.00 MiB at the full context"));
  EXPECT_THAT(text, HasSubstr("4.00 KiB in 2 files: 9 BF16 4.00 KiB"));
  EXPECT_THAT(text, HasSubstr("BPE, byte-level, 128256 tokens"));
  EXPECT_THAT(text, HasSubstr("128001, 128009 (\"<|end|>\")"));
  EXPECT_THAT(text, Not(HasSubstr("refused")));
  EXPECT_EQ(to_json(sample())["kv_bytes_at_context"], 14336 * 4096);
}

TEST(ModelReport, OfEqualLayersSaysTheirNumber) {
  ModelReport report = sample();
  report.geometry->layers.assign(30, {1, 64});
  EXPECT_THAT(model_text(report, Terminal(stdout)), HasSubstr("30: 1 KV head of 64\n"));
}

TEST(ModelReport, WithoutGeometryOrWorkerKeepsWhatItKnows) {
  ModelReport report;
  report.path = "/models/x";
  report.refused = {"reason one", "reason two"};
  report.unchecked = "no worker";
  const std::string text = model_text(report, Terminal(stdout));
  for (const char* part : {"reason one\n", "reason two\n", "not checked    no worker"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  EXPECT_EQ(to_json(report)["geometry"], Json());
}

}  // namespace
}  // namespace kvsweep::cli
