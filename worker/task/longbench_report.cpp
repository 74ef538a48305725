#include "worker/task/longbench_report.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <optional>
#include <vector>

#include "core/longbench.hpp"
#include "core/text.hpp"
#include "worker/task/json_lines.hpp"
#include "worker/task/longbench_data.hpp"
#include "worker/task/longbench_metrics.hpp"

namespace kvsweep::task {
namespace {

constexpr const char* kForm = "\"pred\", \"answers\" and \"all_classes\"";

struct Prediction {
  std::string text;
  std::vector<std::string> answers;
  std::optional<int64_t> length;
};

struct SetPredictions {
  std::vector<Prediction> rows;
  std::vector<std::string> classes;
};

// Sum of scores and number of rows.
struct Mean {
  double sum = 0;
  size_t rows = 0;

  void add(double score) {
    sum += score;
    ++rows;
  }
  double percent() const { return 100 * sum / static_cast<double>(rows); }
};

Result<SetPredictions> read_predictions(const std::string& path, const LongBenchSet& set) {
  SetPredictions all;
  KVSWEEP_TRY(for_each_json_line(
      path, "prediction", [&](const Json& json, const std::string& where) -> Status {
        Prediction row;
        KVSWEEP_ASSIGN(row.text, string_member(json, "pred", where, kForm));
        KVSWEEP_ASSIGN(row.answers, strings_member(json, "answers", where, kForm));
        KVSWEEP_ASSIGN(all.classes, strings_member(json, "all_classes", where, kForm));
        KVSWEEP_TRY(check_answers(row.answers, all.classes, set.metric, where));
        const auto length = json.find("length");
        if (length != json.end() && length->is_number_integer()) {
          row.length = length->get<int64_t>();
        }
        all.rows.push_back(std::move(row));
        return {};
      }));
  return all;
}

class Report {
 public:
  Report(const LongBenchPredictions& predictions, std::ostream& out)
      : predictions_(predictions), out_(out) {}

  Status add(const LongBenchSet& set, const std::string& path) {
    KVSWEEP_ASSIGN(SetPredictions all, read_predictions(path, set));
    if (needs_segmenter(set.metric) && !segmenter_) {
      KVSWEEP_ASSIGN(segmenter_, ChineseSegmenter::load(predictions_.data_dir + "/jieba"));
    }
    MetricInputs inputs{std::move(all.classes)};
    if (segmenter_) inputs.segmenter = &*segmenter_;
    Mean whole;
    std::map<std::string_view, Mean> buckets;
    for (const Prediction& row : all.rows) {
      const std::string text = scores_first_line(set) ? first_line(row.text) : row.text;
      const double score = best_score(set.metric, text, row.answers, inputs);
      whole.add(score);
      if (row.length) buckets[longbench_bucket(*row.length)].add(score);
    }
    scores_[std::string(set.name)] = whole.percent();
    print(set, whole, buckets);
    return {};
  }

  bool empty() const { return scores_.empty(); }

  void print_head() {
    out_ << fmt::format("{:<22} {:>5} {:>7} {:>7} {:>7} {:>7}\n", "set", "rows", "score", "0-4k",
                        "4-8k", "8k+");
  }

  // fuzzywuzzy has two, depending on what else is installed: published numbers hold for one of
  // them.
  void print_similarity() {
    if (scores_.contains("lcc") || scores_.contains("repobench-p")) {
      out_ << "lcc and repobench-p: difflib's ratio (fuzzywuzzy without python-Levenshtein)\n";
    }
  }

  void print_averages() {
    out_ << fmt::format("\n{:<36} {:>7}\n", "average", "score");
    for (const LongBenchAverage& average : longbench_averages(scores_)) {
      const std::string value = average.score ? fmt::format("{:.2f}", *average.score) : "-";
      out_ << fmt::format("{:<36} {:>7}  {}\n", average.name, value,
                          average.missing.empty() ? "over " + join(average.sets, ", ")
                                                  : "not scored: " + join(average.missing, ", "));
    }
  }

 private:
  void print(const LongBenchSet& set, const Mean& whole,
             const std::map<std::string_view, Mean>& buckets) {
    const auto cell = [&](std::string_view bucket) -> std::string {
      const auto entry = buckets.find(bucket);
      return entry == buckets.end() ? "-" : fmt::format("{:.2f}", entry->second.percent());
    };
    out_ << fmt::format("{:<22} {:>5} {:>7.2f} {:>7} {:>7} {:>7}\n", set.name, whole.rows,
                        whole.percent(), cell("0-4k"), cell("4-8k"), cell("8k+"));
  }

  const LongBenchPredictions& predictions_;
  std::ostream& out_;
  std::optional<ChineseSegmenter> segmenter_;  // loaded for the first Chinese set
  std::map<std::string, double, std::less<>> scores_;
};

}  // namespace

Status score_longbench(const LongBenchPredictions& predictions, std::ostream& out) {
  Report report(predictions, out);
  for (const LongBenchSet& set : longbench_sets()) {
    const std::string path = predictions.dir + "/" + std::string(set.name) + ".jsonl";
    if (!std::filesystem::exists(path)) continue;
    if (report.empty()) report.print_head();
    KVSWEEP_TRY(report.add(set, path));
  }
  if (report.empty()) {
    return not_found("\"" + predictions.dir +
                     "\" holds no predictions; they must be named after the sets of LongBench, as "
                     "qasper.jsonl");
  }
  report.print_similarity();
  report.print_averages();
  return {};
}

}  // namespace kvsweep::task
