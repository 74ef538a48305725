#include "cli/front_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "cli/table.hpp"
#include "core/text.hpp"
#include "search/pareto/hypervolume.hpp"

namespace kvsweep::cli {
namespace {

bool is_uniform(const PrecisionMap& map) {
  return std::all_of(map.layers.begin(), map.layers.end(), [&](const LayerPairs& layer) {
    return layer == map.layers.front() && !layer.per_head();
  });
}

double share_of(const FrontReport& report) {
  std::vector<search::Objectives> points;
  for (const TrialView& member : report.members) {
    points.push_back({member.row.bytes, member.row.loss.value_or(report.study.reference_loss)});
  }
  return search::hypervolume_share(points,
                                   {report.study.reference_bytes, report.study.reference_loss});
}

std::vector<std::string> cells(const TrialView& trial, const FrontReport& report) {
  const store::TrialRow& row = trial.row;
  std::string share = "-";
  if (report.study.reference_bytes > 0) {
    share = fmt::format("{:.1f} %", 100 * row.bytes / report.study.reference_bytes);
  }
  return {trial_label(row),
          summary(trial.map),
          human_bytes(row.bytes),
          share,
          fmt::format("{:.2f}", row.effective_bits),
          number_text(row.metric),
          number_text(row.loss),
          std::to_string(row.examples)};
}

Table trial_table(const FrontReport& report) {
  return Table({">trial", "~map", ">cache", ">of baseline", ">bits",
                ">" + metric_name(report.study), ">loss", ">n"});
}

std::string references_text(const FrontReport& report, const Terminal& terminal) {
  std::set<int64_t> members;
  for (const TrialView& member : report.members) members.insert(member.row.number);
  Table table = trial_table(report);
  if (report.baseline) table.row(cells(*report.baseline, report));
  for (const TrialView& uniform : report.uniform) {
    if (!members.count(uniform.row.number)) table.row(cells(uniform, report));
  }
  if (table.empty()) return "";
  return "\nFor comparison: the baseline and uniform maps that are not on the front\n" +
         table.text(terminal);
}

std::string held_out_text(const FrontReport& report, const Terminal& terminal) {
  std::string text;
  for (const HeldOut& held : report.reports) {
    Table table(
        {">trial", ">" + held.metric, ">baseline", ">loss", ">95 % interval", "method", ">n"});
    for (const HeldOutRow& row : held.rows) {
      table.row({row.trial < 0 ? "baseline" : std::to_string(row.trial), number_text(row.value),
                 number_text(row.baseline), number_text(row.loss), interval_text(row.interval),
                 row.method.empty() ? "-" : row.method, std::to_string(held.examples)});
    }
    text += fmt::format("\nOn data that the search did not see: {}, split {}, {} examples\n{}",
                        held.task, held.split, held.examples, table.text(terminal));
  }
  return text;
}

}  // namespace

Result<FrontReport> load_front(const store::Store& store, const store::StudyRow& study) {
  FrontReport report;
  report.study = study;
  KVSWEEP_ASSIGN(const std::vector<store::TrialRow> all, store.trials(study.id));
  KVSWEEP_ASSIGN(const std::vector<store::TrialRow> front, store.front(study.id));
  KVSWEEP_ASSIGN(report.members, with_maps(store, front));
  for (const store::TrialRow& row : all) {
    if (row.state != store::TrialState::complete) continue;
    KVSWEEP_ASSIGN(PrecisionMap map, store.map_by_id(row.map_id));
    if (row.number < 0) {
      report.baseline = TrialView{row, std::move(map)};
      continue;
    }
    report.complete.push_back(row);
    if (is_uniform(map)) report.uniform.push_back({row, std::move(map)});
  }
  std::sort(report.uniform.begin(), report.uniform.end(),
            [](const TrialView& a, const TrialView& b) { return a.row.bytes < b.row.bytes; });
  report.hypervolume_share = share_of(report);
  KVSWEEP_ASSIGN(report.reports, held_out(store, study.id));
  return report;
}

std::string front_text(const FrontReport& report, const Terminal& terminal) {
  const StudySpec& spec = report.study.spec;
  const Result<Scheme> scheme = make_scheme(spec.scheme);
  std::string text = fmt::format(
      "{}: {} ({}), {} of {} trials complete, front of {}\n"
      "scheme {}\n"
      "cache bytes at {} tokens x {}, {} on {}, hypervolume {:.1f} % of the box below the "
      "baseline's "
      "bytes and a loss of {}\n\n",
      terminal.bold(full_name(report.study)), to_string(report.study.status),
      report.study.status_reason.empty() ? "no remark" : report.study.status_reason,
      report.complete.size(), spec.search.trials, report.members.size(),
      scheme.ok() ? described(*scheme) : spec.scheme.name, spec.at.context, spec.at.batch,
      metric_name(report.study), spec.objective_task.protocol.name, 100 * report.hypervolume_share,
      report.study.reference_loss);
  Table table = trial_table(report);
  for (const TrialView& member : report.members) table.row(cells(member, report));
  text += report.members.empty() ? "no complete trial yet\n" : table.text(terminal);
  return text + references_text(report, terminal) + held_out_text(report, terminal);
}

Json front_json(const FrontReport& report) {
  Json members = Json::array();
  for (const TrialView& member : report.members) members.push_back(trial_json(member));
  Json uniform = Json::array();
  for (const TrialView& trial : report.uniform) uniform.push_back(trial_json(trial));
  return {{"study", study_json(report.study)},
          {"front", std::move(members)},
          {"uniform", std::move(uniform)},
          {"baseline", report.baseline ? trial_json(*report.baseline) : Json()},
          {"hypervolume_share", report.hypervolume_share},
          {"complete_trials", report.complete.size()},
          {"held_out", held_out_json(report.reports)}};
}

}  // namespace kvsweep::cli
