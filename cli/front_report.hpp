// FrontReport: the Pareto front of a study with what it is compared against.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/terminal.hpp"
#include "cli/trial_view.hpp"
#include "core/json.hpp"
#include "core/result.hpp"
#include "store/store.hpp"

namespace kvsweep::cli {

struct FrontReport {
  store::StudyRow study;
  std::optional<TrialView> baseline;
  std::vector<TrialView> members;         // by bytes
  std::vector<TrialView> uniform;         // complete trials of one pair for all layers, by bytes
  std::vector<store::TrialRow> complete;  // every complete trial, without the baseline
  double hypervolume_share = 0;           // 0..1 of the box of reference bytes and loss
  std::vector<HeldOut> reports;
};

Result<FrontReport> load_front(const store::Store& store, const store::StudyRow& study);
std::string front_text(const FrontReport& report, const Terminal& terminal);
Json front_json(const FrontReport& report);

}  // namespace kvsweep::cli
