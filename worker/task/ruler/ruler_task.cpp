#include "worker/task/ruler/ruler_task.hpp"

#include <algorithm>

#include "core/text.hpp"
#include "worker/task/ruler/needle.hpp"
#include "worker/task/ruler/score.hpp"
#include "worker/task/split_home.hpp"

namespace kvsweep::task::ruler {
namespace {

constexpr const char* kFamily = "ruler/";
constexpr const char* kNeedle = "needle";
constexpr int64_t kSplitSize = 500;  // as RULER has
const std::vector<std::string>& split_names() {
  static const std::vector<std::string> names = {"search", "report"};
  return names;
}

Example example_of(Row row) {
  Example example;
  example.prompt = std::move(row.input);
  example.answer_prefix = std::move(row.answer_prefix);
  example.golds = std::move(row.outputs);
  example.hash = example_hash(example);
  return example;
}

Score score_of(const Example& example, const std::string& text) {
  const std::vector<std::string>& wanted = example.golds;
  std::vector<std::string> found;
  for (const std::string& reference : wanted) {
    if (share_contained(text, {reference}) == 1) found.push_back(reference);
  }
  Score score;
  score.exact_match = share_contained(text, wanted);
  score.answer = found.empty() ? "[invalid]" : join(found, ", ");
  return score;
}

// The material stays where the generator looks for it.
struct Held {
  std::unique_ptr<const Material> material;
  Generator generator;
};

class RulerTask final : public Task {
 public:
  RulerTask(TaskProtocol protocol, Held held)
      : protocol_(std::move(protocol)), held_(std::move(held)) {}

  int64_t size() const override { return kSplitSize; }

  Result<Example> example(int64_t index) const override {
    if (index < 0 || index >= size()) return no_example(protocol_, index, size());
    KVSWEEP_ASSIGN(Row row, held_.generator.row(index));
    return example_of(std::move(row));
  }

  Score score(const Example& example, const std::string& output) const override {
    return score_of(example, cut_at_stops(output, example.stops));
  }

 private:
  TaskProtocol protocol_;
  Held held_;
};

class NeedleTask final : public Task {
 public:
  NeedleTask(TaskProtocol protocol, std::unique_ptr<const Material> material, NeedleGrid grid,
             int64_t home)
      : protocol_(std::move(protocol)),
        material_(std::move(material)),
        grid_(std::move(grid)),
        home_(home) {}

  int64_t size() const override { return (NeedleGrid::kSize + 1 - home_) / 2; }

  Result<Example> example(int64_t index) const override {
    if (index < 0 || index >= size()) return no_example(protocol_, index, size());
    KVSWEEP_ASSIGN(Row row, grid_.row(2 * index + home_));
    return example_of(std::move(row));
  }

  Score score(const Example& example, const std::string& output) const override {
    const std::string text = cut_at_stops(output, example.stops);
    Score score = score_of(example, text);
    score.strict_match = rouge1_f(text, NeedleGrid::needle());
    return score;
  }

 private:
  TaskProtocol protocol_;
  std::unique_ptr<const Material> material_;
  NeedleGrid grid_;
  int64_t home_;
};

Result<size_t> home_in(const TaskProtocol& protocol) {
  const std::vector<std::string>& names = split_names();
  const auto place = std::find(names.begin(), names.end(), protocol.split);
  if (place != names.end()) return static_cast<size_t>(place - names.begin());
  return bad_input("task " + protocol.name + ": split is \"" + protocol.split + "\"; allowed are " +
                   join(names, ", "));
}

Status check_protocol(const TaskProtocol& protocol, int answer_tokens) {
  if (protocol.shots != 0) {
    return bad_input("task " + protocol.name + ": shots is " + std::to_string(protocol.shots) +
                     "; it must be 0, since the prompts hold their own examples");
  }
  if (protocol.max_new_tokens <= answer_tokens) return {};
  return bad_input("task " + protocol.name + ": max_new_tokens is " +
                   std::to_string(protocol.max_new_tokens) + "; at most " +
                   std::to_string(answer_tokens) + " are kept for the answer");
}

Result<std::unique_ptr<Task>> open_needle(const TaskProtocol& protocol, const std::string& data_dir,
                                          TokenCounter counter, size_t home) {
  KVSWEEP_TRY(check_protocol(protocol, NeedleGrid::kAnswerTokens));
  KVSWEEP_ASSIGN(Material loaded, load_material(data_dir, true));
  auto material = std::make_unique<const Material>(std::move(loaded));
  KVSWEEP_ASSIGN(NeedleGrid grid, NeedleGrid::open(protocol.length, *material, std::move(counter)));
  return std::unique_ptr<Task>(std::make_unique<NeedleTask>(
      protocol, std::move(material), std::move(grid), static_cast<int64_t>(home)));
}

}  // namespace

Result<std::unique_ptr<Task>> open_ruler(const TaskProtocol& protocol, const std::string& data_dir,
                                         TokenCounter counter) {
  KVSWEEP_ASSIGN(const size_t home, home_in(protocol));
  if (protocol.name == kNeedle) return open_needle(protocol, data_dir, std::move(counter), home);
  const size_t family = std::string(kFamily).size();
  if (protocol.name.compare(0, family, kFamily) != 0) {
    return bad_input("\"" + protocol.name + "\" is no task of RULER; give ruler/ and one of " +
                     join(subtask_names(), ", ") + ", or needle");
  }
  GeneratorOptions options;
  options.subtask = protocol.name.substr(family);
  options.length = protocol.length;
  options.seed = protocol.seed;
  options.stream = protocol.split;
  options.accept = [home](const std::string& facts) {
    return home_of(facts, split_names().size()) == home;
  };
  KVSWEEP_ASSIGN(const auto subtask, make_subtask(options.subtask, options.length));
  KVSWEEP_TRY(check_protocol(protocol, subtask->answer_tokens()));
  KVSWEEP_ASSIGN(Material loaded, load_material(data_dir, subtask->needs_essay()));
  auto material = std::make_unique<const Material>(std::move(loaded));
  KVSWEEP_ASSIGN(Generator generator, Generator::open(options, *material, std::move(counter)));
  return std::unique_ptr<Task>(
      std::make_unique<RulerTask>(protocol, Held{std::move(material), std::move(generator)}));
}

}  // namespace kvsweep::task::ruler
