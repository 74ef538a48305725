#include "core/rng.hpp"

#include "core/fnv.hpp"

namespace kvsweep {
namespace {

// The odd constant of splitmix64: 2^64 divided by the golden ratio.
constexpr uint64_t kGolden = 0x9e3779b97f4a7c15ULL;

// Finaliser of splitmix64 (variant 13 of Stafford): a bijection of 64-bit words.
uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

}  // namespace

// The key is where the splitmix64 sequence of this stream starts. Both seed and stream name go
// through the finaliser, so that neighbouring seeds or similar names start far from each other;
// draw i is then mix(key + (i + 1) * golden), output i of splitmix64 started at `key`.
Rng::Rng(uint64_t seed, std::string_view stream, uint64_t counter)
    : key_(mix(seed + kGolden) ^ mix(fnv1a64(stream))), counter_(counter) {}

uint64_t Rng::next() {
  return mix(key_ + ++counter_ * kGolden);
}

double Rng::uniform() {
  return static_cast<double>(next() >> 11) * 0x1.0p-53;
}

uint64_t Rng::below(uint64_t n) {
  // 2^64 mod n values at the low end would make small remainders more frequent: drop them.
  const uint64_t reject_below = (0 - n) % n;
  uint64_t draw = next();
  while (draw < reject_below) draw = next();
  return draw % n;
}

int64_t Rng::between(int64_t low, int64_t high) {
  const uint64_t span = static_cast<uint64_t>(high) - static_cast<uint64_t>(low) + 1;
  const uint64_t offset = span == 0 ? next() : below(span);
  return static_cast<int64_t>(static_cast<uint64_t>(low) + offset);
}

}  // namespace kvsweep
