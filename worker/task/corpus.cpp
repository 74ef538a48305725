#include "worker/task/corpus.hpp"

#include <algorithm>
#include <functional>
#include <map>

#include "core/json.hpp"
#include "core/rng.hpp"
#include "core/task_protocol.hpp"
#include "core/text.hpp"
#include "worker/task/recall_facts.hpp"
#include "worker/task/split_home.hpp"
#include "worker/task/word_templates.hpp"

namespace kvsweep::task {
namespace {

// Whether `text` of `task` belongs to the split "train".
bool is_train(std::string_view task, std::string_view text) {
  const std::vector<std::string> splits = split(task_info(task)->splits, ',');
  return splits[home_of(text, splits.size())] == "train";
}

Json problem_line(const Problem& problem) {
  return {{"question", problem.question}, {"answer", problem.answer}};
}

Json word_problem(const CorpusOptions&, Rng& rng) {
  Problem problem = random_word_problem(rng);
  while (!is_train("word_problems", problem.question)) problem = random_word_problem(rng);
  return problem_line(problem);
}

// No task asks drills, so all of them may be trained on.
Json drill(const CorpusOptions&, Rng& rng) {
  return problem_line(random_drill(rng));
}

Json recall(const CorpusOptions& options, Rng& rng) {
  const auto draw = [&] {
    const int64_t most = facts_in(options.length);
    return RecallFacts(static_cast<int>(rng.between(RecallFacts::kMinFacts, most)), rng);
  };
  RecallFacts facts = draw();
  while (!is_train("recall", facts.text())) facts = draw();
  Json line = {{"facts", facts.text()}, {"questions", Json::array()}, {"answers", Json::array()}};
  for (int i = 0; i < facts.size(); ++i) {
    const Problem problem = facts.ask(i);
    line["questions"].push_back(problem.question);
    line["answers"].push_back(problem.answer);
  }
  return line;
}

Status flushed(std::ostream& out) {
  if (!out.flush()) return io_error("the texts cannot be written: is the disk full?");
  return {};
}

using Writer = std::function<Json(const CorpusOptions&, Rng&)>;

const std::map<std::string, Writer>& writers() {
  static const std::map<std::string, Writer> kWriters = {
      {"word_problems", word_problem}, {"drills", drill}, {"recall", recall}};
  return kWriters;
}

}  // namespace

const std::vector<std::string>& corpus_kinds() {
  static const std::vector<std::string> kKinds = [] {
    std::vector<std::string> kinds;
    for (const auto& [kind, writer] : writers()) kinds.push_back(kind);
    return kinds;
  }();
  return kKinds;
}

Status write_corpus(const CorpusOptions& options, std::ostream& out) {
  const auto writer = writers().find(options.kind);
  if (writer == writers().end()) {
    return bad_input("there are no training texts of the kind \"" + options.kind +
                     "\"; allowed are " + join(corpus_kinds(), ", "));
  }
  KVSWEEP_TRY(check_recall_length(options.length));
  Rng rng(options.seed, "corpus/" + options.kind);
  for (int64_t i = 0; i < options.count && out; ++i) {
    out << writer->second(options, rng).dump() << '\n';
  }
  return flushed(out);
}

Status write_examples(const Task& task, int64_t count, std::ostream& out) {
  for (int64_t i = 0; i < std::min(count, task.size()) && out; ++i) {
    KVSWEEP_ASSIGN(const Example example, task.example(i));
    Json line = {{"index", i},
                 {"hash", example.hash},
                 {"prompt", example.prompt},
                 {"stops", example.stops},
                 {"golds", example.golds}};
    for (const text::ChatMessage& turn : example.turns) {
      line["turns"].push_back({{"role", turn.role}, {"content", turn.content}});
    }
    if (!example.answer_prefix.empty()) line["answer_prefix"] = example.answer_prefix;
    if (!example.choices.empty()) line["choices"] = example.choices;
    if (!example.tokens.empty()) line["tokens"] = example.tokens;
    out << line.dump() << '\n';
  }
  return flushed(out);
}

}  // namespace kvsweep::task
