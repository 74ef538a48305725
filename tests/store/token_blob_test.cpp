#include "store/token_blob.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace kvsweep::store {
namespace {

std::string_view view(const std::vector<uint8_t>& blob) {
  return {reinterpret_cast<const char*>(blob.data()), blob.size()};
}

// LEB128 by hand: 300 = 0b10'0101100 -> low seven bits 0101100 with the high bit set = 0xAC, then
// 0b10 = 0x02. 16384 = 2^14 -> 80 80 01.
TEST(TokenBlob, KnownBytes) {
  EXPECT_EQ(pack_tokens({5, 300, 16384}),
            (std::vector<uint8_t>{0x05, 0xAC, 0x02, 0x80, 0x80, 0x01}));
  EXPECT_TRUE(pack_tokens({}).empty());
}

TEST(TokenBlob, RoundTripsEveryLength) {
  std::vector<int32_t> tokens = {0, 1, 127, 128, 16383, 16384, 2097151, 2097152, 0x7fffffff};
  std::mt19937 random(7);
  for (int i = 0; i < 5000; ++i) {
    tokens.push_back(static_cast<int32_t>(random() >> (1 + random() % 31)));
  }
  const auto back = unpack_tokens(view(pack_tokens(tokens)));
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(*back, tokens);
}

TEST(TokenBlob, RefusesDamage) {
  EXPECT_EQ(unpack_tokens(std::string_view("\x80", 1)).error().code, ErrorCode::bad_input);
  // Six continuation bytes: more than 32 bits.
  EXPECT_FALSE(unpack_tokens(std::string_view("\xff\xff\xff\xff\xff\x01", 6)).ok());
  // Five bytes that make 2^32.
  EXPECT_FALSE(unpack_tokens(std::string_view("\x80\x80\x80\x80\x10", 5)).ok());
  // 2^32 - 1 is the last that fits.
  EXPECT_TRUE(unpack_tokens(std::string_view("\xff\xff\xff\xff\x0f", 5)).ok());
}

}  // namespace
}  // namespace kvsweep::store
