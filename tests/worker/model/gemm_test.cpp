#include "worker/model/gemm.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/rng.hpp"
#include "worker/model/parallel.hpp"

namespace kvsweep::model {
namespace {

struct Shape {
  int64_t out;
  int64_t in;
};

std::vector<float> random_values(int64_t count, uint64_t seed) {
  Rng rng(seed, "gemm test");
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = static_cast<float>(rng.uniform() * 2 - 1);
  return values;
}

struct Input {
  explicit Input(const Shape& shape)
      : weight(random_values(shape.out * shape.in, 1)),
        bias(random_values(shape.out, 2)),
        x(random_values((kRows + kPaddingRows) * shape.in, 3)) {}
  static constexpr int64_t kRows = 300;
  std::vector<float> weight;
  std::vector<float> bias;
  std::vector<float> x;
};

std::vector<float> apply(const Linear& linear, const float* x, int64_t rows) {
  std::vector<float> y(static_cast<size_t>((rows + kPaddingRows) * linear.out()));
  linear.apply(x, rows, y.data());
  y.resize(static_cast<size_t>(rows * linear.out()));
  return y;
}

class GemmTest : public testing::TestWithParam<Gemm::Backend> {
 protected:
  void TearDown() override { set_threads(1); }
};

const Shape kShapes[] = {{960, 576}, {576, 1536}, {67, 27}, {1, 5}, {300, 44}, {2100, 64}};

TEST_P(GemmTest, EqualsTheDefinition) {
  for (const Shape& shape : kShapes) {
    const Input input(shape);
    Gemm gemm(GetParam());
    const Linear linear = gemm.pack(input.weight.data(), shape.out, shape.in, input.bias.data());
    const auto y = apply(linear, input.x.data(), 9);
    for (int64_t row = 0; row < 9; ++row) {
      for (int64_t column = 0; column < shape.out; ++column) {
        double expected = input.bias[column];
        for (int64_t i = 0; i < shape.in; ++i) {
          expected += static_cast<double>(input.x[row * shape.in + i]) *
                      input.weight[column * shape.in + i];
        }
        ASSERT_NEAR(y[row * shape.out + column], expected, 1e-4) << shape.out << "x" << shape.in;
      }
    }
  }
}

// Rows computed few at a time, from any offset and on any number of threads, against all at once.
TEST_P(GemmTest, RowsDoNotDependOnEachOtherWhenItSaysSo) {
  for (const Shape& shape : kShapes) {
    const Input input(shape);
    Gemm gemm(GetParam());
    const Linear linear = gemm.pack(input.weight.data(), shape.out, shape.in, nullptr);
    if (!gemm.batch_invariant()) continue;
    const auto all = apply(linear, input.x.data(), Input::kRows);
    for (const int64_t rows : {1, 2, 3, 5, 16, 17, 60, 256, 257, 299}) {
      set_threads(rows % 2 == 0 ? 2 : 1);
      const int64_t first = (rows * 11) % (Input::kRows - rows);
      const auto some = apply(linear, input.x.data() + first * shape.in, rows);
      const std::vector<float> same(all.begin() + first * shape.out,
                                    all.begin() + (first + rows) * shape.out);
      EXPECT_TRUE(some == same) << rows << " rows of " << shape.out << "x" << shape.in;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, GemmTest,
                         testing::Values(Gemm::Backend::best, Gemm::Backend::aten));

TEST(RunTasks, RunsEachOnceAndPassesExceptionsOn) {
  for (const int threads : {1, 2, 5}) {
    set_threads(threads);
    std::vector<int> runs(100);
    run_tasks(100, [&](int64_t i) { ++runs[static_cast<size_t>(i)]; });
    EXPECT_EQ(runs, std::vector<int>(100, 1));
    EXPECT_THROW(run_tasks(10,
                           [](int64_t i) {
                             if (i == 7) throw std::runtime_error("seven");
                           }),
                 std::runtime_error);
    run_tasks(0, [](int64_t) { FAIL(); });
  }
  set_threads(1);
}

}  // namespace
}  // namespace kvsweep::model
