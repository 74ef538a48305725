#include "worker/model/gemm.hpp"

#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/linear.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "core/rng.hpp"
#include "worker/model/mkl_packed.hpp"
#include "worker/model/parallel.hpp"

namespace kvsweep::model {
namespace {

constexpr int64_t kBlockRows = 256;     // rows of one GEMM call
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
  const at::Tensor input = at::from_blob(const_cast<float*>(x), {rows, in}, at::kFloat);
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
    const int64_t count = std::max(std::min(kBlockRows, rows - row), rule.minimum);
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
  auto state = std::make_unique<Linear::State>();
  state->in = in;
  state->out = out;
  state->packed = packed_;
  if (bias != nullptr) state->bias.assign(bias, bias + out);
  const int64_t step = slice_columns(out);
  for (int64_t first = 0; first < out; first += step) {
    const int64_t columns = std::min(step, out - first);
    const float* rows = weight + first * in;
    const size_t bytes = packed_ ? MklPacked::instance()->pack_bytes(columns, in)
                                 : static_cast<size_t>(columns * in) * sizeof(float);
    Pages pages(bytes);
    if (packed_) {
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

// Row counts and offsets at which a block is compared with the same rows computed kBlockRows at
// once: all small counts, then some around multiples of the kernels' tile heights, then all.
std::vector<int64_t> counts_to_try() {
  std::vector<int64_t> counts;
  for (int64_t rows = 1; rows <= 50; ++rows) counts.push_back(rows);
  for (const int64_t rows : {63, 64, 65, 77, 96, 111, 127, 128, 129, 167, 192, 201, 255}) {
    counts.push_back(rows);
  }
  return counts;
}

// The smallest minimum in {1, 4, 8, 16, 32} above which no count differed.
RowRule rule_from(const std::vector<int64_t>& differing) {
  RowRule rule;
  const int64_t worst =
      differing.empty() ? 0 : *std::max_element(differing.begin(), differing.end());
  for (const int64_t minimum : {1, 4, 8, 16, 32}) {
    rule.minimum = minimum;
    if (worst < minimum) return rule;
  }
  rule.invariant = false;
  return rule;
}

}  // namespace

RowRule Gemm::rule_for(const Linear& linear) {
  const Linear::State& state = *linear.state_;
  RowRule result;
  for (const Slice* slice : {&state.slices.front(), &state.slices.back()}) {
    const auto [at, added] = rules_.emplace(std::pair(state.in, slice->columns), RowRule{});
    if (added) {
      std::vector<float> x(static_cast<size_t>(kBlockRows * state.in));
      Rng rng(1, "gemm rows");
      for (float& value : x) value = static_cast<float>(rng.uniform() * 2 - 1);
      const int64_t columns = slice->columns;
      std::vector<float> all(static_cast<size_t>(kBlockRows * columns));
      std::vector<float> some(all.size());
      state.multiply(*slice, x.data(), kBlockRows, all.data(), columns);
      std::vector<int64_t> differing;
      for (const int64_t rows : counts_to_try()) {
        for (const int64_t first : {int64_t{0}, rows * 7 % (kBlockRows - rows)}) {
          state.multiply(*slice, x.data() + first * state.in, rows, some.data(), columns);
          const size_t bytes = static_cast<size_t>(rows * columns) * sizeof(float);
          if (std::memcmp(some.data(), all.data() + first * columns, bytes) != 0) {
            differing.push_back(rows);
          }
        }
      }
      at->second = rule_from(differing);
    }
    result.minimum = std::max(result.minimum, at->second.minimum);
    result.invariant = result.invariant && at->second.invariant;
  }
  batch_invariant_ = batch_invariant_ && result.invariant;
  return result;
}

}  // namespace kvsweep::model
