// Trials as people and programs want to see them: rows of the store together with their maps.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/json.hpp"
#include "core/precision_map.hpp"
#include "core/result.hpp"
#include "search/stats/interval.hpp"
#include "store/store.hpp"

namespace kvsweep::cli {

struct TrialView {
  store::TrialRow row;
  PrecisionMap map;
};

Result<std::vector<TrialView>> with_maps(const store::Store& store,
                                         const std::vector<store::TrialRow>& rows);

std::string full_name(const store::StudyRow& study);  // "sweep/name", or "name"
std::string metric_name(const store::StudyRow& study);
std::string trial_label(const store::TrialRow& trial);  // "17", "baseline"
std::string utc_text(int64_t utc_ms);                   // to the second; "-" for 0
std::string decimal(double value);  // 4 decimals, or 2 digits where they would all be 0
std::string number_text(const std::optional<double>& value);  // likewise; "-" when absent
std::string interval_text(const std::optional<search::Interval>& interval);  // "0.01 to 0.05"
std::string trial_outcome(const store::TrialRow& trial);  // "complete (reused)", "failed: oom"

Json interval_json(const std::optional<search::Interval>& interval);  // [low, high] or null
Json trial_json(const TrialView& trial);
Json study_json(const store::StudyRow& study);

// What reports on held-out data found, newest per task first.
struct HeldOutRow {
  int64_t trial = 0;
  double value = 0;
  double baseline = 0;
  double loss = 0;
  std::optional<search::Interval> interval;  // 95 %, of the loss
  std::string method;                        // of the interval; "" = none, or not recorded
};
struct HeldOut {
  std::string task;
  std::string split;
  std::string metric;
  int64_t examples = 0;
  std::vector<HeldOutRow> rows;
};
Result<std::vector<HeldOut>> held_out(const store::Store& store, int64_t study_id);
Json held_out_json(const std::vector<HeldOut>& reports);

}  // namespace kvsweep::cli
