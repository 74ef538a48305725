#include "store/token_blob.hpp"

namespace kvsweep::store {

std::vector<uint8_t> pack_tokens(const std::vector<int32_t>& tokens) {
  std::vector<uint8_t> blob;
  blob.reserve(tokens.size() * 3);
  for (const int32_t token : tokens) {
    uint32_t rest = static_cast<uint32_t>(token);
    while (rest >= 0x80) {
      blob.push_back(static_cast<uint8_t>(rest | 0x80));
      rest >>= 7;
    }
    blob.push_back(static_cast<uint8_t>(rest));
  }
  return blob;
}

Result<std::vector<int32_t>> unpack_tokens(std::string_view blob) {
  std::vector<int32_t> tokens;
  tokens.reserve(blob.size() / 2);
  uint64_t value = 0;
  int shift = 0;
  for (const char c : blob) {
    const auto byte = static_cast<uint8_t>(c);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    shift += 7;
    if (value > 0xffffffffULL || shift > 35) {
      return bad_input("a stored token list holds an id beyond 32 bits; the database is damaged");
    }
    if ((byte & 0x80) != 0) continue;
    tokens.push_back(static_cast<int32_t>(static_cast<uint32_t>(value)));
    value = 0;
    shift = 0;
  }
  if (shift != 0) {
    return bad_input("a stored token list ends in the middle of an id; the database is damaged");
  }
  return tokens;
}

}  // namespace kvsweep::store
