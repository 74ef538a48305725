// kvsweep_bench_attention: attention of one decode step over a packed cache against libtorch's fp32
// attention over the same tokens, as CSV.
//   kvsweep_bench_attention [--threads N] [--contexts 8192,32768] [--head-dims 64,128]
//                           [--groups 3,8] [--kv-heads N] [--rounds N] [--maps K4V4,K2V2]
//                           [--schemes per-token,kivi]
// Before anything is timed, every map's outputs are compared with a brute force in double. Then all
// maps and libtorch take turns, round by round, and the medians count, so that other work on the
// machine meets all of them. libtorch's time is the faster of its fused attention and of two
// batched products with a softmax between them. The floor is the bytes that a step must read, at
// the bandwidth that the same threads reach when they sum an array.
#include <ATen/core/Tensor.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/softmax.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "bench/must.hpp"
#include "core/precision_map.hpp"
#include "core/rng.hpp"
#include "core/scheme.hpp"
#include "core/text.hpp"
#include "tests/worker/cache/cache_fixture.hpp"
#include "worker/cache/kv_cache.hpp"
#include "worker/engine/cache_attention.hpp"
#include "worker/engine/environment.hpp"
#include "worker/model/parallel.hpp"

namespace kvsweep::bench {
namespace {

struct Options {
  int threads = 2;
  std::vector<int64_t> contexts = {8192, 32768};
  std::vector<int64_t> head_dims = {64, 128};
  std::vector<int64_t> groups = {3, 8};
  int kv_heads = 4;
  int rounds = 9;
  std::vector<std::string> maps = {"K16V16", "K8V8", "K4V4", "K3V3", "K2V2"};
  std::vector<std::string> schemes = {"per-token", "kivi"};
};

std::vector<int64_t> numbers(const std::string& text) {
  std::vector<int64_t> list;
  for (const std::string& part : split(text, ',')) list.push_back(number(part));
  return list;
}

void set_option(Options& options, const std::string& name, const std::string& value) {
  if (name == "--threads") {
    options.threads = static_cast<int>(number(value));
  } else if (name == "--contexts") {
    options.contexts = numbers(value);
  } else if (name == "--head-dims") {
    options.head_dims = numbers(value);
  } else if (name == "--groups") {
    options.groups = numbers(value);
  } else if (name == "--kv-heads") {
    options.kv_heads = static_cast<int>(number(value));
  } else if (name == "--rounds") {
    options.rounds = static_cast<int>(number(value));
  } else if (name == "--maps") {
    options.maps = split(value, ',');
  } else if (name == "--schemes") {
    options.schemes = split(value, ',');
  } else {
    fail("unknown option " + name);
  }
}

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

struct Shape {
  int64_t context = 0;
  int head_dim = 0;
  int kv_heads = 0;
  int group = 0;
};

// The outputs of every query of a short sequence, in chunks and token by token, against double.
void check(const std::string& scheme, Pair pair, const Shape& shape) {
  cache::testing::Case c;
  c.options.name = scheme;
  c.pairs = {pair};
  c.layers = {{2, shape.head_dim}};
  c.group = shape.group;
  c.prompt = 150;
  c.tokens = 200;
  const cache::testing::Sequence setup(c);
  const cache::testing::Outputs expected = cache::testing::brute_force(setup);
  for (const int64_t chunk : {1, 150}) {
    cache::Pool pool(int64_t{1} << 30);
    cache::KvCache cache(setup.layout, c.prompt, pool);
    const double worst =
        cache::testing::max_difference(cache::testing::run_chunks(setup, {chunk}, cache), expected);
    if (!(worst < 5e-5)) {
      fail(fmt::format("{} {}: attention is off by {}", scheme, to_string(pair), worst));
    }
  }
}

std::vector<float> random_floats(int64_t count, uint64_t seed) {
  Rng rng(seed, "bench attention");
  std::vector<float> values(static_cast<size_t>(count));
  for (float& v : values) v = static_cast<float>(rng.uniform() * 4 - 2);
  return values;
}

// A cache of one layer under one map, filled up to the context.
class Step {
 public:
  Step(const std::string& scheme, const std::string& map, const Shape& shape)
      : name_(scheme + "," + map), shape_(shape), pool_(int64_t{8} << 30) {
    SchemeOptions options;
    options.name = scheme;
    ModelGeometry geometry;
    geometry.layers = {{shape.kv_heads, shape.head_dim}};
    layout_ = cache_layout(uniform_map(must(make_scheme(options)), 1, must(pair_from(map))),
                           geometry, BaseType::fp16);
    cache_ = std::make_unique<cache::KvCache>(layout_, 0, pool_);
    const int64_t width = int64_t{shape.kv_heads} * shape.head_dim;
    rows_ = random_floats(1024 * width, 5);
    queries_ = random_floats(width * shape.group, 6);
    out_.resize(queries_.size());
    for (int64_t done = 0; done < shape.context;) {
      const int64_t now = std::min<int64_t>(1024, shape.context - done);
      must_do(cache_->begin_chunk(now));
      must_do(cache_->append(0, {rows_.data(), rows_.data(), now}));
      cache_->end_layer(0);
      cache_->end_chunk();
      done += now;
    }
  }

  // One token: quantize and append it, attend.
  void run() {
    append_.push_back(seconds_of([&] {
      must_do(cache_->begin_chunk(1));
      must_do(cache_->append(0, {rows_.data(), rows_.data() + 64, 1}));
    }));
    attend_.push_back(seconds_of([&] { attend(); }));
    cache_->end_layer(0);
    cache_->end_chunk();
  }

  // `libtorch`, `floor`: seconds of the other, seconds per byte.
  void print(double libtorch, double floor) const {
    const double attend = median(attend_);
    const int64_t bytes = layout_.bytes(shape_.context, 1);
    fmt::print("{},{},{},{},{:.1f},{:.2f},{:.1f},{:.2f},{},{:.2f}\n", name_, shape_.context,
               shape_.head_dim, shape_.group, attend * 1e6, median(append_) * 1e6, libtorch * 1e6,
               libtorch / attend, bytes, static_cast<double>(bytes) * floor / attend);
    std::fflush(stdout);
  }

 private:
  static void must_do(const Status& status) {
    if (!status.ok()) fail(status.error().message);
  }

  void attend() {
    model::run_tasks(shape_.kv_heads, [&](int64_t head) {
      cache::KvCache::Queries queries;
      const int64_t at = head * shape_.group * shape_.head_dim;
      queries.q = queries_.data() + at;
      queries.out = out_.data() + at;
      queries.token_stride = static_cast<int64_t>(queries_.size());
      queries.head_stride = shape_.head_dim;
      queries.group = shape_.group;
      queries.scale = 1.0f / std::sqrt(static_cast<float>(shape_.head_dim));
      cache_->attend(0, static_cast<int>(head), queries);
    });
  }

  std::string name_;
  Shape shape_;
  cache::Pool pool_;
  CacheLayout layout_;
  std::unique_ptr<cache::KvCache> cache_;
  std::vector<float> rows_;
  std::vector<float> queries_;
  std::vector<float> out_;
  std::vector<double> append_;
  std::vector<double> attend_;
};

class Libtorch {
 public:
  explicit Libtorch(const Shape& s)
      : keys_(at::randn({s.kv_heads, s.context, s.head_dim})),
        values_(at::randn({s.kv_heads, s.context, s.head_dim})),
        queries_(at::randn({s.kv_heads, s.group, s.head_dim})),
        scale_(1.0 / std::sqrt(static_cast<double>(s.head_dim))) {
    const at::Tensor a = products();
    const at::Tensor b = fused();
    if (!a.allclose(b, 1e-4, 1e-5)) fail("libtorch disagrees with itself");
  }

  void run() {
    products_times_.push_back(seconds_of([&] { products(); }));
    fused_times_.push_back(seconds_of([&] { fused(); }));
  }
  double seconds() const { return std::min(median(products_times_), median(fused_times_)); }

 private:
  at::Tensor products() const {
    const at::Tensor scores = at::bmm(queries_.mul(scale_), keys_.transpose(1, 2));
    return at::bmm(at::softmax(scores, -1), values_);
  }
  // The query heads of one KV head as rows of one head: the keys are then read once for all.
  at::Tensor fused() const {
    return at::scaled_dot_product_attention(queries_.unsqueeze(0), keys_.unsqueeze(0),
                                            values_.unsqueeze(0), {}, 0.0, false, scale_)
        .squeeze(0);
  }

  at::Tensor keys_;
  at::Tensor values_;
  at::Tensor queries_;
  double scale_;
  std::vector<double> products_times_;
  std::vector<double> fused_times_;
};

// Seconds per byte that all threads read, summing arrays larger than the nearer caches.
double read_cost(int threads) {
  constexpr int64_t kFloats = int64_t{1} << 25;  // 128 MiB
  std::vector<float> data(static_cast<size_t>(kFloats), 1.0f);
  std::vector<double> times;
  std::vector<double> sums(static_cast<size_t>(threads) * 8);
  for (int round = 0; round < 7; ++round) {
    times.push_back(seconds_of([&] {
      model::run_tasks(threads, [&](int64_t part) {
        const float* from = data.data() + part * (kFloats / threads);
        float lanes[64] = {};
        for (int64_t i = 0; i + 64 <= kFloats / threads; i += 64) {
          for (int lane = 0; lane < 64; ++lane) lanes[lane] += from[i + lane];
        }
        for (const float lane : lanes) sums[static_cast<size_t>(part) * 8] += lane;
      });
    }));
  }
  if (sums[0] <= 0) fail("the sum of ones is not positive");
  return median(times) / (4.0 * kFloats);
}

void measure(const Options& options, const Shape& shape, double floor) {
  Libtorch libtorch(shape);
  std::vector<std::unique_ptr<Step>> steps;
  for (const std::string& scheme : options.schemes) {
    for (const std::string& map : options.maps) {
      if (map == "K16V16" && scheme != options.schemes.front()) continue;  // the same again
      steps.push_back(std::make_unique<Step>(scheme, map, shape));
    }
  }
  for (int round = 0; round < options.rounds; ++round) {
    libtorch.run();
    for (const auto& step : steps) step->run();
  }
  for (const auto& step : steps) step->print(libtorch.seconds(), floor);
}

void run(const Options& options) {
  model::set_threads(options.threads);
  fmt::print("# {}; {} threads; {}\n", processor(), options.threads, engine::numerics_class());
  for (const std::string& scheme : options.schemes) {
    for (const std::string& map : options.maps) {
      for (const int64_t head_dim : options.head_dims) {
        check(scheme, must(pair_from(map)), {0, static_cast<int>(head_dim), 2, 3});
      }
    }
  }
  const double floor = read_cost(options.threads);
  fmt::print("# reads {:.1f} GB/s; {} KV heads; medians of {} rounds\n", 1e-9 / floor,
             options.kv_heads, options.rounds);
  fmt::print(
      "scheme,map,context,head_dim,group,attend_us,append_us,libtorch_us,times_libtorch,bytes,"
      "of_floor\n");
  for (const int64_t context : options.contexts) {
    for (const int64_t head_dim : options.head_dims) {
      for (const int64_t group : options.groups) {
        measure(options,
                {context, static_cast<int>(head_dim), options.kv_heads, static_cast<int>(group)},
                floor);
      }
    }
  }
}

}  // namespace
}  // namespace kvsweep::bench

int main(int count, char** arguments) {
  kvsweep::engine::prepare_environment();
  kvsweep::bench::Options options;
  kvsweep::bench::each_option(count, arguments,
                              [&](const std::string& name, const std::string& value) {
                                kvsweep::bench::set_option(options, name, value);
                              });
  kvsweep::bench::run(options);
  return 0;
}
