// Linear layers whose rows do not depend on each other: y = x W^T + b in fp32 on the CPU.
//
// MKL, like every GEMM library, chooses a kernel by the number of rows, so one row's result can
// depend on how many others are computed with it. Three measures make it independent:
//   1. weights are packed once (MKL's packed GEMM) for many rows, which fixes the kernel, and cut
//      into slices of output columns, the same for every thread count; each slice is computed by
//      one thread, so the reduction is never split;
//   2. where results still differ (small matrices, or no packed GEMM in this libtorch), rows are
//      padded to a multiple of what the kernels treat at once;
//   3. `Gemm` tests each shape when a model is loaded, with real slices and random rows, and
//      reports what it found.
// Packing also makes small batches 1.5 to 2 times faster than at::linear, which packs on each call.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

namespace kvsweep::model {

// Room that x and y of Linear::apply must have beyond their last row: padding reads and writes it.
inline constexpr int64_t kPaddingRows = 48;

// To what rows of a shape are padded so that results do not depend on their number.
struct RowRule {
  int64_t multiple = 1;
  bool invariant = true;  // false: none of the multiples tried was enough
};

class Linear {
 public:
  Linear(Linear&&) noexcept;
  Linear& operator=(Linear&&) noexcept;
  ~Linear();

  int64_t in() const;
  int64_t out() const;

  // x [rows, in], y [rows, out], both with room for kPaddingRows more rows. Runs on the threads of
  // run_tasks.
  void apply(const float* x, int64_t rows, float* y) const;

 private:
  friend class Gemm;
  struct State;
  explicit Linear(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Makes the linear layers of one model. Not thread-safe.
class Gemm {
 public:
  enum class Backend { best, aten };  // `aten` leaves MKL's packed GEMM out, for tests
  explicit Gemm(Backend backend = Backend::best);

  // weight [out, in] and bias [out] (nullptr = none) are copied. A shape for which the packed GEMM
  // is not invariant is given to at::linear.
  Linear pack(const float* weight, int64_t out, int64_t in, const float* bias);

  // Of all matrices made so far.
  bool batch_invariant() const { return batch_invariant_; }

 private:
  Linear build(const float* weight, int64_t out, int64_t in, bool packed);
  RowRule rule_for(const Linear& linear);

  bool packed_;
  bool batch_invariant_ = true;
  // By (packed, in, columns of a slice).
  std::map<std::tuple<bool, int64_t, int64_t>, RowRule> rules_;
};

}  // namespace kvsweep::model
