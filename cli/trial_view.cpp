#include "cli/trial_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/clock.hpp"
#include "core/json_reader.hpp"

namespace kvsweep::cli {
namespace {

constexpr int64_t kEventsToRead = 100'000;

Json optional_json(const std::optional<double>& value) {
  return value ? Json(*value) : Json();
}

Json time_json(int64_t utc_ms) {
  return utc_ms > 0 ? Json(format_utc(utc_ms)) : Json();
}

// A report is data from the database: read as strictly as anything else from outside.
Result<HeldOut> held_out_from_json(const Json& json) {
  constexpr double kLargest = 1e12;
  JsonReader reader(json, "report event");
  HeldOut report;
  report.task = reader.string("task", 256);
  report.split = reader.string("split", 256);
  report.metric = reader.string("metric", 64);
  report.examples = reader.integer("examples", 0, int64_t{1} << 40);
  const Json* maps = reader.array("maps", 100'000);
  KVSWEEP_TRY(reader.done());
  for (const Json& item : *maps) {
    JsonReader row(item, "report event map");
    HeldOutRow held{row.integer("trial", -1, int64_t{1} << 40),
                    row.number("value", -kLargest, kLargest),
                    row.number("baseline", -kLargest, kLargest),
                    row.number("loss", -kLargest, kLargest), std::nullopt};
    const auto low = row.optional_number("loss_low", -kLargest, kLargest);
    const auto high = row.optional_number("loss_high", -kLargest, kLargest);
    held.method = row.optional_string("method", 64).value_or("");
    if (low && high) held.interval = search::Interval{*low, *high};
    report.rows.push_back(held);
    KVSWEEP_TRY(row.done());
  }
  return report;
}

}  // namespace

Result<std::vector<TrialView>> with_maps(const store::Store& store,
                                         const std::vector<store::TrialRow>& rows) {
  std::vector<TrialView> views;
  for (const store::TrialRow& row : rows) {
    KVSWEEP_ASSIGN(PrecisionMap map, store.map_by_id(row.map_id));
    views.push_back({row, std::move(map)});
  }
  return views;
}

std::string full_name(const store::StudyRow& study) {
  return study.sweep.empty() ? study.name : study.sweep + "/" + study.name;
}

std::string metric_name(const store::StudyRow& study) {
  return std::string(to_string(study.spec.objective_task.metric));
}

std::string trial_label(const store::TrialRow& trial) {
  return trial.number < 0 ? "baseline" : std::to_string(trial.number);
}

std::string utc_text(int64_t utc_ms) {
  if (utc_ms <= 0) return "-";
  std::string text = format_utc(utc_ms).substr(0, 19);
  text[10] = ' ';
  return text;
}

// Four decimals, or two digits of what they would show as nothing.
std::string decimal(double value) {
  const bool tiny = value != 0 && std::abs(value) < 1e-4;
  return tiny ? fmt::format("{:.1e}", value) : fmt::format("{:.4f}", value);
}

std::string number_text(const std::optional<double>& value) {
  return value ? decimal(*value) : "-";
}

std::string interval_text(const std::optional<search::Interval>& interval) {
  return interval ? decimal(interval->low) + " to " + decimal(interval->high) : "-";
}

Json interval_json(const std::optional<search::Interval>& interval) {
  return interval ? Json{interval->low, interval->high} : Json();
}

std::string trial_outcome(const store::TrialRow& trial) {
  std::string text(to_string(trial.state));
  if (trial.reused) text += " (reused)";
  if (!trial.failure.empty()) text += ": " + trial.failure;
  return text;
}

Json trial_json(const TrialView& trial) {
  const store::TrialRow& row = trial.row;
  Json json = {{"number", row.number},
               {"state", to_string(row.state)},
               {"origin", row.origin},
               {"map_id", row.map_id},
               {"map", summary(trial.map)},
               {"scheme", trial.map.scheme.name},
               {"bytes", row.bytes},
               {"effective_bits", row.effective_bits},
               {"metric", optional_json(row.metric)},
               {"loss", optional_json(row.loss)},
               {"examples", row.examples},
               {"reused", row.reused},
               {"genome", row.genome},
               {"parents", row.parents},
               {"asked_utc", time_json(row.asked_utc_ms)},
               {"finished_utc", time_json(row.finished_utc_ms)}};
  json["failure"] = row.failure.empty() ? Json() : Json(row.failure);
  return json;
}

Json study_json(const store::StudyRow& study) {
  return {{"id", study.id},
          {"sweep", study.sweep},
          {"name", study.name},
          {"status", to_string(study.status)},
          {"reason", study.status_reason},
          {"model", study.spec.model},
          {"model_hash", study.model_hash},
          {"numerics_class", study.numerics_class},
          {"metric", metric_name(study)},
          {"spec", to_json(study.spec)},
          {"reference_bytes", study.reference_bytes},
          {"reference_loss", study.reference_loss},
          {"created_utc", time_json(study.created_utc_ms)},
          {"finished_utc", time_json(study.finished_utc_ms)}};
}

Result<std::vector<HeldOut>> held_out(const store::Store& store, int64_t study_id) {
  KVSWEEP_ASSIGN(const std::vector<store::EventRow> events, store.events(study_id, kEventsToRead));
  std::vector<HeldOut> reports;
  for (const store::EventRow& event : events) {
    if (event.kind != "report") continue;
    KVSWEEP_ASSIGN(const Json json, parse_json(event.detail, "report event"));
    KVSWEEP_ASSIGN(HeldOut report, held_out_from_json(json));
    const bool known = std::any_of(reports.begin(), reports.end(), [&](const HeldOut& other) {
      return other.task == report.task && other.split == report.split &&
             other.metric == report.metric;
    });
    if (!known) reports.push_back(std::move(report));
  }
  return reports;
}

Json held_out_json(const std::vector<HeldOut>& reports) {
  Json all = Json::array();
  for (const HeldOut& report : reports) {
    Json rows = Json::array();
    for (const HeldOutRow& row : report.rows) {
      rows.push_back({{"trial", row.trial},
                      {"value", row.value},
                      {"baseline", row.baseline},
                      {"loss", row.loss},
                      {"loss_95", interval_json(row.interval)},
                      {"method", row.method.empty() ? Json() : Json(row.method)}});
    }
    all.push_back({{"task", report.task},
                   {"split", report.split},
                   {"metric", report.metric},
                   {"examples", report.examples},
                   {"trials", std::move(rows)}});
  }
  return all;
}

}  // namespace kvsweep::cli
