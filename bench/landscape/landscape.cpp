// kvsweep_bench_landscape: measures every map of a grouped space of a small model by real
// inference, so that search algorithms can be compared on a truth that is known.
//   kvsweep_bench_landscape --model DIR --out FILE [--shard I/N] [--examples N] [--greedy-examples
//   N]
//                           [--greedy-maps N]
// One line per map: its genome, bytes, and teacher-forced along the gold answers of word_problems,
// split search: token agreement with the unquantized cache, KL and NLL of the gold answer. Every
// map whose rank is a multiple of (maps / greedy-maps) also gets greedy exact match. A run
// continues where FILE ends. The wrapper is bench/landscape/measure; the space is stated in
// `space_of`.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "bench/must.hpp"
#include "core/catalog/page_layout.hpp"
#include "core/scheme.hpp"
#include "core/study_spec.hpp"
#include "core/text.hpp"
#include "search/space/enumeration.hpp"
#include "worker/engine/engine.hpp"
#include "worker/engine/environment.hpp"
#include "worker/service/stop_strings.hpp"
#include "worker/task/task.hpp"
#include "worker/text/tokenizer.hpp"

namespace kvsweep::bench {
namespace {

constexpr BaseType kBase = BaseType::fp16;
constexpr int64_t kContext = 1024;  // where bytes are counted
constexpr int kGroups = 5;

struct Options {
  std::string model;
  std::string out;
  int64_t shard = 0;
  int64_t shards = 1;
  int64_t examples = 100;
  int64_t greedy_examples = 200;
  int64_t greedy_maps = 320;
};

void set_option(Options& options, const std::string& name, const std::string& value) {
  if (name == "--model") {
    options.model = value;
  } else if (name == "--out") {
    options.out = value;
  } else if (name == "--examples") {
    options.examples = number(value);
  } else if (name == "--greedy-examples") {
    options.greedy_examples = number(value);
  } else if (name == "--greedy-maps") {
    options.greedy_maps = number(value);
  } else if (name == "--shard") {
    const std::vector<std::string> parts = split(value, '/');
    if (parts.size() != 2) fail("--shard takes I/N, such as 0/2");
    options.shard = number(parts[0], 0);
    options.shards = number(parts[1], options.shard + 1);
  } else {
    fail("unknown option " + name);
  }
}

Options parse(int count, char** arguments) {
  Options options;
  each_option(count, arguments, [&](const std::string& name, const std::string& value) {
    set_option(options, name, value);
  });
  if (options.model.empty() || options.out.empty()) fail("--model DIR and --out FILE are needed");
  return options;
}

Scheme scheme() {
  return must(make_scheme({.name = "per-token"}));
}

search::Space space_of(const ModelGeometry& geometry) {
  std::vector<Pair> candidates;
  for (const char* pair : {"K8V8", "K8V4", "K4V4", "K4V2", "K2V2"}) {
    candidates.push_back(must(pair_from(pair)));
  }
  return must(
      search::even_groups(geometry.num_layers(), kGroups, candidates, scheme(), geometry, kBase));
}

// The model, its task, and the requests that are the same for every map.
class Bench {
 public:
  explicit Bench(const Options& options)
      : options_(options),
        engine_(must(engine::Engine::load(options.model, {.threads = 1, .max_batch = 64}))),
        tokenizer_(must(text::Tokenizer::load(options.model))),
        space_(space_of(engine_.geometry())) {
    const TaskSpec spec = must(make_task({.name = "word_problems", .shots = 0, .split = "search"}));
    task_ = must(task::open_task(spec.protocol, {}));
    const int64_t wanted = std::max(options.examples, options.greedy_examples);
    if (wanted > task_->size()) fail(fmt::format("the split has {} examples", task_->size()));
    for (int64_t i = 0; i < wanted; ++i) {
      examples_.push_back(must(task_->example(i)));
      engine::SequenceRequest request;
      request.prompt = must(tokenizer_.encode(examples_.back().prompt, true));
      request.max_new_tokens = spec.protocol.max_new_tokens;
      if (i < options.greedy_examples) greedy_.push_back(request);
      request.reference = must(tokenizer_.encode(" " + examples_.back().golds.front(), false));
      if (i < options.examples) forced_.push_back(std::move(request));
    }
    stride_ = std::max<int64_t>(1, maps() / options.greedy_maps);
  }

  int64_t maps() const { return static_cast<int64_t>(space_.size()); }

  std::string line(int64_t rank) {
    const search::Genome genome = search::genome_at(space_, rank);
    const PrecisionMap map = space_.decode(genome, scheme());
    const CacheLayout layout = cache_layout(map, engine_.geometry(), kBase);
    std::string genes;
    for (int gene : genome) genes += std::to_string(gene);
    double agreement = 0;
    double kl = 0;
    double nll = 0;
    const auto outputs = must(engine_.run(map, forced_, {.base = kBase}));
    for (const engine::SequenceOutput& output : outputs) {
      agreement += output.token_agreement;
      kl += output.kl;
      nll += output.nll;
    }
    const auto n = static_cast<double>(outputs.size());
    return fmt::format("{},{},{},{:.6f},{:.6e},{:.6f},{}", rank, genes, layout.bytes(kContext, 1),
                       agreement / n, kl / n, nll / n,
                       rank % stride_ == 0 ? fmt::format("{:.4f}", exact_match(map)) : "");
  }

 private:
  double exact_match(const PrecisionMap& map) {
    engine::RunOptions run{.base = kBase, .eos_ids = tokenizer_.eos_ids()};
    run.stop = [&](int64_t index, const std::vector<int32_t>& tokens) {
      return service::ends_with_stop(tokenizer_, tokens, examples_[index].stops);
    };
    const auto outputs = must(engine_.run(map, greedy_, run));
    double hits = 0;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const std::string text = must(tokenizer_.decode(outputs[i].tokens, true));
      hits += task_->score(examples_[i], text).exact_match;
    }
    return hits / static_cast<double>(outputs.size());
  }

  Options options_;
  engine::Engine engine_;
  text::Tokenizer tokenizer_;
  search::Space space_;
  std::unique_ptr<task::Task> task_;
  std::vector<task::Example> examples_;
  std::vector<engine::SequenceRequest> forced_;
  std::vector<engine::SequenceRequest> greedy_;
  int64_t stride_ = 1;
};

// Complete lines of an earlier run; a line that was cut off is removed.
int64_t continue_file(const std::string& path) {
  std::ifstream in(path);
  std::string kept;
  int64_t lines = 0;
  for (std::string line; std::getline(in, line) && !in.eof(); ++lines) kept += line + "\n";
  in.close();
  std::ofstream(path) << kept;
  return lines;
}

void run(const Options& options) {
  Bench bench(options);
  const int64_t done = continue_file(options.out);
  std::ofstream out(options.out, std::ios::app);
  const int64_t mine = (bench.maps() - options.shard + options.shards - 1) / options.shards;
  for (int64_t i = done; i < mine; ++i) {
    out << bench.line(options.shard + i * options.shards) << std::endl;
    if (!out) fail(options.out + " cannot be written");
    if ((i + 1) % 50 == 0) fmt::print(stderr, "shard {}: {} of {}\n", options.shard, i + 1, mine);
  }
}

}  // namespace
}  // namespace kvsweep::bench

int main(int argc, char** argv) {
  kvsweep::engine::prepare_environment();
  kvsweep::bench::run(kvsweep::bench::parse(argc, argv));
}
