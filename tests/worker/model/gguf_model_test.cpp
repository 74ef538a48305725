// Tensors of GGUF files under the names of Hugging Face: the table against the `gguf` package
// (make_gguf_names.py), and what WeightFiles says of files that do not fit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/gguf_writer.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/worker/model/support.hpp"
#include "worker/model/gguf_names.hpp"
#include "worker/model/weights.hpp"

namespace kvsweep::model {
namespace {

using test::GgufWriter;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(GgufNames, EqualTheGgufPackage) {
  const auto golden =
      read_json_file(KVSWEEP_SOURCE_DIR "/tests/worker/model/golden/gguf_names.json");
  ASSERT_TRUE(golden.ok()) << golden.error().message;
  ASSERT_EQ(golden->size(), 8u);
  for (const auto& [architecture, names] : golden->items()) {
    for (const auto& [name, in_file] : names.items()) {
      EXPECT_EQ(hugging_face_name(architecture, in_file.get<std::string>()).name, name)
          << architecture;
    }
  }
}

TEST(GgufNames, Changes) {
  const auto change = [](const char* architecture, const char* name) {
    return hugging_face_name(architecture, name).change;
  };
  for (const char* architecture : {"llama", "smollm3"}) {
    EXPECT_EQ(change(architecture, "blk.3.attn_q.weight"), GgufChange::query_rows);
    EXPECT_EQ(change(architecture, "blk.3.attn_k.bias"), GgufChange::key_rows);
    EXPECT_EQ(change(architecture, "blk.3.attn_v.weight"), GgufChange::none);
    EXPECT_EQ(change(architecture, "blk.3.attn_norm.weight"), GgufChange::none);
  }
  for (const char* architecture : {"qwen2", "qwen3", "phi3", "olmo2"}) {
    EXPECT_EQ(change(architecture, "blk.3.attn_q.weight"), GgufChange::none);
    EXPECT_EQ(change(architecture, "output_norm.weight"), GgufChange::none);
  }
  for (const char* architecture : {"gemma2", "gemma3"}) {
    for (const char* name :
         {"output_norm.weight", "blk.0.attn_norm.weight", "blk.0.ffn_norm.weight",
          "blk.0.post_ffw_norm.weight", "blk.0.post_attention_norm.weight",
          "blk.0.attn_q_norm.weight", "blk.0.attn_k_norm.weight"}) {
      EXPECT_EQ(change(architecture, name), GgufChange::plus_one) << name;
    }
    EXPECT_EQ(change(architecture, "blk.0.attn_q.weight"), GgufChange::none);
  }
  EXPECT_EQ(change("llama", "rope_freqs.weight"), GgufChange::consumed);
}

TEST(GgufNames, WhatIsUnknownKeepsItsName) {
  for (const char* name :
       {"", ".", "blk", "blk.", "blk.1", "blk.x.attn_q.weight", "blk.01.attn_q.weight",
        "blk.1.attn_q", "blk.1.attn_q.scale", "blk.1.ssm_a.weight", "blk.9999999999.attn_q.weight",
        "mm.0.weight", "blk.-1.attn_q.weight", "output.scale"}) {
    EXPECT_EQ(hugging_face_name("llama", name).name, name);
  }
}

// One head of four rows, stored r0 r2 r1 r3 (llama.cpp's order of [0 1 | 2 3]).
TEST(GgufWeights, InterleavedRowsComeBack) {
  const test::TempDir dir;
  GgufWriter writer;
  writer.words("general.architecture", "llama").number("llama.attention.head_count", 1);
  writer.tensor("blk.0.attn_q.weight", {4, 2}, {0, 1, 20, 21, 10, 11, 30, 31});
  writer.tensor("blk.0.attn_k.bias", {4}, {0, 2, 1, 3});
  writer.tensor("blk.0.attn_v.weight", {2, 2}, {1, 2, 3, 4});
  auto files = WeightFiles::open(dir.write("model.gguf", writer.bytes()));
  ASSERT_TRUE(files.ok()) << files.error().message;
  std::vector<float> values(8);
  ASSERT_TRUE(files->read("model.layers.0.self_attn.q_proj.weight", {4, 2}, values.data()).ok());
  EXPECT_THAT(values, ElementsAre(0, 1, 10, 11, 20, 21, 30, 31));
  values.resize(4);
  ASSERT_TRUE(files->read("model.layers.0.self_attn.k_proj.bias", {4}, values.data()).ok());
  EXPECT_THAT(values, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(files->check_all_used().error().message, HasSubstr("v_proj.weight"));
  // Rows in another order are no table to look rows up in.
  EXPECT_THAT(files->stored("model.layers.0.self_attn.q_proj.weight", 4, 2).error().message,
              HasSubstr("plain type"));
}

TEST(GgufWeights, BlocksAreStoredAndWidened) {
  const test::TempDir dir;
  GgufWriter writer;
  writer.words("general.architecture", "gemma2").number("gemma2.attention.head_count", 1);
  // Q8_0: d = 0.5, codes 1 and -2 in the two rows.
  std::string rows;
  for (const char code : {'\x01', '\xfe'}) {
    rows += std::string("\x00\x38", 2) + std::string(32, code);
  }
  writer.tensor("token_embd.weight", {2, 32}, 8, rows);
  writer.tensor("output_norm.weight", {2}, {1.5f, 0.25f});
  auto files = WeightFiles::open(dir.write("model.gguf", writer.bytes()));
  ASSERT_TRUE(files.ok()) << files.error().message;
  const auto table = files->stored("model.embed_tokens.weight", 2, 32);
  ASSERT_TRUE(table.ok()) << table.error().message;
  std::vector<float> row(32);
  table->widen(1, 1, row.data());
  EXPECT_EQ(row, std::vector<float>(32, -1.0f));
  std::vector<float> norm(2);
  ASSERT_TRUE(files->read("model.norm.weight", {2}, norm.data()).ok());
  EXPECT_THAT(norm, ElementsAre(0.5f, -0.75f));
  EXPECT_TRUE(files->check_all_used().ok());
  EXPECT_EQ(files->elements(), 66);
}

TEST(GgufWeights, WhatDoesNotFitHasAName) {
  const test::TempDir dir;
  const auto error = [&](GgufWriter& writer) {
    const std::string path = dir.write("model.gguf", writer.bytes());
    auto files = WeightFiles::open(path);
    if (files.ok()) {
      std::vector<float> values(64);
      const Status status = files->read("model.norm.weight", {2}, values.data());
      return status.ok() ? std::string() : status.error().message;
    }
    EXPECT_THAT(files.error().message, HasSubstr(path));
    return files.error().message;
  };
  const auto head = [] {
    GgufWriter writer;
    writer.words("general.architecture", "llama").number("llama.attention.head_count", 2);
    return writer;
  };
  GgufWriter none = head();
  EXPECT_THAT(error(none), HasSubstr("holds no tensors"));
  GgufWriter heads;
  heads.words("general.architecture", "llama").tensor("output_norm.weight", {2}, {1, 2});
  EXPECT_THAT(error(heads), HasSubstr("llama.attention.head_count is missing"));
  GgufWriter odd = head();
  odd.tensor("blk.0.attn_q.weight", {6, 1}, std::vector<float>(6));
  EXPECT_THAT(error(odd), HasSubstr("blk.0.attn_q.weight has 6 rows"));
  GgufWriter shape = head();
  shape.tensor("output_norm.weight", {3}, {1, 2, 3});
  EXPECT_THAT(error(shape), HasSubstr("F32 [3], but its metadata calls for [2]"));
  GgufWriter nan = head();
  nan.tensor("output_norm.weight", {2}, {1, std::nanf("")});
  EXPECT_THAT(error(nan), HasSubstr("NaN"));
  GgufWriter other = head();
  other.tensor("x", {1}, {1});
  EXPECT_THAT(error(other), HasSubstr("model.norm.weight [2], which its metadata calls for"));
  GgufWriter cut = head();
  cut.tensor("output_norm.weight", {2}, {1, 2});
  const std::string bytes = cut.bytes();
  const auto files = WeightFiles::open(dir.write("cut.gguf", bytes.substr(0, bytes.size() - 1)));
  EXPECT_THAT(files.error().message, HasSubstr("output_norm.weight ends beyond the file"));
}

}  // namespace
}  // namespace kvsweep::model
