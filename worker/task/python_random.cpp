#include "worker/task/python_random.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

namespace kvsweep::task {
namespace {

// Pool sizes up to this are copied (CPython's random.sample).
uint32_t pool_limit(uint32_t count) {
  uint32_t limit = 21;
  if (count > 5) {
    uint32_t power = 1;
    while (power < 3 * count) power *= 4;
    limit += power;
  }
  return limit;
}

}  // namespace

PythonRandom::PythonRandom(uint32_t seed) {
  init_by_word(seed);
}

void PythonRandom::init_genrand(uint32_t seed) {
  state_[0] = seed;
  for (uint32_t i = 1; i < kWords; ++i) {
    state_[i] = 1812433253U * (state_[i - 1] ^ (state_[i - 1] >> 30)) + i;
  }
}

// init_by_array of the reference code for a key of one word.
void PythonRandom::init_by_word(uint32_t key) {
  init_genrand(19650218U);
  uint32_t i = 1;
  const auto mixed = [&](uint32_t multiplier) {
    return state_[i] ^ ((state_[i - 1] ^ (state_[i - 1] >> 30)) * multiplier);
  };
  const auto advance = [&] {
    if (++i < kWords) return;
    state_[0] = state_[kWords - 1];
    i = 1;
  };
  for (size_t k = 0; k < kWords; ++k, advance()) state_[i] = mixed(1664525U) + key;
  for (size_t k = 0; k + 1 < kWords; ++k, advance()) state_[i] = mixed(1566083941U) - i;
  state_[0] = 0x80000000U;
}

void PythonRandom::twist() {
  constexpr size_t kShift = 397;
  for (size_t i = 0; i < kWords; ++i) {
    const uint32_t y = (state_[i] & 0x80000000U) | (state_[(i + 1) % kWords] & 0x7fffffffU);
    state_[i] = state_[(i + kShift) % kWords] ^ (y >> 1) ^ ((y & 1U) != 0 ? 0x9908b0dfU : 0U);
  }
  position_ = 0;
}

uint32_t PythonRandom::next() {
  if (position_ == kWords) twist();
  uint32_t y = state_[position_++];
  y ^= y >> 11;
  y ^= (y << 7) & 0x9d2c5680U;
  y ^= (y << 15) & 0xefc60000U;
  return y ^ (y >> 18);
}

uint32_t PythonRandom::getrandbits(int bits) {
  return next() >> (32 - bits);
}

uint32_t PythonRandom::randbelow(uint32_t n) {
  const int bits = std::bit_width(n);
  uint32_t draw = getrandbits(bits);
  while (draw >= n) draw = getrandbits(bits);
  return draw;
}

std::vector<uint32_t> PythonRandom::sample(uint32_t n, uint32_t count) {
  std::vector<uint32_t> picked;
  picked.reserve(count);
  if (n <= pool_limit(count)) {
    std::vector<uint32_t> pool(n);
    std::iota(pool.begin(), pool.end(), 0U);
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t j = randbelow(n - i);
      picked.push_back(pool[j]);
      pool[j] = pool[n - i - 1];
    }
    return picked;
  }
  while (picked.size() < count) {
    const uint32_t j = randbelow(n);
    if (std::find(picked.begin(), picked.end(), j) == picked.end()) picked.push_back(j);
  }
  return picked;
}

}  // namespace kvsweep::task
