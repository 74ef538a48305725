// LongBench scores of predictions that are already there, as its eval.py prints them.
#pragma once

#include <ostream>
#include <string>

#include "core/result.hpp"

namespace kvsweep::task {

struct LongBenchPredictions {
  std::string dir;       // holds SET.jsonl, rows {pred, answers, all_classes, length} as of pred.py
  std::string data_dir;  // its jieba/ is read when a Chinese set is there
};

// Writes for each set the number of rows and the mean score x 100, also in LongBench-E's buckets of
// length (where rows have one), then the averages of core/longbench.hpp with the sets they lack.
// As in eval.py the classes of the last row count for all, and the code metric is difflib's.
// not_found when no set is there; bad_input names file and line.
Status score_longbench(const LongBenchPredictions& predictions, std::ostream& out);

}  // namespace kvsweep::task
