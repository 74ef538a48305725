// Task: one benchmark: its examples and how answers to them are scored. One file each plus one line
// in core/catalog/tasks.def. What an example becomes for a model is worker/task/render.hpp.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/measurement.hpp"
#include "core/result.hpp"
#include "core/task_protocol.hpp"
#include "worker/text/chat_template.hpp"
#include "worker/text/tokenizer.hpp"

namespace kvsweep::task {

// What happens to a prompt that is longer than the context allows.
enum class Truncation : uint8_t {
  none,    // it is an error
  left,    // the first tokens are dropped, as lm-eval does
  middle,  // LongBench: first and last half, decoded, joined and tokenized again (middle_cut.hpp)
};

// One example. Which members are set depends on the kind of the task (TaskInfo::kind):
//   generate  prompt, stops, golds
//   choices   prompt, choices, golds
//   rolling   prompt or tokens: the text itself
// Everything else is optional. All members but `truncation` and `hash` are its content, which
// depends on protocol and data alone unless the task needs the model's tokenizer.
struct Example {
  std::string prompt;  // with its shots; in form multiturn without them: the last message
  std::vector<text::ChatMessage> turns;  // form multiturn: messages before the prompt
  std::string answer_prefix;             // follows the prompt; in a chat it begins the answer
  bool as_text = false;                  // put to the model as text, whatever the protocol's form
  Truncation truncation = Truncation::none;

  std::vector<std::string> stops;  // output is cut at the first of these
  bool newline_ends = false;  // the newline token ends the output, which must not begin with it

  std::vector<std::string> choices;  // continuations, each put after one blank

  std::vector<int32_t> tokens;  // instead of the prompt: a window that is cut already
  int64_t unscored = 0;         // of its tokens after the first: so many are read but not scored
  int64_t words = 0;            // of the original text, where perplexity is per word; else 0

  std::vector<std::string> golds;    // as scored; what several mean is the task's matter
  std::vector<std::string> classes;  // of a classification: all names there are
  std::string scored_by;             // what the score depends on besides, where users write it
  std::string hash;                  // example_hash: its content address
};

struct Score {
  double exact_match = 0;              // the task's own score, 0 to 1
  std::optional<double> strict_match;  // by the second filter or rule, where the task has one
  std::string answer;                  // extracted by the default filter and cleaned as for the
                                       // comparison; "[invalid]" when none
};

// Immutable after opening; const methods are thread-safe.
class Task {
 public:
  virtual ~Task() = default;
  virtual int64_t size() const = 0;  // examples in the split, at least 1
  // A pure function of protocol, data, tokenizer where needed, and index. bad_input when there is
  // no such example.
  virtual Result<Example> example(int64_t index) const = 0;
  // Of tasks that generate; cuts `output` at the stops itself. Throws std::logic_error for others:
  // their log-likelihoods are scored alike for all (worker/task/choices.hpp).
  virtual Score score(const Example& example, const std::string& output) const;
};

// What a task is made from.
struct TaskInputs {
  std::string data_dir;  // folder of data sets; "" = none given
  // Of the model, for tasks whose TaskInfo::needs_tokenizer is set (RULER makes prompts to a
  // length, perplexity cuts windows); may be nullptr for others.
  std::shared_ptr<const text::Tokenizer> tokenizer;
};

// Error names the file and line, or says which option or variable gives the folder; a task,
// version, split or form that is not in the catalog, and impossible shots, are bad_input. Where the
// protocol names half of the rows, the task has only these, in their order
// (worker/task/row_halves.hpp).
Result<std::unique_ptr<Task>> open_task(const TaskProtocol& protocol, const TaskInputs& inputs);

// Text before the first occurrence of any stop string. Empty stop strings are ignored.
std::string cut_at_stops(const std::string& text, const std::vector<std::string>& stops);

// SHA-256 over the content. Of an example that has only prompt, stops and one gold answer: each
// written as its length, a colon and its bytes, with the number of stops before them; the other
// members follow, each with its name, where they are set.
std::string example_hash(const Example& example);

// "NAME/SPLIT has no example I; it has N, counted from 0"
Error no_example(const TaskProtocol& protocol, int64_t index, int64_t size);

}  // namespace kvsweep::task
