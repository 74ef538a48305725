// Blocks of llama.cpp against the `gguf` package of Python, bit for bit (make_block_goldens.py).
#include "worker/model/gguf_blocks.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "core/hash.hpp"
#include "core/json.hpp"

namespace kvsweep::model {
namespace {

constexpr int64_t kBlocks = 1000;

struct Case {
  GgmlType type;
  std::vector<int> halves;  // where the parameters of a block are
};
const std::vector<Case> kCases = {
    {GgmlType::f32, {}},      {GgmlType::f16, {0}},     {GgmlType::bf16, {}},
    {GgmlType::q4_0, {0}},    {GgmlType::q4_1, {0, 2}}, {GgmlType::q5_0, {0}},
    {GgmlType::q5_1, {0, 2}}, {GgmlType::q8_0, {0}},    {GgmlType::q4_k, {0, 2}},
    {GgmlType::q5_k, {0, 2}}, {GgmlType::q6_k, {208}},
};

std::vector<uint8_t> random_bytes(uint64_t seed, size_t count) {
  std::vector<uint8_t> out;
  for (uint64_t state = seed; out.size() < count;) {
    state += 0x9E3779B97F4A7C15u;
    uint64_t z = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    z ^= z >> 31;
    for (int i = 0; i < 8 && out.size() < count; ++i)
      out.push_back(static_cast<uint8_t>(z >> 8 * i));
  }
  return out;
}

// No infinity and no NaN among the parameters.
std::vector<uint8_t> random_blocks(const Case& one) {
  const auto size = static_cast<size_t>(info(one.type).block_bytes);
  auto bytes = random_bytes(static_cast<uint64_t>(one.type), kBlocks * size);
  for (size_t block = 0; block < bytes.size(); block += size) {
    for (const int at : one.halves) {
      uint8_t& top = bytes[block + static_cast<size_t>(at) + 1];
      if ((top & 0x7c) == 0x7c) top &= 0xbf;
    }
    uint8_t& top = bytes[block + size - 1];
    const bool wide = one.type == GgmlType::f32 || one.type == GgmlType::bf16;
    if (wide && (top & 0x7f) == 0x7f && (bytes[block + size - 2] & 0x80) != 0) top &= 0xbf;
  }
  return bytes;
}

TEST(GgufBlocks, EqualPython) {
  const auto golden =
      read_json_file(KVSWEEP_SOURCE_DIR "/tests/worker/model/golden/gguf_blocks.json");
  ASSERT_TRUE(golden.ok()) << golden.error().message;
  ASSERT_EQ(golden->size(), kCases.size());
  for (const Case& one : kCases) {
    const std::string name(info(one.type).name);
    SCOPED_TRACE(name);
    const auto bytes = random_blocks(one);
    std::vector<float> out(static_cast<size_t>(kBlocks * info(one.type).block_elements));
    dequantize(one.type, bytes.data(), static_cast<int64_t>(out.size()), out.data());
    const Json expected = golden->at(name);
    for (size_t i = 0; i < expected["first"].size(); ++i) {
      EXPECT_EQ(std::bit_cast<uint32_t>(out[i]), expected["first"][i].get<uint32_t>()) << i;
    }
    const std::string_view values(reinterpret_cast<const char*>(out.data()), out.size() * 4);
    EXPECT_EQ(sha256_hex(values), expected["sha256"].get<std::string>());
  }
}

// Derived by hand. d = 0.5 (0x3800), m = 2 (0x4000), byte 0 = 0x9f: element 0 has code 15, element
// 16 has 9: 0.5 x 15 + 2 = 9.5, 0.5 x 9 + 2 = 6.5; the others have code 0.
TEST(GgufBlocks, Q4_1ByHand) {
  std::vector<uint8_t> block(20, 0);
  block[1] = 0x38;
  block[3] = 0x40;
  block[4] = 0x9f;
  std::vector<float> out(32);
  dequantize(GgmlType::q4_1, block.data(), 32, out.data());
  EXPECT_EQ(out[0], 9.5f);
  EXPECT_EQ(out[16], 6.5f);
  EXPECT_EQ(out[1], 2.0f);
}

// Parameters that are not finite stay so: the loader then refuses the tensor.
TEST(GgufBlocks, KeepWhatIsNotFinite) {
  for (const Case& one : kCases) {
    if (one.halves.empty()) continue;
    std::vector<uint8_t> block(static_cast<size_t>(info(one.type).block_bytes), 0x11);
    block[static_cast<size_t>(one.halves[0])] = 0x01;
    block[static_cast<size_t>(one.halves[0]) + 1] = 0x7e;  // NaN
    std::vector<float> out(static_cast<size_t>(info(one.type).block_elements));
    dequantize(one.type, block.data(), static_cast<int64_t>(out.size()), out.data());
    EXPECT_TRUE(std::isnan(out[0])) << info(one.type).name;
  }
}

}  // namespace
}  // namespace kvsweep::model
