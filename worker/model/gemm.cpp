#include "worker/model/gemm.hpp"

#include <ATen/core/Tensor.h>
#include <ATen/ops/clone.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/linear.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <new>
#include <numeric>

#include "core/rng.hpp"
#include "worker/model/mkl_packed.hpp"
#include "worker/model/parallel.hpp"

namespace kvsweep::model {
namespace {

// Paddings to try; each divides the rows of one GEMM call.
constexpr int64_t kMultiples[] = {1, 4, 8, 12, 16, 24, 48};
constexpr int64_t kBlockRows = 240;
constexpr int64_t kSliceColumns = 256;  // wished for; at least kMinSlices slices
constexpr int64_t kMinSlices = 4;
constexpr int64_t kMinSliceColumns = 64;

// Zero pages on demand: MKL asks for more than it touches, and what is not touched costs nothing.
class Pages {
 public:
  explicit Pages(size_t bytes) : bytes_(bytes) {
    memory_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory_ == MAP_FAILED) throw std::bad_alloc();
  }
  Pages(Pages&& other) noexcept : memory_(other.memory_), bytes_(other.bytes_) {
    other.memory_ = nullptr;
  }
  Pages& operator=(Pages&&) = delete;
  ~Pages() {
    if (memory_ != nullptr) munmap(memory_, bytes_);
  }
  void* get() const { return memory_; }

 private:
  void* memory_ = nullptr;
  size_t bytes_ = 0;
};

struct Slice {
  int64_t first = 0;  // output column
  int64_t columns = 0;
  Pages weight;  // packed, or [columns, in]
};

// Columns of each slice but the last: a multiple of 16, so that vectors are full, and the same
// whatever the number of threads.
int64_t slice_columns(int64_t out) {
  int64_t columns = std::min(kSliceColumns, (out + kMinSlices - 1) / kMinSlices);
  columns = std::max(columns, kMinSliceColumns);
  return std::min(out, (columns + 15) / 16 * 16);
}

int64_t padded(int64_t rows, int64_t multiple) {
  return (rows + multiple - 1) / multiple * multiple;
}

}  // namespace

struct Linear::State {
  int64_t in = 0;
  int64_t out = 0;
  bool packed = false;
  std::vector<Slice> slices;
  std::vector<float> bias;  // empty = none
  RowRule rule;

  // One GEMM call: exactly `rows` rows, no padding.
  void multiply(const Slice& slice, const float* x, int64_t rows, float* y, int64_t y_stride) const;
  void add_bias(const Slice& slice, int64_t rows, float* y) const;
  void apply_slice(const Slice& slice, const float* x, int64_t rows, float* y) const;
};

void Linear::State::multiply(const Slice& slice, const float* x, int64_t rows, float* y,
                             int64_t y_stride) const {
  if (packed) {
    MklPacked::instance()->multiply(x, rows, in, slice.weight.get(), slice.columns, y, y_stride);
    return;
  }
  // A copy, because MKL's result also depends on how the rows lie to a cache line.
  const at::Tensor input = at::from_blob(const_cast<float*>(x), {rows, in}, at::kFloat).clone();
  const at::Tensor weight = at::from_blob(slice.weight.get(), {slice.columns, in}, at::kFloat);
  at::from_blob(y, {rows, slice.columns}, {y_stride, 1}, at::kFloat)
      .copy_(at::linear(input, weight));
}

void Linear::State::add_bias(const Slice& slice, int64_t rows, float* y) const {
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < slice.columns; ++i) y[row * out + i] += bias[slice.first + i];
  }
}

void Linear::State::apply_slice(const Slice& slice, const float* x, int64_t rows, float* y) const {
  for (int64_t row = 0; row < rows; row += kBlockRows) {
    const int64_t count = padded(std::min(kBlockRows, rows - row), rule.multiple);
    float* block = y + row * out + slice.first;
    multiply(slice, x + row * in, count, block, out);
    if (!bias.empty()) add_bias(slice, count, block);
  }
}

Linear::Linear(std::unique_ptr<State> state) : state_(std::move(state)) {}
Linear::Linear(Linear&&) noexcept = default;
Linear& Linear::operator=(Linear&&) noexcept = default;
Linear::~Linear() = default;

int64_t Linear::in() const {
  return state_->in;
}
int64_t Linear::out() const {
  return state_->out;
}

void Linear::apply(const float* x, int64_t rows, float* y) const {
  if (rows == 0) return;
  run_tasks(static_cast<int64_t>(state_->slices.size()), [&](int64_t i) {
    state_->apply_slice(state_->slices[static_cast<size_t>(i)], x, rows, y);
  });
}

Gemm::Gemm(Backend backend)
    : packed_(backend == Backend::best && MklPacked::instance() != nullptr) {}

Linear Gemm::pack(const float* weight, int64_t out, int64_t in, const float* bias) {
  Linear linear = build(weight, out, in, packed_);
  if (packed_ && !linear.state_->rule.invariant) linear = build(weight, out, in, false);
  if (bias != nullptr) linear.state_->bias.assign(bias, bias + out);
  batch_invariant_ = batch_invariant_ && linear.state_->rule.invariant;
  return linear;
}

Linear Gemm::build(const float* weight, int64_t out, int64_t in, bool packed) {
  auto state = std::make_unique<Linear::State>();
  state->in = in;
  state->out = out;
  state->packed = packed;
  const int64_t step = slice_columns(out);
  for (int64_t first = 0; first < out; first += step) {
    const int64_t columns = std::min(step, out - first);
    const float* rows = weight + first * in;
    const size_t bytes = packed ? MklPacked::instance()->pack_bytes(columns, in)
                                : static_cast<size_t>(columns * in) * sizeof(float);
    Pages pages(bytes);
    if (packed) {
      MklPacked::instance()->pack(rows, columns, in, pages.get());
    } else {
      std::memcpy(pages.get(), rows, bytes);
    }
    state->slices.push_back({first, columns, std::move(pages)});
  }
  Linear linear(std::move(state));
  linear.state_->rule = rule_for(linear);
  return linear;
}

namespace {

// Row counts at which a slice is compared with the same rows computed kBlockRows at once.
std::vector<int64_t> counts_to_try() {
  std::vector<int64_t> counts;
  for (int64_t rows = 1; rows <= 64; ++rows) counts.push_back(rows);
  for (int64_t rows = 72; rows < kBlockRows; rows += 8) counts.push_back(rows);
  for (const int64_t rows : {77, 100, 129, 132, 167, 191, 201, 228, 239}) counts.push_back(rows);
  return counts;
}

// Where those rows stand among the kBlockRows: at places of every kind within a kernel's tile.
std::vector<int64_t> offsets_to_try(int64_t rows) {
  const int64_t last = kBlockRows - rows;
  std::vector<int64_t> offsets = {0, (rows * 7 + 3) % last};
  if (rows <= 64) offsets.insert(offsets.end(), {1, 6});
  return offsets;
}

// The smallest multiple none of whose counts differed.
RowRule rule_from(const std::vector<int64_t>& differing) {
  for (const int64_t multiple : kMultiples) {
    const bool fails = std::any_of(differing.begin(), differing.end(),
                                   [&](int64_t rows) { return rows % multiple == 0; });
    if (!fails) return {multiple, true};
  }
  return {kMultiples[std::size(kMultiples) - 1], false};
}

// Compares rows of one slice, `multiply(x, rows, y)`, computed few at a time with the same rows
// computed kBlockRows at once.
template <typename Multiply>
class SliceTest {
 public:
  SliceTest(int64_t in, int64_t columns, const Multiply& multiply)
      : in_(in), columns_(columns), multiply_(multiply) {
    Rng rng(1, "gemm rows");
    x_.resize(static_cast<size_t>(kBlockRows * in));
    for (float& value : x_) value = static_cast<float>(rng.uniform() * 2 - 1);
    moved_.resize(x_.size() + kLargestShift);
    all_.resize(static_cast<size_t>(kBlockRows * columns));
    some_.resize(all_.size());
    multiply_(x_.data(), kBlockRows, all_.data());
  }

  RowRule run() {
    for (const int64_t rows : counts_to_try()) {
      for (const int64_t first : offsets_to_try(rows)) compare(x_.data(), first, rows);
    }
    // Elsewhere relative to a cache line, which libraries also choose kernels by.
    for (const int64_t shift : {int64_t{1}, int64_t{4}, kLargestShift}) {
      std::copy(x_.begin(), x_.end(), moved_.begin() + shift);
      for (const int64_t rows : kMultiples) compare(moved_.data() + shift, 0, rows);
      compare(moved_.data() + shift, 0, kBlockRows);
    }
    return rule_from(differing_);
  }

 private:
  static constexpr int64_t kLargestShift = 8;  // floats

  void compare(const float* x, int64_t first, int64_t rows) {
    multiply_(x + first * in_, rows, some_.data());
    const size_t bytes = static_cast<size_t>(rows * columns_) * sizeof(float);
    if (std::memcmp(some_.data(), all_.data() + first * columns_, bytes) != 0) {
      differing_.push_back(rows);
    }
  }

  int64_t in_;
  int64_t columns_;
  const Multiply& multiply_;
  std::vector<float> x_;
  std::vector<float> moved_;
  std::vector<float> all_;
  std::vector<float> some_;
  std::vector<int64_t> differing_;
};

}  // namespace

// Only the last slice of a matrix may have another width than the first. The check runs on one
// thread, as each slice does in `apply`: with more, the library splits the sums, by its own mood.
RowRule Gemm::rule_for(const Linear& linear) {
  const OneThread one_thread;
  const Linear::State& state = *linear.state_;
  RowRule result;
  for (const Slice* slice : {&state.slices.front(), &state.slices.back()}) {
    const auto [at, added] =
        rules_.emplace(std::tuple(state.packed, state.in, slice->columns), RowRule{});
    if (added) {
      const auto multiply = [&](const float* x, int64_t rows, float* y) {
        state.multiply(*slice, x, rows, y, slice->columns);
      };
      at->second = SliceTest(state.in, slice->columns, multiply).run();
    }
    result.multiple = std::lcm(result.multiple, at->second.multiple);
    result.invariant = result.invariant && at->second.invariant;
  }
  return result;
}

}  // namespace kvsweep::model
