// The contract of every exporter in exporters.def: a new entry is tested by being in the table.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "core/file.hpp"
#include "store/export/exporter.hpp"
#include "tests/store/samples.hpp"
#include "tests/support/temp_dir.hpp"

namespace kvsweep::store {
namespace {

using test::must;
using ::testing::HasSubstr;

// A scheme with any of its options.
Scheme random_scheme(std::mt19937& random, bool integers, int layers) {
  const SchemeInfo* info = &schemes()[random() % schemes().size()];
  if (integers && info->codecs == SchemeCodecs::fp8) info = &schemes()[0];
  SchemeOptions options;
  options.name = info->name;
  const bool channel = info->k_axis == Axis::channel;
  const bool fixed = info->codecs == SchemeCodecs::fp8;
  const int groups[] = {32, 64, 128, 0};
  if (!fixed && random() % 2) options.group = groups[random() % (channel ? 3 : 4)];
  const int group = options.group.value_or(32);
  if (info->window == WindowRule::recode && random() % 2) {
    options.residual = static_cast<int>(random() % 200);
  }
  if (info->window == WindowRule::tokens && (options.group || random() % 2)) {
    options.residual = static_cast<int>(channel ? group * (1 + random() % 3) : random() % 200);
  }
  if (!info->counts_tokens() && random() % 2) {
    options.share = 1 + static_cast<int>(random() % 9);
  }
  if (info->window == WindowRule::recode) options.symmetric = random() % 3 == 0;
  if (info->reference()) return must(make_scheme(options));
  if (random() % 2) options.prefill = random() % 2 ? Prefill::exact : Prefill::stepwise;
  if (random() % 3 == 0) options.sinks = static_cast<int>(random() % 65);
  if (random() % 3 == 0) options.hadamard = static_cast<Hadamard>(random() % 4);
  if (!fixed && random() % 3 == 0) options.symmetric = true;
  if (random() % 3 == 0) options.key_bias = KeyBias::factored;
  if (info->codecs != SchemeCodecs::integers && random() % 3 == 0) {
    options.ranges.emplace();
    for (int i = 0; i < layers; ++i) {
      options.ranges->keys.push_back(static_cast<float>(1 + random() % 100000) * 1e-3f);
      options.ranges->values.push_back(static_cast<float>(1 + random() % 100000) * 1e-3f);
    }
  }
  return must(make_scheme(options));
}

Pair random_pair(std::mt19937& random, const Scheme& scheme, bool integers) {
  while (true) {
    const CodecInfo& k = codecs()[random() % codecs().size()];
    const CodecInfo& v = codecs()[random() % codecs().size()];
    if (integers && !(k.integer() && v.integer())) continue;
    if (scheme.objection({k.codec, v.codec}).empty()) return {k.codec, v.codec};
  }
}

struct MapShape {
  int layers = 0;
  int per_head = 0;       // KV heads that get pairs of their own in every third layer; 0 = none
  bool integers = false;  // no other codecs
};

PrecisionMap random_map(std::mt19937& random, const MapShape& shape) {
  PrecisionMap map{random_scheme(random, shape.integers, shape.layers), {}};
  // A reference scheme has one pair for all heads of a layer.
  const int per_head = map.scheme.info().reference() ? 0 : shape.per_head;
  while (map.num_layers() < shape.layers) {
    std::vector<Pair> heads(1);
    if (random() % 3 == 0) heads.resize(static_cast<size_t>(std::max(1, per_head)));
    for (Pair& pair : heads) pair = random_pair(random, map.scheme, shape.integers);
    map.layers.push_back(LayerPairs::of_heads(std::move(heads)));
  }
  return map;
}

class ExporterContract : public ::testing::TestWithParam<ExporterInfo> {
 protected:
  ImportedMap import(const ExportOutput& output) {
    const std::string path = dir_.write("map" + std::string(GetParam().extension), output.text);
    std::filesystem::remove(sidecar_path(path));
    if (!output.sidecar.empty()) must(write_file_atomic(sidecar_path(path), output.sidecar));
    // By name and by content alike.
    const ImportedMap named = must(import_map(path, std::string(GetParam().name), std::nullopt));
    const ImportedMap found = must(import_map(path, "", std::nullopt));
    EXPECT_EQ(named.map, found.map);
    return found;
  }

  test::TempDir dir_;
};

TEST_P(ExporterContract, DescribesItself) {
  EXPECT_FALSE(GetParam().name.empty());
  EXPECT_EQ(GetParam().extension.front(), '.');
  EXPECT_FALSE(GetParam().summary.empty());
}

TEST_P(ExporterContract, RoundTripKeepsTheMap) {
  std::mt19937 random(17);
  int written = 0;
  for (int round = 0; round < 200; ++round) {
    const int layers = 1 + static_cast<int>(random() % 40);
    const int head_dims[] = {64, 80, 96, 128};
    ExportInput input;
    const int kv_heads = 1 + static_cast<int>(random() % 8);
    input.geometry = test::sample_geometry(layers, kv_heads, head_dims[random() % 4]);
    const BaseType bases[] = {BaseType::fp32, BaseType::fp16, BaseType::bf16};
    input.base = bases[random() % 3];
    // Every fourth may hold sides that are no integer codes, every third pairs per head.
    input.map = random_map(random, {layers, round % 3 == 0 ? kv_heads : 0, round % 4 != 0});
    input.model_hash = test::sample_model_hash();
    input.context = 1 + random() % 5000;
    const auto output = export_map(std::string(GetParam().name), input);
    if (!output.ok()) {
      // A target may lack something; then it says for which layer.
      EXPECT_EQ(output.error().code, ErrorCode::bad_input);
      EXPECT_THAT(output.error().message, HasSubstr("layer"));
      EXPECT_EQ(round % 4, 0) << output.error().message;
      continue;
    }
    ++written;
    if (!output->lost.empty()) {
      EXPECT_TRUE(input.map.per_head());  // the only thing that a target here may lack
      continue;
    }
    if (!GetParam().can_import) continue;
    const ImportedMap imported = import(*output);
    ASSERT_EQ(map_id(imported.map), map_id(input.map)) << output->text;
    EXPECT_EQ(imported.map, input.map);  // also what the id leaves out
    EXPECT_EQ(imported.num_layers, layers);
    EXPECT_EQ(imported.model_hash, input.model_hash);
    EXPECT_EQ(imported.base.value_or(input.base), input.base);
  }
  EXPECT_GE(written, 150);
}

TEST_P(ExporterContract, RefusesAnotherModelsMap) {
  ExportInput input;
  input.geometry = test::sample_geometry(5);
  input.map = uniform_map(test::sample_scheme(), 4, {Codec::int8, Codec::int4});
  const auto output = export_map(std::string(GetParam().name), input);
  ASSERT_FALSE(output.ok());
  EXPECT_EQ(output.error().code, ErrorCode::bad_input);
}

// Truncated and mutated files: an error or a map, never a crash or a hang.
TEST_P(ExporterContract, SurvivesDamagedFiles) {
  if (!GetParam().can_import) return;
  std::mt19937 random(23);
  ExportInput input;
  input.geometry = test::sample_geometry(6);
  input.map = random_map(random, {6, 2, true});
  const ExportOutput output = must(export_map(std::string(GetParam().name), input));
  for (int round = 0; round < 400; ++round) {
    std::string text = output.text;
    if (round % 2) text.resize(random() % text.size());
    for (int change = 0; change < 3 && !text.empty(); ++change) {
      text[random() % text.size()] =
          static_cast<char>(random() % 4 ? 32 + random() % 95 : random());
    }
    const std::string path = dir_.write("damaged" + std::string(GetParam().extension), text);
    const auto imported = import_map(path, std::string(GetParam().name), SchemeOptions{});
    EXPECT_TRUE(imported.ok() || !imported.error().message.empty());
  }
}

INSTANTIATE_TEST_SUITE_P(All, ExporterContract, ::testing::ValuesIn(exporters()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Exporters, UnknownNameGivesTheNearest) {
  const auto output = export_map("kvmpa", {});
  ASSERT_FALSE(output.ok());
  EXPECT_THAT(output.error().message, HasSubstr("did you mean kvmap?"));
  std::set<std::string_view> names;
  for (const ExporterInfo& info : exporters()) EXPECT_TRUE(names.insert(info.name).second);
}

TEST(Exporters, FilesOfNoKnownKind) {
  test::TempDir dir;
  for (const std::string& text : {std::string(""), std::string("hello"), std::string("{\"a\": 1}"),
                                  std::string("\0\1\2", 3), std::string("[1, 2]")}) {
    const auto imported = import_map(dir.write("x", text), "", std::nullopt);
    ASSERT_FALSE(imported.ok());
    EXPECT_THAT(imported.error().message, HasSubstr("neither a kvmap"));
  }
  EXPECT_EQ(import_map(dir.file("none"), "", std::nullopt).error().code, ErrorCode::not_found);
  EXPECT_FALSE(import_map(dir.path().string(), "", std::nullopt).ok());
}

}  // namespace
}  // namespace kvsweep::store
