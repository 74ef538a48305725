// How long 100 rows of RULER take to make, at 1k to 16k tokens, counted with a model's tokenizer:
//   kvsweep_bench_ruler_speed MODEL DATA_DIR
// Before a time is printed, every row's length is checked by tokenizing it whole.
#include <chrono>
#include <cstdio>
#include <ctime>

#include "bench/must.hpp"
#include "worker/task/ruler/generator.hpp"
#include "worker/text/tokenizer.hpp"

namespace {

using namespace kvsweep;
using bench::must;
namespace ruler = task::ruler;

constexpr int kRows = 100;

struct Seconds {
  double wall;
  double cpu;
};

Seconds seconds_of(const ruler::GeneratorOptions& options, const ruler::Material& material,
                   const text::Tokenizer& tokenizer, int64_t& tokens) {
  const std::clock_t cpu_start = std::clock();
  const auto start = std::chrono::steady_clock::now();
  const auto generator = must(ruler::Generator::open(
      options, material, [&](const std::string& text) { return tokenizer.count(text, true); }));
  std::vector<ruler::Row> rows;
  for (int i = 0; i < kRows; ++i) rows.push_back(must(generator.row(i)));
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  const double cpu = static_cast<double>(std::clock() - cpu_start) / CLOCKS_PER_SEC;
  tokens = 0;
  for (const ruler::Row& row : rows) {
    const auto ids = must(tokenizer.encode(row.input + row.answer_prefix, true));
    const auto length = static_cast<int64_t>(ids.size()) + generator.answer_tokens();
    if (length != row.length || length > options.length) {
      std::fprintf(stderr, "row %lld has %lld tokens, not %lld\n",
                   static_cast<long long>(row.index), static_cast<long long>(length),
                   static_cast<long long>(row.length));
      std::exit(1);
    }
    tokens += length;
  }
  return {time.count(), cpu};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s MODEL DATA_DIR\n", argv[0]);
    return 2;
  }
  const auto tokenizer = must(text::Tokenizer::load(argv[1]));
  const auto material = must(ruler::load_material(argv[2], true));
  std::printf("# %s\n", bench::processor().c_str());
  std::printf("subtask,length,rows,seconds,cpu_seconds,mean_length\n");
  for (const std::string& subtask : ruler::subtask_names()) {
    for (const int64_t length : {1024, 4096, 16384}) {
      int64_t tokens = 0;
      const ruler::GeneratorOptions options{subtask, length, 42, "bench", {}};
      const Seconds seconds = seconds_of(options, material, tokenizer, tokens);
      std::printf("%s,%lld,%d,%.3f,%.3f,%.1f\n", subtask.c_str(), static_cast<long long>(length),
                  kRows, seconds.wall, seconds.cpu, static_cast<double>(tokens) / kRows);
      std::fflush(stdout);
    }
  }
  return 0;
}
