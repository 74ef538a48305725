// How many tokens of its draft each sequence of a step should verify.
#pragma once

#include <cstdint>
#include <vector>

namespace kvsweep::engine {

// What a row adds to a step. A step's time is close to a + b * rows: reading the weights takes a,
// whatever the rows. The slope b / a is estimated from the steps that were made, newest first, and
// starts with what is usual.
class StepCost {
 public:
  // A step of `rows` rows took `ms`.
  void observe(int64_t rows, double ms);
  double slope() const;  // above 0

 private:
  double weight_ = 0;  // sums over steps: 1, rows, rows^2, ms, rows ms, weighted
  double rows_ = 0;
  double squares_ = 0;
  double times_ = 0;
  double products_ = 0;
  double usual_ = 0;  // sum of ms / (1 + usual slope * rows), and of its weights
  double seen_ = 0;
};

// A sequence that decodes and has a draft.
struct Offer {
  int64_t most = 0;   // tokens it could verify
  double chance = 0;  // that decoding chooses a token of the draft, once it chose those before
  int64_t count = 0;  // what choose_lengths decides
};

// Of all choices, the one with the most tokens per time: `decoding` sequences give one token each,
// the n-th token of an offer gives chance^n more, and every row adds `slope` to a step of 1. A
// token is verified where that raises the step's rate by its marginal gain, and by enough that an
// error of `slope` does no harm. At most `room` tokens in all. Nothing where nothing pays.
void choose_lengths(double slope, int64_t decoding, int64_t room, std::vector<Offer>& offers);

}  // namespace kvsweep::engine
