// recall: key-value look-up over a long context. The prompt states as many facts as its length
// allows ("The code of Amir is 4821."), and asks for one of them; form, stops and filters are those
// of gsm8k. It needs exact keys at a distance, which low-bit keys lose first.
//
// Example k of a split is a pure function of (seed, split, k, context, shots): drawn from the
// stream "recall/<split>" at counter k * 2^20. Splits are disjoint for all seeds at once: the
// SHA-256 of the facts says to which a text belongs (split_home.hpp). Shots are other questions
// about the same facts, answered before.
//
// A change of the texts changes every prompt: raise the version in core/catalog/tasks.def with it.
#include <algorithm>
#include <numeric>

#include "core/text.hpp"
#include "worker/task/recall_facts.hpp"
#include "worker/task/split_home.hpp"
#include "worker/task/task.hpp"

namespace kvsweep::task {
namespace {

constexpr int64_t kSplitSize = 2000;
constexpr int kDrawBits = 20;  // far more than the redraws of one example take

class Recall final : public Task {
 public:
  Recall(const TaskProtocol& protocol, size_t home, size_t splits)
      : protocol_(protocol), home_(home), splits_(splits) {}

  int64_t size() const override { return kSplitSize; }

  Result<Example> example(int64_t index) const override {
    if (index < 0 || index >= size()) return no_example(protocol_, index, size());
    Rng rng(static_cast<uint64_t>(protocol_.seed), "recall/" + protocol_.split,
            static_cast<uint64_t>(index) << kDrawBits);
    RecallFacts facts(facts_in(protocol_.length), rng);
    while (home_of(facts.text(), splits_) != home_) {
      facts = RecallFacts(facts_in(protocol_.length), rng);
    }
    return ask(facts, rng);
  }

  Score score(const Example& example, const std::string& output) const override {
    return score_math(example.golds.front(), output);
  }

 private:
  Example ask(const RecallFacts& facts, Rng& rng) const {
    std::vector<int> order(static_cast<size_t>(facts.size()));
    std::iota(order.begin(), order.end(), 0);
    std::vector<Problem> asked;
    for (size_t i = 0; i <= static_cast<size_t>(protocol_.shots); ++i) {
      std::swap(order[i], order[i + rng.below(order.size() - i)]);
      asked.push_back(facts.ask(order[i]));
    }
    asked.front().question = facts.text() + " " + asked.front().question;
    std::vector<const Problem*> shots;
    for (size_t i = 0; i + 1 < asked.size(); ++i) shots.push_back(&asked[i]);
    Example example;
    example.prompt = few_shot_prompt(shots, asked.back().question);
    example.stops = math_stops();
    example.golds = {asked.back().answer};
    example.hash = example_hash(example);
    return example;
  }

  TaskProtocol protocol_;
  size_t home_;
  size_t splits_;
};

}  // namespace

Result<std::unique_ptr<Task>> open_recall(const TaskProtocol& protocol,
                                          const TaskInputs& /*inputs*/) {
  KVSWEEP_ASSIGN(const TaskInfo info, task_info(protocol.name));
  KVSWEEP_TRY(check_recall_length(protocol.length));
  const int facts = facts_in(protocol.length);
  if (protocol.shots >= facts) {
    return bad_input("task recall: shots is " + std::to_string(protocol.shots) + ", but " +
                     std::to_string(protocol.length) + " tokens hold only " +
                     std::to_string(facts) +
                     " facts to ask about; give fewer shots or a greater length");
  }
  const std::vector<std::string> splits = split(info.splits, ',');
  const auto home =
      static_cast<size_t>(std::find(splits.begin(), splits.end(), protocol.split) - splits.begin());
  return std::unique_ptr<Task>(std::make_unique<Recall>(protocol, home, splits.size()));
}

}  // namespace kvsweep::task
