#include "coordinator/result_check.hpp"

#include <fmt/format.h>

#include <cmath>

namespace kvsweep::coordinator {

namespace {

Status check_share(const char* name, const std::optional<double>& value, int64_t example) {
  if (value && std::isfinite(*value) && *value >= 0 && *value <= 1) return {};
  return Error{ErrorCode::numerics,
               fmt::format("the worker reported {} of example {} as {}; a number from 0 to 1 is "
                           "required",
                           name, example, value ? fmt::format("{}", *value) : "missing")};
}

Status check_finite(const char* name, const std::optional<double>& value, int64_t example) {
  if (value && std::isfinite(*value)) return {};
  return Error{
      ErrorCode::numerics,
      fmt::format("the worker reported {} of example {} as {}; a finite number is required", name,
                  example, value ? fmt::format("{}", *value) : "missing")};
}

Status check_figures(const Measurement& m, RunMode mode) {
  const auto check_score = [&] { return check_share("exact_match", m.exact_match, m.example); };
  if (mode == RunMode::generate) return check_score();
  if (mode == RunMode::rolling) return check_finite("nll", m.nll, m.example);
  if (mode == RunMode::choices) {
    KVSWEEP_TRY(check_score());
    return check_finite("nll", m.nll, m.example);
  }
  KVSWEEP_TRY(check_share("token_agreement", m.token_agreement, m.example));
  KVSWEEP_TRY(check_finite("kl", m.kl, m.example));
  return check_finite("nll", m.nll, m.example);
}

Status check_identity(const Measurement& m, const TaskData& task) {
  const auto size = static_cast<int64_t>(task.example_hashes.size());
  if (m.example < 0 || m.example >= size) {
    return bad_input(fmt::format("the worker reported example {} of task {}, which has {} examples",
                                 m.example, task.protocol.name, size));
  }
  if (m.example_hash != task.example_hashes[m.example]) {
    return bad_input(
        fmt::format("the worker reads another data set: example {} of task {} hashes to {} there "
                    "and to {} where the task was described; give every worker the same data",
                    m.example, task.protocol.name, m.example_hash.substr(0, 12),
                    task.example_hashes[m.example].substr(0, 12)));
  }
  return {};
}

}  // namespace

Status check_measurements(const std::vector<wire::MapMeasurements>& maps, const TaskData& task,
                          RunMode mode) {
  for (const wire::MapMeasurements& map : maps) {
    for (const Measurement& m : map.measurements) {
      KVSWEEP_TRY(check_identity(m, task));
      KVSWEEP_TRY(check_figures(m, mode));
    }
  }
  return {};
}

Status check_description(const wire::Description& description) {
  if (description.examples < 1) {
    return bad_input("the worker described a task without examples; check the data folder");
  }
  if (static_cast<int64_t>(description.example_hashes.size()) != description.examples) {
    return bad_input(fmt::format("the worker described {} examples but sent {} hashes",
                                 description.examples, description.example_hashes.size()));
  }
  return {};
}

}  // namespace kvsweep::coordinator
