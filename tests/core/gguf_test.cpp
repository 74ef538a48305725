// The GGUF reader on files whose bytes are written here, sound ones and every kind of lie.
#include "core/gguf.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "tests/support/gguf_writer.hpp"
#include "tests/support/temp_dir.hpp"

namespace kvsweep {
namespace {

using test::GgufWriter;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint64_t kWrap = uint64_t{1} << 63;

std::string floats(int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += GgufWriter::plain<float>(static_cast<float>(i) + 0.5f);
  return out;
}

GgufWriter sound() {
  GgufWriter writer;
  writer.words("general.architecture", "llama")
      .number("llama.block_count", 3)
      .real("llama.eps", 1e-5f)
      .flag("add", true)
      .list("tokens", {"a", "", "\xc3\xa9"})
      .list<float>("scores", 6, {0.5f, -1.0f})
      .list<int32_t>("types", 5, {1, 3, -2})
      .key("wide", 10, GgufWriter::plain<uint64_t>(uint64_t{1} << 40))
      .key("byte", 1, GgufWriter::plain<int8_t>(-7))
      .key("double", 12, GgufWriter::plain<double>(0.1));
  writer.tensor("one", {2, 3}, 0, floats(6));
  writer.tensor("two", {2, 32}, 3, std::string(40, 'x'));
  return writer;
}

class Gguf : public testing::Test {
 protected:
  Result<GgufFile> open(const std::string& bytes) {
    // A new file each time: ext4 writes a file that was cut to zero to the disk at once.
    std::filesystem::remove(dir_.file("model.gguf"));
    path_ = dir_.write("model.gguf", bytes);
    return GgufFile::open(path_);
  }
  std::string error(const std::string& bytes) {
    const auto file = open(bytes);
    if (file.ok()) return "";
    EXPECT_EQ(file.error().code, ErrorCode::bad_input) << file.error().message;
    EXPECT_THAT(file.error().message, HasSubstr(path_));
    return file.error().message;
  }

  test::TempDir dir_;
  std::string path_;
};

TEST_F(Gguf, ReadsValuesAndTensors) {
  for (const uint32_t version : {2u, 3u}) {
    GgufWriter writer = sound();
    writer.version = version;
    const auto file = open(writer.bytes());
    ASSERT_TRUE(file.ok()) << file.error().message;
    EXPECT_EQ(*file->text("general.architecture"), "llama");
    EXPECT_EQ(*file->integer("llama.block_count", 0, 10), 3);
    EXPECT_EQ(*file->number("llama.eps"), 1e-5);  // not 9.99999974e-06
    EXPECT_EQ(*file->number("llama.block_count"), 3.0);
    EXPECT_TRUE(*file->boolean("add"));
    EXPECT_THAT(*file->texts("tokens"), ElementsAre("a", "", "\xc3\xa9"));
    EXPECT_THAT(*file->numbers("scores"), ElementsAre(0.5, -1.0));
    EXPECT_THAT(*file->integers("types"), ElementsAre(1, 3, -2));
    EXPECT_EQ(*file->integer("wide", 0, INT64_MAX), int64_t{1} << 40);
    EXPECT_EQ(*file->integer("byte", -10, 10), -7);
    EXPECT_EQ(*file->number("double"), 0.1);
    EXPECT_TRUE(file->is_array("tokens"));
    EXPECT_FALSE(file->is_array("wide"));

    ASSERT_EQ(file->tensors().size(), 2u);
    const GgufTensor* one = file->find("one");
    EXPECT_THAT(one->shape, ElementsAre(2, 3));
    EXPECT_EQ(one->elements, 6);
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(one->data), one->bytes), floats(6));
    const GgufTensor* two = file->find("two");
    EXPECT_EQ(two->type, GgmlType::q4_1);
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(two->data), two->bytes),
              std::string(40, 'x'));
    EXPECT_EQ(file->find("three"), nullptr);
  }
}

// The numbers of ggml's type table: elements and bytes of a block.
TEST_F(Gguf, KnowsBlocks) {
  const auto bytes_of = [](GgmlType type, int elements) {
    return elements / info(type).block_elements * info(type).block_bytes;
  };
  EXPECT_EQ(bytes_of(GgmlType::f32, 256), 1024);
  EXPECT_EQ(bytes_of(GgmlType::f16, 256), 512);
  EXPECT_EQ(bytes_of(GgmlType::bf16, 256), 512);
  EXPECT_EQ(bytes_of(GgmlType::q4_0, 256), 8 * (2 + 16));
  EXPECT_EQ(bytes_of(GgmlType::q4_1, 256), 8 * (4 + 16));
  EXPECT_EQ(bytes_of(GgmlType::q5_0, 256), 8 * (2 + 4 + 16));
  EXPECT_EQ(bytes_of(GgmlType::q5_1, 256), 8 * (4 + 4 + 16));
  EXPECT_EQ(bytes_of(GgmlType::q8_0, 256), 8 * (2 + 32));
  EXPECT_EQ(bytes_of(GgmlType::q4_k, 256), 4 + 12 + 128);
  EXPECT_EQ(bytes_of(GgmlType::q5_k, 256), 4 + 12 + 32 + 128);
  EXPECT_EQ(bytes_of(GgmlType::q6_k, 256), 128 + 64 + 16 + 2);
}

TEST_F(Gguf, KeysAreRefusedByName) {
  GgufWriter writer = sound();
  writer.words("latin", "\xe9")
      .list("latins", {"fine", "\xff"})
      .real("nan", std::numeric_limits<float>::quiet_NaN())
      .list<float>("nans", 6, {1.0f, INFINITY})
      .key("huge", 10, GgufWriter::plain<uint64_t>(kWrap));
  const auto file = open(writer.bytes());
  ASSERT_TRUE(file.ok());
  const auto says = [&](const auto& result, const std::vector<std::string>& parts) {
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, ErrorCode::bad_input);
    EXPECT_THAT(result.error().message, HasSubstr(path_));
    for (const std::string& part : parts) EXPECT_THAT(result.error().message, HasSubstr(part));
  };
  says(file->text("absent"), {"absent is missing"});
  says(file->text("add"), {"add is bool", "text"});
  says(file->text("latin"), {"latin is not valid UTF-8"});
  says(file->texts("latins"), {"latins", "element 1"});
  says(file->texts("scores"), {"scores is a list of f32"});
  says(file->integers("tokens"), {"tokens is a list of text"});
  says(file->integers("llama.block_count"), {"llama.block_count is u32", "list"});
  says(file->integer("llama.eps", 0, 1), {"llama.eps is f32", "whole number"});
  says(file->integer("llama.block_count", 4, 9), {"llama.block_count is 3", "4 to 9"});
  says(file->integer("huge", 0, INT64_MAX), {"huge"});
  says(file->number("nan"), {"nan is NaN"});
  says(file->numbers("nans"), {"nans", "element 1"});
  says(file->boolean("llama.block_count"), {"u32", "bool"});
  EXPECT_EQ(*file->integer("absent", 0, 1, 7), 7);
  EXPECT_EQ(*file->text("absent", "x"), "x");
  EXPECT_TRUE(*file->boolean("absent", true));
  EXPECT_EQ(*file->number("absent", 0.5), 0.5);
}

TEST_F(Gguf, FilesThatAreNone) {
  EXPECT_THAT(error("PK\3\4 something else"), HasSubstr("does not begin with \"GGUF\""));
  EXPECT_THAT(error(""), HasSubstr("is empty"));
  EXPECT_THAT(error("GG"), HasSubstr("GGUF"));
  GgufWriter old = sound();
  old.version = 1;
  EXPECT_THAT(error(old.bytes()), AllOf(HasSubstr("version 1"), HasSubstr("2 and 3")));
  old.version = 0x03000000;
  EXPECT_THAT(error(old.bytes()), HasSubstr("big-endian"));
  const auto absent = GgufFile::open(dir_.file("absent.gguf"));
  ASSERT_FALSE(absent.ok());
  EXPECT_EQ(absent.error().code, ErrorCode::not_found);
  EXPECT_THAT(absent.error().message, HasSubstr("absent.gguf"));
  const auto folder = GgufFile::open(dir_.path().string());
  ASSERT_FALSE(folder.ok());
  EXPECT_THAT(folder.error().message, HasSubstr("is not a file"));
}

TEST_F(Gguf, CutAnywhere) {
  const std::string whole = sound().bytes();
  ASSERT_EQ(error(whole), "");
  for (size_t size = 1; size < whole.size(); ++size) {
    EXPECT_NE(error(whole.substr(0, size)), "") << size << " bytes";
  }
}

struct Lie {
  std::string name;
  std::function<void(GgufWriter&)> tell;
  std::vector<std::string> parts;
};

class GgufLie : public testing::TestWithParam<Lie> {};

TEST_P(GgufLie, IsRefusedByName) {
  const test::TempDir dir;
  GgufWriter writer = sound();
  GetParam().tell(writer);
  const std::string path = dir.write("model.gguf", writer.bytes());
  const auto file = GgufFile::open(path);
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().code, ErrorCode::bad_input);
  EXPECT_THAT(file.error().message, HasSubstr(path));
  for (const std::string& part : GetParam().parts) {
    EXPECT_THAT(file.error().message, HasSubstr(part));
  }
}

std::string array_of(uint32_t type, uint64_t count) {
  return GgufWriter::plain(type) + GgufWriter::plain(count);
}

INSTANTIATE_TEST_SUITE_P(
    Each, GgufLie,
    testing::Values(
        Lie{"keys", [](GgufWriter& w) { w.key_count = kWrap; }, {"keys"}},
        Lie{"one_key_more", [](GgufWriter& w) { ++w.key_count; }, {}},
        Lie{"tensors", [](GgufWriter& w) { w.tensor_count = UINT64_MAX; }, {"tensors"}},
        Lie{"one_tensor_more", [](GgufWriter& w) { ++w.tensor_count; }, {"tensor"}},
        Lie{"key_length",
            [](GgufWriter& w) { w.raw(GgufWriter::plain(kWrap) + "x"); },
            {"name of key 10", "9223372036854775808"}},
        Lie{"empty_key", [](GgufWriter& w) { w.words("", "x"); }, {"name of key 10 is empty"}},
        Lie{"latin_key", [](GgufWriter& w) { w.words("\xff", "x"); }, {"not valid UTF-8"}},
        Lie{"key_type", [](GgufWriter& w) { w.key("odd", 13, "x"); }, {"key odd", "13"}},
        Lie{"text_length",
            [](GgufWriter& w) { w.key("long", 8, GgufWriter::plain(UINT64_MAX)); },
            {"key long"}},
        Lie{"text_length_wraps",
            [](GgufWriter& w) { w.key("long", 8, GgufWriter::plain(UINT64_MAX - 7)); },
            {"key long"}},
        Lie{"text_past_end",
            [](GgufWriter& w) { w.key("long", 8, GgufWriter::plain<uint64_t>(1 << 20)); },
            {"key long", "ends beyond the file"}},
        Lie{"array_count",
            [](GgufWriter& w) { w.key("many", 9, array_of(4, kWrap)); },
            {"key many", "9223372036854775808 elements"}},
        // 2^62 elements of 4 bytes are 2^64 bytes: zero when it wraps.
        Lie{"array_bytes_wrap",
            [](GgufWriter& w) { w.key("many", 9, array_of(4, uint64_t{1} << 62)); },
            {"key many"}},
        Lie{"array_past_end",
            [](GgufWriter& w) { w.key("many", 9, array_of(10, 1 << 20)); },
            {"key many", "ends beyond the file"}},
        Lie{"text_array_past_end",
            [](GgufWriter& w) { w.key("many", 9, array_of(8, 1 << 20)); },
            {"many"}},
        Lie{"array_of_arrays",
            [](GgufWriter& w) { w.key("deep", 9, array_of(9, 1) + array_of(9, 1)); },
            {"key deep", "array of arrays"}},
        Lie{"array_type", [](GgufWriter& w) { w.key("odd", 9, array_of(99, 1)); }, {"odd", "99"}},
        Lie{"twice", [](GgufWriter& w) { w.number("add", 1); }, {"key add is there twice"}},
        Lie{"alignment_zero",
            [](GgufWriter& w) { w.number("general.alignment", 0); },
            {"general.alignment is 0"}},
        Lie{"alignment_odd",
            [](GgufWriter& w) { w.number("general.alignment", 24); },
            {"general.alignment is 24"}},
        Lie{"alignment_huge",
            [](GgufWriter& w) { w.number("general.alignment", 1u << 31); },
            {"general.alignment"}},
        Lie{"alignment_text",
            [](GgufWriter& w) { w.words("general.alignment", "32"); },
            {"general.alignment"}},
        Lie{"rank",
            [](GgufWriter& w) {
              w.tensor_head("t", {1, 1, 1, 1, 1}, 0, 0);
            },
            {"tensor t"}},
        Lie{"rank_zero", [](GgufWriter& w) { w.tensor_head("t", {}, 0, 0); }, {"0 dimensions"}},
        Lie{"dimension_zero",
            [](GgufWriter& w) {
              w.tensor_head("t", {2, 0}, 0, 0);
            },
            {"tensor t", "dimension of 0"}},
        Lie{"dimension_wraps",
            [](GgufWriter& w) {
              w.tensor_head("t", {INT64_MIN, 2}, 0, 0);
            },
            {"tensor t", "9223372036854775808"}},
        // 2^32 x 2^32 elements: zero when it wraps.
        Lie{"elements_wrap",
            [](GgufWriter& w) {
              w.tensor_head("t", {int64_t{1} << 32, int64_t{1} << 32}, 0, 0);
            },
            {"tensor t", "2^48"}},
        Lie{"bytes_past_end",
            [](GgufWriter& w) {
              w.tensor_head("t", {1000, 1000}, 0, 0);
            },
            {"tensor t ends beyond the file"}},
        Lie{"type",
            [](GgufWriter& w) { w.tensor_head("t", {256}, 77, 0); },
            {"tensor t", "number 77", "Q6_K"}},
        Lie{"other_type",
            [](GgufWriter& w) { w.tensor_head("t", {256}, 17, 0); },
            {"tensor t", "IQ2_XS (17)"}},
        Lie{"removed_type",
            [](GgufWriter& w) { w.tensor_head("t", {256}, 4, 0); },
            {"tensor t", "number 4"}},
        Lie{"row_of_blocks",
            [](GgufWriter& w) {
              w.tensor_head("t", {2, 48}, 2, 0);
            },
            {"tensor t", "48", "multiple of 32"}},
        Lie{"offset_odd",
            [](GgufWriter& w) { w.tensor_head("t", {1}, 0, 100); },
            {"tensor t", "100", "alignment 32"}},
        Lie{"offset_wraps",
            [](GgufWriter& w) { w.tensor_head("t", {8}, 0, UINT64_MAX - 31); },
            {"tensor t ends beyond the file"}},
        Lie{"offset_past_end",
            [](GgufWriter& w) { w.tensor_head("t", {1}, 0, 1 << 20); },
            {"tensor t ends beyond the file"}},
        Lie{"overlap",
            [](GgufWriter& w) {
              w.tensor_head("t", {1, 32}, 3, 32);
            },
            {"lies over tensor"}},
        Lie{"tensor_twice",
            [](GgufWriter& w) { w.tensor("one", {1}, 0, floats(1)); },
            {"tensor one is there twice"}},
        Lie{"split",
            [](GgufWriter& w) { w.key("split.count", 2, GgufWriter::plain<uint16_t>(3)); },
            {"split.count is 3", "merge"}}),
    [](const auto& info) { return info.param.name; });

TEST_F(Gguf, OtherAlignments) {
  for (const uint32_t alignment : {8u, 64u, 4096u}) {
    GgufWriter writer;
    writer.alignment = alignment;
    writer.number("general.alignment", alignment);
    writer.tensor("one", {3}, 0, floats(3)).tensor("two", {2}, 0, floats(2));
    const auto file = open(writer.bytes());
    ASSERT_TRUE(file.ok()) << file.error().message;
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(file->find("two")->data), 8), floats(2));
  }
}

// One bit changed anywhere in the head: an error or a file whose values can all be asked for.
TEST_F(Gguf, SurvivesFlippedBits) {
  const std::string whole = sound().bytes();
  int refused = 0;
  for (size_t bit = 0; bit < whole.size() * 8; bit += 3) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    const auto file = open(damaged);
    refused += file.ok() ? 0 : 1;
    if (!file.ok()) continue;
    for (const char* key : {"tokens", "scores", "types", "wide", "general.architecture"}) {
      (void)file->texts(key);
      (void)file->numbers(key);
      (void)file->integers(key);
      (void)file->text(key);
    }
    for (const GgufTensor& tensor : file->tensors()) {
      uint8_t sum = 0;
      for (uint64_t i = 0; i < tensor.bytes; ++i) sum = static_cast<uint8_t>(sum + tensor.data[i]);
      (void)sum;
    }
  }
  EXPECT_GT(refused, 500);
}

TEST_F(Gguf, Paths) {
  EXPECT_TRUE(is_gguf_path("/nonexistent/model.gguf"));
  EXPECT_FALSE(is_gguf_path("/nonexistent/model"));
  EXPECT_FALSE(is_gguf_path(dir_.path().string()));
  EXPECT_TRUE(is_gguf_path(dir_.write("plain", "GGUF")));
}

}  // namespace
}  // namespace kvsweep
