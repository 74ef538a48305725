// Python's random.Random for an integer seed: what lm-evaluation-harness draws few-shot examples
// with.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace kvsweep::task {

// MT19937 (Matsumoto and Nishimura, ACM TOMACS 8(1), 1998), seeded as CPython seeds it: by
// init_by_array of the authors' reference code with the 32-bit words of the seed as the key.
// random.Random(1234).getrandbits(32) gives 4150886329, then 3342196574 (any CPython 3).
// Not thread-safe.
class PythonRandom {
 public:
  explicit PythonRandom(uint32_t seed);

  // `bits` in 1..32: the top bits of one output.
  uint32_t getrandbits(int bits);
  // Uniform in [0, n): the top bits of an output, drawn again while >= n. n > 0.
  uint32_t randbelow(uint32_t n);
  // Positions that random.sample(population, count) picks from a population of n, in order;
  // distinct. count <= n. Two ways, chosen as CPython chooses: for n up to 21 + 4^ceil(log4(3
  // count)) a pool whose holes are filled from its end, otherwise draws with the seen ones drawn
  // again. O(count^2) expected (counts are small), or O(n) with the pool.
  std::vector<uint32_t> sample(uint32_t n, uint32_t count);

 private:
  static constexpr size_t kWords = 624;

  void init_genrand(uint32_t seed);
  void init_by_word(uint32_t key);
  void twist();
  uint32_t next();

  std::array<uint32_t, kWords> state_{};
  size_t position_ = kWords;  // next word to hand out; kWords = twist first
};

}  // namespace kvsweep::task
