// What the tasks say, written out. Texts to train a model on: the problems of the split `train`, as
// many as wanted. The same templates as the tasks, so that training and evaluation cannot drift
// apart, and the same rule of disjoint splits, so that no text of `search` or `report` is ever
// among them.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "core/result.hpp"
#include "worker/task/task.hpp"

namespace kvsweep::task {

struct CorpusOptions {
  std::string kind;  // one of corpus_kinds()
  uint64_t seed = 1;
  int64_t count = 10;  // lines
  int length = 256;    // recall: the longest prompt, in tokens as of recall_facts.hpp
};

// word_problems, drills ("What is 48+24?"), recall
const std::vector<std::string>& corpus_kinds();

// One JSON object a line: {"question", "answer"}; of recall {"facts", "questions", "answers"}, a
// question and its answer for every fact, in the order of the text, with 2 facts up to as many as
// `length` holds. A pure function of the options. Error: an unknown kind or length (bad_input), a
// failed write (io).
Status write_corpus(const CorpusOptions& options, std::ostream& out);

// The first `count` examples of a task (all of them when it has fewer), one JSON object a line:
// {"index", "hash", "prompt", "stops", "golds"}, and "turns", "answer_prefix", "choices" and
// "tokens" where the example has them. Error: a failed write (io).
Status write_examples(const Task& task, int64_t count, std::ostream& out);

}  // namespace kvsweep::task
