#include "cli/pick_trial.hpp"

#include <fmt/format.h>

#include <charconv>

namespace kvsweep::cli {

Result<TrialView> pick_trial(const store::Store& store, const store::StudyRow& study,
                             const std::string& name) {
  int64_t number = -1;
  if (name != "baseline") {
    const char* end = name.data() + name.size();
    const auto [stop, error] = std::from_chars(name.data(), end, number);
    if (error != std::errc() || stop != end || number < 0) {
      return bad_input("trial \"" + name + "\" is neither a number nor `baseline`");
    }
  }
  KVSWEEP_ASSIGN(const std::vector<store::TrialRow> rows, store.trials(study.id));
  int64_t highest = -1;
  for (const store::TrialRow& row : rows) {
    highest = std::max(highest, row.number);
    if (row.number != number) continue;
    KVSWEEP_ASSIGN(PrecisionMap map, store.map_by_id(row.map_id));
    return TrialView{row, std::move(map)};
  }
  return not_found(fmt::format("study {} has no trial {}; {}", full_name(study), name,
                               highest < 0 ? std::string("it has none yet")
                                           : fmt::format("its trials are 0 to {}", highest)));
}

}  // namespace kvsweep::cli
