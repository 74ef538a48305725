// Counter-based random numbers: draw i of stream (seed, stream) is a pure function, so a search
// resumes from two integers and the same numbers come out on every machine.
// Generator: splitmix64 (Steele, Lea, Flood, OOPSLA 2014) over a counter.
#pragma once

#include <cstdint>
#include <string_view>

namespace kvsweep {

class Rng {
 public:
  // `stream` separates uses of one seed ("nsga2", "word_problems/report"); streams are independent.
  Rng(uint64_t seed, std::string_view stream, uint64_t counter = 0);

  uint64_t next();                             // uniform over 2^64
  double uniform();                            // [0, 1), 53 bits
  uint64_t below(uint64_t n);                  // [0, n), unbiased (rejection); n > 0
  int64_t between(int64_t low, int64_t high);  // [low, high], both ends included
  bool chance(double p) { return uniform() < p; }

  uint64_t counter() const { return counter_; }  // draws taken: with the seed, the whole state

 private:
  uint64_t key_;
  uint64_t counter_;
};

}  // namespace kvsweep
