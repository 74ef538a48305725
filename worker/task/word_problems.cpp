// word_problems: problems in GSM8K's shape, generated from the seed of the protocol, so that a demo
// and the tests need nobody's data. Prompt form, stops and filters are those of gsm8k.
//
// Example k of a split is drawn from the stream "word_problems/<split>" of the seed at counter
// k * 2^20: a pure function of (seed, split, k), but for one rule: a problem that an earlier
// example of the split has already is drawn again.
//
// Splits are disjoint by construction, for all seeds at once: the SHA-256 of a question says which
// split it may appear in, and a draw that belongs elsewhere is drawn again (three draws in the
// mean). Shots come from the split train of the same seed, drawn per example without repetition; in
// the split train they never are the example itself.
//
// Nothing but core/rng.hpp is random, so the problems are the same on every machine. A change of a
// template changes them all: raise the version in core/catalog/tasks.def with it.
#include <algorithm>
#include <unordered_set>

#include "core/rng.hpp"
#include "core/text.hpp"
#include "worker/task/math_task.hpp"
#include "worker/task/split_home.hpp"
#include "worker/task/word_templates.hpp"

namespace kvsweep::task {
namespace {

constexpr size_t kSplitSize = 2000;
constexpr int kDrawBits = 20;  // far more than the redraws of one example take

Problems generate(uint64_t seed, const std::string& split_name,
                  const std::vector<std::string>& splits) {
  const auto home =
      static_cast<size_t>(std::find(splits.begin(), splits.end(), split_name) - splits.begin());
  Problems problems;
  std::unordered_set<std::string> questions;
  while (problems.size() < kSplitSize) {
    Rng rng(seed, "word_problems/" + split_name,
            static_cast<uint64_t>(problems.size()) << kDrawBits);
    Problem problem = random_word_problem(rng);
    while (home_of(problem.question, splits.size()) != home ||
           !questions.insert(problem.question).second) {
      problem = random_word_problem(rng);
    }
    problems.push_back(std::move(problem));
  }
  return problems;
}

// `count` distinct rows of 0..pool-1 without `excluded`.
std::vector<uint32_t> draw_rows(Rng& rng, size_t pool, int count, std::optional<size_t> excluded) {
  std::vector<uint32_t> rows;
  while (rows.size() < static_cast<size_t>(count)) {
    const auto row = static_cast<uint32_t>(rng.below(pool));
    if (excluded && row == *excluded) continue;
    if (std::find(rows.begin(), rows.end(), row) == rows.end()) rows.push_back(row);
  }
  return rows;
}

}  // namespace

Result<std::unique_ptr<Task>> open_word_problems(const TaskProtocol& protocol,
                                                 const TaskInputs& /*inputs*/) {
  KVSWEEP_ASSIGN(const TaskInfo info, task_info(protocol.name));
  const std::vector<std::string> splits = split(info.splits, ',');
  const auto seed = static_cast<uint64_t>(protocol.seed);
  const auto problems = std::make_shared<const Problems>(generate(seed, protocol.split, splits));
  std::shared_ptr<const Problems> pool = problems;
  std::vector<std::vector<uint32_t>> shots;
  if (protocol.shots > 0) {
    const bool from_pool = protocol.split == "train";
    if (!from_pool) pool = std::make_shared<const Problems>(generate(seed, "train", splits));
    for (size_t i = 0; i < problems->size(); ++i) {
      Rng rng(seed, "word_problems/shots/" + protocol.split, static_cast<uint64_t>(i) << kDrawBits);
      shots.push_back(draw_rows(rng, pool->size(), protocol.shots,
                                from_pool ? std::optional<size_t>(i) : std::nullopt));
    }
  }
  return std::unique_ptr<Task>(
      std::make_unique<MathTask>(MathTaskParts{protocol, problems, pool, std::move(shots)}));
}

}  // namespace kvsweep::task
