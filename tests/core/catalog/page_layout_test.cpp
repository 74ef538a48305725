// Layouts and bytes derived by hand; the arithmetic stands beside each number.
#include "core/catalog/page_layout.hpp"

#include <gtest/gtest.h>

namespace kvsweep {
namespace {

ModelGeometry geometry(int layers, int kv_heads, int head_dim) {
  ModelGeometry made;
  made.family = "llama";
  made.max_context = 8192;
  made.layers.assign(static_cast<size_t>(layers), {kv_heads, head_dim});
  return made;
}

Scheme scheme(const std::string& name, std::optional<int> group = {},
              std::optional<int> residual = {}) {
  SchemeOptions options;
  options.name = name;
  options.group = group;
  options.residual = residual;
  return make_scheme(options).value();
}

double bits(const char* format, int head_dim) {
  return format_bits(format_from(format).value(), head_dim, BaseType::fp16);
}

// The table of effective bits: code bits + 32 bits of parameters per group.
TEST(FormatBits, Table) {
  EXPECT_EQ(bits("base", 128), 16.0);
  EXPECT_EQ(bits("int8-token-g128", 128), 8.25);
  EXPECT_EQ(bits("int8-token-g32", 128), 9.0);
  EXPECT_EQ(bits("int4-token-g128", 128), 4.25);
  EXPECT_EQ(bits("int4-token-g64", 128), 4.5);
  EXPECT_EQ(bits("int4-channel-g32", 128), 5.0);
  EXPECT_EQ(bits("int2-token-g32", 128), 3.0);
  EXPECT_EQ(bits("int2-channel-g64", 128), 2.5);
  EXPECT_EQ(bits("int2-channel-g128", 64), 2.25);
  EXPECT_EQ(bits("int8-token-ghead", 128), 8.25);                   // KVTuner per token: b + .25
  EXPECT_EQ(bits("int8-token-ghead", 64), 8.5);                     // one pair per 64 elements
  EXPECT_EQ(bits("int4-token-g128", 64), 4.5);                      // the group is cut at the head
  EXPECT_DOUBLE_EQ(bits("int4-token-g32", 80), 4 + 32 * 3 / 80.0);  // 3 groups: 32, 32, 16
  EXPECT_EQ(format_bits(Format{}, 64, BaseType::fp32), 32.0);
}

// The rest of that table: exact INT3, symmetric codes, floats with their scales.
TEST(FormatBits, TableOfOtherCodecs) {
  EXPECT_EQ(bits("int3-token-g32", 128), 4.0);
  EXPECT_EQ(bits("int3-channel-g64", 128), 3.5);
  EXPECT_DOUBLE_EQ(bits("int3-token-ghead", 80), 8 * (36 + 4) / 80.0);  // rows padded to 96
  EXPECT_EQ(bits("int4-token-g32-sym", 128), 4.5);
  EXPECT_EQ(bits("int4-token-g32-had", 128), 5.0);
  EXPECT_EQ(bits("fp8_e4m3-token-ghead", 128), 8.125);
  EXPECT_EQ(bits("fp8_e5m2-token-ghead", 64), 8.25);
  EXPECT_EQ(bits("nvfp4-token-g16", 128), 4.5);
  EXPECT_EQ(bits("mxfp4-token-g32", 128), 4.25);
}

TEST(CacheLayout, PerTokenHeadGroup) {
  // SmolLM2's geometry: 3 KV heads of 64. K8V4, pages of 64 tokens.
  const ModelGeometry model = geometry(2, 3, 64);
  const PrecisionMap map = uniform_map(scheme("per-token"), 2, {Codec::int8, Codec::int4});
  const CacheLayout layout = cache_layout(map, model, BaseType::fp16);

  const SideLayout& k = layout.keys[0][0];
  EXPECT_EQ(k.row_bytes, 64);   // 64 * 8 / 8
  EXPECT_EQ(k.param_rows, 64);  // one per token
  EXPECT_EQ(k.params_per_row, 1);
  EXPECT_EQ(k.params_offset, 12288);  // 3 * 64 * 64
  EXPECT_EQ(k.page_bytes, 13056);     // + 3 * 64 * 1 * 4 = 768
  EXPECT_EQ(k.staging_bytes(64, 0), 0);
  const SideLayout& v = layout.values[0][0];
  EXPECT_EQ(v.row_bytes, 32);
  EXPECT_EQ(v.params_offset, 6144);  // 3 * 64 * 32
  EXPECT_EQ(v.page_bytes, 6912);     // + 768
  EXPECT_EQ(k.block_offset, 0);
  EXPECT_EQ(v.block_offset, 13056);
  EXPECT_EQ(layout.keys[1][0].block_offset, 19968);    // 13056 + 6912
  EXPECT_EQ(layout.values[1][0].block_offset, 33024);  // 19968 + 13056
  EXPECT_EQ(layout.block_bytes, 39936);                // 2 * 19968
  EXPECT_EQ(layout.staging_bytes(4096), 0);
}

TEST(CacheLayout, BytesCountWholeBlocks) {
  const ModelGeometry model = geometry(2, 3, 64);
  const PrecisionMap map = uniform_map(scheme("per-token"), 2, {Codec::int8, Codec::int4});
  const CacheLayout layout = cache_layout(map, model, BaseType::fp16);
  EXPECT_EQ(layout.bytes(0, 1), 0);
  EXPECT_EQ(layout.blocks(1), 1);
  EXPECT_EQ(layout.blocks(64), 1);
  EXPECT_EQ(layout.blocks(65), 2);
  EXPECT_EQ(layout.bytes(100, 1), 79872);  // 2 * 39936
  EXPECT_EQ(layout.bytes(100, 3), 239616);
  // 128 tokens fill two blocks exactly: the mean of 8.5 and 4.5 bits.
  EXPECT_EQ(effective_bits(layout, model, 128), 6.5);
  // 100 tokens pay for 128: 6.5 * 1.28.
  EXPECT_DOUBLE_EQ(effective_bits(layout, model, 100), 8.32);
}

TEST(CacheLayout, KiviWithThreeParamsPerRow) {
  const ModelGeometry model = geometry(1, 2, 80);
  const PrecisionMap map = uniform_map(scheme("kivi"), 1, {Codec::int4, Codec::int2});
  const CacheLayout layout = cache_layout(map, model, BaseType::fp16);

  const SideLayout& k = layout.keys[0][0];
  EXPECT_EQ(k.row_bytes, 40);               // 80 * 4 / 8
  EXPECT_EQ(k.param_rows, 2);               // 64 / 32
  EXPECT_EQ(k.params_per_row, 80);          // every channel
  EXPECT_EQ(k.params_offset, 5120);         // 2 * 64 * 40
  EXPECT_EQ(k.page_bytes, 6400);            // + 2 * 2 * 80 * 4 = 1280
  EXPECT_EQ(k.staging_bytes(1, 0), 10240);  // 2 heads * 32 tokens * 80 * 2 bytes
  const SideLayout& v = layout.values[0][0];
  EXPECT_EQ(v.row_bytes, 20);
  EXPECT_EQ(v.param_rows, 64);
  EXPECT_EQ(v.params_per_row, 3);           // ceil(80 / 32)
  EXPECT_EQ(v.params_offset, 2560);         // 2 * 64 * 20
  EXPECT_EQ(v.page_bytes, 4096);            // + 2 * 64 * 3 * 4 = 1536
  EXPECT_EQ(v.staging_bytes(1, 0), 10560);  // 2 * 33 * 80 * 2
  EXPECT_EQ(layout.block_bytes, 10496);
  EXPECT_EQ(layout.staging_bytes(5000), 20800);
}

TEST(CacheLayout, KiviBlocksFollowTheSideThatCodedMost) {
  const ModelGeometry model = geometry(1, 2, 80);
  const PrecisionMap map = uniform_map(scheme("kivi"), 1, {Codec::int4, Codec::int2});
  const CacheLayout layout = cache_layout(map, model, BaseType::fp16);
  EXPECT_EQ(layout.blocks(32), 0);  // keys 0, values 0: all in staging
  EXPECT_EQ(layout.blocks(33), 1);  // keys 32
  EXPECT_EQ(layout.blocks(96), 1);  // keys 64, values 96 - 33 = 63
  EXPECT_EQ(layout.blocks(97), 2);  // keys 96
  EXPECT_EQ(layout.bytes(32, 1), 20800);
  EXPECT_EQ(layout.bytes(97, 2), 2 * (2 * 10496 + 20800));
}

TEST(CacheLayout, BaseSideNeedsItsRowsAtOnce) {
  // One escape layer in a kivi map: its sides take every token at once and stage nothing.
  const ModelGeometry model = geometry(2, 1, 64);
  PrecisionMap map = uniform_map(scheme("kivi"), 2, {Codec::int8, Codec::int8});
  map.layers[1] = Pair{};
  const CacheLayout layout = cache_layout(map, model, BaseType::bf16);
  EXPECT_EQ(layout.keys[1][0].row_bytes, 128);    // 64 * 2
  EXPECT_EQ(layout.keys[1][0].page_bytes, 8192);  // 64 * 128
  EXPECT_EQ(layout.keys[1][0].param_rows, 0);
  EXPECT_EQ(layout.keys[1][0].staging_bytes(99, 0), 0);
  EXPECT_EQ(layout.blocks(1), 1);
  const CacheLayout wide = cache_layout(map, model, BaseType::fp32);
  EXPECT_EQ(wide.values[1][0].page_bytes, 16384);
  EXPECT_EQ(wide.keys[0][0].staging_bytes(99, 0), 8192);  // 32 tokens * 64 * 4
}

TEST(CacheLayout, BaselineIsSixteenBitsOnFullPages) {
  const ModelGeometry model = geometry(30, 3, 64);
  const CacheLayout layout = cache_layout(baseline_map(scheme("kivi"), 30), model, BaseType::fp16);
  EXPECT_EQ(layout.staging_bytes(4096), 0);
  EXPECT_EQ(effective_bits(layout, model, 4096), 16.0);
  // 30 layers * 2 sides * 3 heads * 64 * 2 bytes = 23040 per token.
  EXPECT_EQ(layout.bytes(4096, 1), int64_t{4096} * 23040);
}

TEST(CacheLayout, PaddingTo16) {
  // kivi group 128, one head of 6: page 128 tokens, one row of 6 parameter pairs = 24 -> 32.
  const ModelGeometry model = geometry(1, 1, 6);
  const PrecisionMap map = uniform_map(scheme("kivi", 128, 128), 1, {Codec::int4, Codec::int8});
  const CacheLayout layout = cache_layout(map, model, BaseType::fp16);
  EXPECT_EQ(layout.page_tokens, 128);
  EXPECT_EQ(layout.keys[0][0].row_bytes, 3);
  EXPECT_EQ(layout.keys[0][0].params_offset, 384);            // 128 * 3
  EXPECT_EQ(layout.keys[0][0].page_bytes, 416);               // 384 + 32
  EXPECT_EQ(layout.keys[0][0].staging_bytes(99, 0), 1536);    // 128 * 6 * 2
  EXPECT_EQ(layout.values[0][0].staging_bytes(99, 0), 1552);  // 129 * 6 * 2 = 1548 -> 1552
}

TEST(CacheLayout, SinksLieBesideTheRingsAndMoveThePages) {
  const ModelGeometry model = geometry(1, 2, 64);
  SchemeOptions options;
  options.sinks = 4;
  options.residual = 16;
  const Scheme made = make_scheme(options).value();
  PrecisionMap map = uniform_map(made, 1, {Codec::int4, Codec::base});
  const CacheLayout layout = cache_layout(map, model, BaseType::fp16);
  EXPECT_EQ(layout.keys[0][0].staging_bytes(999, 0), (4 + 16) * 256);  // 2 heads * 64 * 2 bytes
  EXPECT_EQ(layout.values[0][0].staging_bytes(999, 0), 4 * 256);
  EXPECT_EQ(layout.blocks(4), 0);
  EXPECT_EQ(layout.blocks(68), 1);  // values: 64 beside the sinks
  EXPECT_EQ(layout.blocks(69), 2);
  // Without a coded side there is nothing to protect.
  map = baseline_map(made, 1);
  EXPECT_EQ(cache_layout(map, model, BaseType::fp16).staging_bytes(999), 0);
}

// kvmix, group 32: of a prompt of 1000 in 2 bits floor(.2 * 1000) = 200 tokens stay exact and 800
// are coded; in 4 bits 300, and floor(700 / 32) * 32 = 672 are coded.
TEST(CacheLayout, AShareOfThePromptStaysExact) {
  const ModelGeometry model = geometry(1, 1, 64);
  const PrecisionMap map = uniform_map(scheme("kvmix"), 1, {Codec::int2, Codec::int4});
  const CacheLayout layout = cache_layout(map, model, BaseType::fp16);
  EXPECT_EQ(layout.blocks(1000), 13);  // ceil(800 / 64)
  // Room for 200 + 31 and 300 + 31 tokens, in whole steps of 32: 256 and 352.
  EXPECT_EQ(layout.staging_bytes(1000), (256 + 352) * 128);
  // A prompt of 10 that grows to 1000 has a window that shrank long ago.
  EXPECT_EQ(layout.blocks(1000, 10), 16);
  EXPECT_EQ(layout.staging_bytes(1000, 10), (64 + 64) * 128);
  const PrecisionMap total = uniform_map(scheme("kvmix-total"), 1, {Codec::int2, Codec::int4});
  const CacheLayout other = cache_layout(total, model, BaseType::fp16);
  EXPECT_EQ(other.blocks(1000, 10), 13);
  EXPECT_EQ(other.staging_bytes(1000, 10), (256 + 352) * 128);
}

// Three heads, K8V4|K4V4|K4V2, pages of 64 tokens of 64 channels, a group per head (4 bytes).
// Keys: head 0 int8 64 * 64 + 64 * 4 = 4352; heads 1-2 int4 2 * (64 * 32 + 64 * 4) = 4608.
// Values: heads 0-1 int4 4608; head 2 int2 64 * 16 + 64 * 4 = 1280. Then layer 1, all K4V4.
TEST(CacheLayout, HeadsWithTheSameCodecShareAPage) {
  PrecisionMap map = uniform_map(scheme("per-token"), 2, {Codec::int4, Codec::int4});
  map.layers[0] = LayerPairs::of_heads(
      {{Codec::int8, Codec::int4}, {Codec::int4, Codec::int4}, {Codec::int4, Codec::int2}});
  const CacheLayout layout = cache_layout(map, geometry(2, 3, 64), BaseType::fp16);
  ASSERT_EQ(layout.keys[0].size(), 2u);
  ASSERT_EQ(layout.values[0].size(), 2u);
  const SideLayout& k = layout.keys[0][1];
  EXPECT_EQ(k.first_head, 1);
  EXPECT_EQ(k.kv_heads, 2);
  EXPECT_EQ(k.block_offset, 4352);
  EXPECT_EQ(k.params_offset, 2 * 64 * 32);
  EXPECT_EQ(k.page_bytes, 4608);
  EXPECT_EQ(layout.values[0][0].block_offset, 4352 + 4608);
  EXPECT_EQ(layout.values[0][1].block_offset, 4352 + 4608 + 4608);
  EXPECT_EQ(layout.values[0][1].first_head, 2);
  EXPECT_EQ(layout.values[0][1].page_bytes, 1280);
  ASSERT_EQ(layout.keys[1].size(), 1u);
  EXPECT_EQ(layout.keys[1][0].kv_heads, 3);
  EXPECT_EQ(layout.keys[1][0].block_offset, 14848);  // 4352 + 4608 + 4608 + 1280
  EXPECT_EQ(layout.block_bytes, 14848 + 2 * 3 * 2304);
  EXPECT_EQ(layout.bytes(100, 1), 2 * layout.block_bytes);  // no window: nothing is staged
}

// A share that stays exact depends on the bits, so heads of one layer have windows of their own
// (numbers as in AShareOfThePromptStaysExact).
TEST(CacheLayout, HeadsHaveWindowsOfTheirOwn) {
  PrecisionMap map = uniform_map(scheme("kvmix"), 1, {});
  map.layers[0] = LayerPairs::of_heads({{Codec::int2, Codec::int2}, {Codec::int4, Codec::int4}});
  const CacheLayout layout = cache_layout(map, geometry(1, 2, 64), BaseType::fp16);
  EXPECT_EQ(layout.keys[0][0].window.share, 2);
  EXPECT_EQ(layout.keys[0][1].window.share, 3);
  EXPECT_EQ(layout.staging_bytes(1000), 2 * (256 + 352) * 128);
  EXPECT_EQ(layout.blocks(1000), 13);
}

// What heads cost is what models of one such head cost, all together: pages of 64 and of 128 tokens
// and these sizes need no padding.
TEST(CacheLayout, BytesOfHeadsAddUp) {
  for (const char* name : {"per-token", "kivi"}) {
    const Scheme made = scheme(name);
    std::vector<Pair> heads;
    for (const CodecInfo& k : codecs()) {
      for (const CodecInfo& v : codecs()) {
        if (made.objection({k.codec, v.codec}).empty()) heads.push_back({k.codec, v.codec});
      }
    }
    const ModelGeometry one = geometry(1, 1, 64);
    const ModelGeometry all = geometry(1, static_cast<int>(heads.size()), 64);
    const PrecisionMap mixed{made, {LayerPairs::of_heads(heads)}};
    const CacheLayout layout = cache_layout(mixed, all, BaseType::fp16);
    int64_t block = 0;
    int64_t staging = 0;
    double nominal = 0;
    for (const Pair pair : heads) {
      const PrecisionMap map = uniform_map(made, 1, pair);
      const CacheLayout alone = cache_layout(map, one, BaseType::fp16);
      block += alone.block_bytes;
      staging += alone.staging_bytes(100);
      nominal += nominal_bits(map, one, BaseType::fp16);
    }
    EXPECT_EQ(layout.block_bytes, block);
    EXPECT_EQ(layout.staging_bytes(100), staging);
    EXPECT_EQ(layout.bytes(100, 3), 3 * (2 * block + staging));
    EXPECT_DOUBLE_EQ(effective_bits(layout, all, 100),
                     8.0 * static_cast<double>(2 * block + staging) /
                         (100.0 * 2 * 64 * static_cast<double>(heads.size())));
    EXPECT_DOUBLE_EQ(nominal_bits(mixed, all, BaseType::fp16),
                     nominal / static_cast<double>(heads.size()));
  }
}

// Without padding, a full page costs what format_bits says: two descriptions of one thing.
TEST(CacheLayout, FullPagesAgreeWithFormatBits) {
  for (const int head_dim : {64, 80, 96, 128}) {
    for (const char* name : {"per-token", "kivi"}) {
      for (const int group : {32, 64, 128}) {
        const Scheme made = scheme(name, group);
        const ModelGeometry model = geometry(1, 4, head_dim);
        for (const CodecInfo& codec : codecs()) {
          const PrecisionMap map = uniform_map(made, 1, {codec.codec, codec.codec});
          if (!made.objection(map.layers[0].of(0)).empty()) continue;
          const CacheLayout layout = cache_layout(map, model, BaseType::fp16);
          const double elements = 4.0 * head_dim * layout.page_tokens;
          EXPECT_DOUBLE_EQ(
              8.0 * static_cast<double>(layout.keys[0][0].page_bytes) / elements,
              format_bits(map.key_format(map.layers[0].of(0)), head_dim, BaseType::fp16));
          EXPECT_DOUBLE_EQ(
              8.0 * static_cast<double>(layout.values[0][0].page_bytes) / elements,
              format_bits(map.value_format(map.layers[0].of(0)), head_dim, BaseType::fp16));
        }
      }
    }
  }
}

// What a published cache would take, against what the simulation of it allocates.
//   K4: codes 100 * 2 * 64 / 2 = 6400, 8 bytes per token and head 1600; V2: 3200 + 1600
//   pages of floats: 2 * 64 * 64 * 4 = 32768 each, and two exact tokens of 2 * 64 * 2 = 256 a side
TEST(CacheLayout, SimulatedSidesCostWhatIsPublishedAndAllocateMore) {
  const ModelGeometry model = geometry(1, 2, 64);
  const PrecisionMap map = uniform_map(scheme("kvtuner"), 1, {Codec::int4, Codec::int2});
  const CacheLayout layout = cache_layout(map, model, BaseType::fp16);
  EXPECT_EQ(layout.bytes(0, 1), 0);
  EXPECT_EQ(layout.bytes(100, 1), 8000 + 4800);
  EXPECT_EQ(layout.bytes(101, 3, 50), 3 * (8000 + 4800 + 2 * 256));  // one token came after a flush
  EXPECT_EQ(layout.allocated_bytes(100), 2 * 2 * 32768 + 2 * 2 * 256);
  EXPECT_EQ(effective_bits(layout, model, 100), 4.0);  // the mean of 5 and 3

  const PrecisionMap narrow = uniform_map(scheme("kvtuner-bf16"), 1, {Codec::int4, Codec::int2});
  EXPECT_EQ(effective_bits(cache_layout(narrow, model, BaseType::bf16), model, 100), 3.5);
  Format symmetric = narrow.key_format(Pair{Codec::int4, Codec::int2});
  symmetric.symmetric = true;
  EXPECT_EQ(format_bits(symmetric, 128, BaseType::fp16), 4.125);
  EXPECT_EQ(format_bits(map.key_format(Pair{Codec::int4, Codec::int2}), 128, BaseType::fp16), 4.5);
  EXPECT_EQ(format_bits(narrow.key_format(Pair{Codec::int4, Codec::int2}), 128, BaseType::fp16),
            4.25);  // as KVTuner counts
}

// 33 tokens, of which floor((33 - 6) / 11) * 11 = 22 are coded: 22 * 64 / 11 words of 4 bytes with
// 4 of parameters, 11 exact tokens of 128 bytes, and a page of values.
TEST(CacheLayout, WordsOf11Tokens) {
  const ModelGeometry model = geometry(1, 1, 64);
  const PrecisionMap map = uniform_map(scheme("kvmix-11pack"), 1, {Codec::int3, Codec::base});
  const CacheLayout layout = cache_layout(map, model, BaseType::fp16);
  EXPECT_EQ(layout.bytes(33, 1), 1024 + 1408 + 8192);
  EXPECT_DOUBLE_EQ(format_bits(map.key_format(Pair{Codec::int3, Codec::base}), 64, BaseType::fp16),
                   64.0 / 11);
}

TEST(CacheLayout, HistoryThatIsCodedAgainTakesTokensOneByOne) {
  const ModelGeometry model = geometry(1, 1, 64);
  const auto chunk = [&](const char* name, int64_t tokens, int64_t wanted) {
    const PrecisionMap map = uniform_map(scheme(name), 1, {Codec::int4, Codec::int4});
    return cache_layout(map, model, BaseType::fp16).longest_chunk(tokens, 50, wanted);
  };
  EXPECT_EQ(chunk("kvtuner", 0, 30), 30);
  EXPECT_EQ(chunk("kvtuner", 30, 30), 20);  // to the prompt's end
  EXPECT_EQ(chunk("kvtuner", 50, 30), 1);
  EXPECT_EQ(chunk("kivi", 30, 30), 30);
  EXPECT_EQ(chunk("kvmix-11pack", 50, 30), 30);
}

}  // namespace
}  // namespace kvsweep
