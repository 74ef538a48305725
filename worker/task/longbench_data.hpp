// LongBench's data as its owners publish them: rows, prompt templates, and where they lie below the
// user's folder of data sets. Nothing of it is part of kvsweep.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/longbench.hpp"
#include "core/result.hpp"

namespace kvsweep::task {

struct LongBenchRow {
  std::string id;                    // "_id"; "" when the row has none
  std::string input;                 // the question or the start of the code; may be empty
  std::string context;               // the long text
  std::vector<std::string> answers;  // may be empty: such a row scores 0, as in the official code
  std::vector<std::string> classes;  // "all_classes", of the classification sets
  int64_t length = 0;                // words, or characters of Chinese, as its authors counted
};

// The rows of one JSON-lines file, in order. bad_input names file and line: no JSON object, not
// UTF-8, a member missing or of another kind, an answer that the official metric stops on (a
// retrieval answer without a paragraph number, a classification row without classes) or of more
// than 64 KiB.
Result<std::vector<LongBenchRow>> read_longbench(const std::string& path, const LongBenchSet& set);

// What the official code would stop on with an exception, and answers of more than 64 KiB (they
// bound what ROUGE and difflib cost). `where` begins messages.
Status check_answers(const std::vector<std::string>& answers,
                     const std::vector<std::string>& classes, LongBenchMetric metric,
                     const std::string& where);

// The file of a set: DIR/longbench/NAME.jsonl, else DIR/longbench/full/NAME.jsonl; with `mini`
// DIR/longbench/mini/NAME.jsonl, MiniLongBench's selection. NAME is the set's, with "_e" for
// LongBench-E. not_found says which files were looked for and who publishes them.
struct LongBenchFile {
  std::string data_dir;
  std::string name;
  bool mini = false;
};
Result<std::string> find_longbench(const LongBenchFile& file);

// The set's prompt template: DIR/longbench/config/dataset2prompt.json.
Result<std::string> longbench_template(const std::string& data_dir, std::string_view set);

// Python's template.format(context=..., input=...): {context} and {input} are replaced, {{ and }}
// are braces; any other field is bad_input. `where` begins messages.
Result<std::string> fill_template(const std::string& prompt_template, const LongBenchRow& row,
                                  const std::string& where);

}  // namespace kvsweep::task
