// `kvsweep show TRIAL`: everything the database knows about one trial.
#include <fmt/format.h>

#include <algorithm>

#include "cli/common_options.hpp"
#include "cli/map_lines.hpp"
#include "cli/pick_trial.hpp"
#include "cli/table.hpp"
#include "core/catalog/page_layout.hpp"
#include "core/text.hpp"

namespace kvsweep::cli {
namespace {

std::string genes(const store::TrialRow& row) {
  std::vector<std::string> parts;
  for (const int gene : row.genome) parts.push_back(std::to_string(gene));
  return parts.empty() ? "-" : join(parts, " ");
}

std::string parents(const store::TrialRow& row) {
  std::vector<std::string> parts;
  for (const int64_t parent : row.parents) parts.push_back(std::to_string(parent));
  return parts.empty() ? "-" : join(parts, ", ");
}

std::string duration(const store::TrialRow& row) {
  if (row.finished_utc_ms <= 0 || row.asked_utc_ms <= 0) return "-";
  return human_seconds(static_cast<double>(row.finished_utc_ms - row.asked_utc_ms) / 1000);
}

// `report` holds the one trial that is shown.
std::string held_out_text(const HeldOut& report) {
  const HeldOutRow& row = report.rows.front();
  std::string text = fmt::format(
      "{} {} on {} examples of {}/{}, baseline {}, loss {}", report.metric, number_text(row.value),
      report.examples, report.task, report.split, number_text(row.baseline), number_text(row.loss));
  if (row.interval) text += fmt::format(", 95 % interval {}", interval_text(row.interval));
  if (!row.method.empty()) text += fmt::format(" ({})", row.method);
  return text;
}

class Show final : public Verb {
 public:
  void declare(Options& options) override {
    options.positional("TRIAL", trial_, "number of the trial, or `baseline`");
    database_.declare(options);
    study_.declare(options);
    options.flag("--json", json_, "print one JSON document");
    options.example("show 17");
    options.example("show baseline --study smollm2 --json");
  }

  Result<int> run(Context& context) override {
    KVSWEEP_ASSIGN(const store::Store store, database_.open(store::OpenMode::read_only));
    KVSWEEP_ASSIGN(const store::StudyRow study, study_.pick(store));
    KVSWEEP_ASSIGN(const TrialView trial, pick_trial(store, study, trial_));
    KVSWEEP_ASSIGN(std::vector<HeldOut> reports, held_out(store, study.id));
    for (HeldOut& report : reports) {
      std::erase_if(report.rows,
                    [&](const HeldOutRow& row) { return row.trial != trial.row.number; });
    }
    std::erase_if(reports, [](const HeldOut& report) { return report.rows.empty(); });
    context.out.print(json_ ? json_text(study, trial, reports)
                            : plain_text(study, trial, reports, context));
    return kOk;
  }

 private:
  static std::string json_text(const store::StudyRow& study, const TrialView& trial,
                               const std::vector<HeldOut>& reports) {
    Json json = trial_json(trial);
    json["study"] = full_name(study);
    json["model_hash"] = study.model_hash;
    json["numerics_class"] = study.numerics_class;
    json["precision_map"] = to_json(trial.map);
    json["held_out"] = held_out_json(reports);
    return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  }

  static std::string plain_text(const store::StudyRow& study, const TrialView& trial,
                                const std::vector<HeldOut>& reports, const Context& context) {
    const store::TrialRow& row = trial.row;
    const StudySpec& spec = study.spec;
    std::string text =
        context.out.bold(fmt::format("Trial {} of {}", trial_label(row), full_name(study))) + "\n";
    const auto line = [&](const char* name, const std::string& value) {
      text += fmt::format("  {:<12} {}\n", name, value);
    };
    line("outcome", trial_outcome(row));
    line("origin", row.origin.empty() ? "-" : row.origin);
    line("genome", genes(row));
    line("parents", parents(row));
    line("map", summary(trial.map));
    line("map id", row.map_id);
    line("scheme", described(trial.map.scheme));
    line("cache", fmt::format("{} at {} tokens x {}, {:.3f} effective bits", human_bytes(row.bytes),
                              spec.at.context, spec.at.batch, row.effective_bits));
    line("evidence",
         fmt::format("{} {} on {} examples of {}/{}, loss {}", metric_name(study),
                     number_text(row.metric), row.examples, spec.objective_task.protocol.name,
                     spec.objective_task.protocol.split, number_text(row.loss)));
    for (const HeldOut& report : reports) line("held out", held_out_text(report));
    line("numerics", study.numerics_class.empty() ? "-" : study.numerics_class);
    line("asked", utc_text(row.asked_utc_ms) + " UTC");
    line("finished", utc_text(row.finished_utc_ms) + " UTC, after " + duration(row));
    return text + "\n" + layer_table(study, trial).text(context.out);
  }

  static Table layer_table(const store::StudyRow& study, const TrialView& trial) {
    Table table({">layer", "pair", "keys", "values", ">bits K", ">bits V"});
    const std::vector<MapLine> lines = map_lines(trial.map);
    for (const MapLine& line : lines) {
      const int head_dim = study.geometry.layers.at(static_cast<size_t>(line.layer)).head_dim;
      const BaseType base = study.spec.baseline_kv;
      table.row({line.label(), to_string(line.pair), to_string(line.keys), to_string(line.values),
                 fmt::format("{:.2f}", format_bits(line.keys, head_dim, base)),
                 fmt::format("{:.2f}", format_bits(line.values, head_dim, base))});
    }
    return table;
  }

  DatabaseOptions database_;
  StudyOptions study_;
  std::string trial_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_show_verb() {
  return std::make_unique<Show>();
}

}  // namespace kvsweep::cli
