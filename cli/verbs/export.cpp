// `kvsweep export`: a trial's map as a file of a tool, with its evidence.
#include <fmt/format.h>

#include <filesystem>

#include "cli/common_options.hpp"
#include "cli/pick_trial.hpp"
#include "cli/version.hpp"
#include "core/file.hpp"
#include "core/text.hpp"
#include "store/export/exporter.hpp"

namespace kvsweep::cli {
namespace {

namespace fs = std::filesystem;

store::Evidence evidence_of(const store::StudyRow& study, const store::TrialRow& row,
                            double baseline) {
  store::Evidence evidence;
  evidence.task = study.spec.objective_task.protocol.name;
  evidence.split = study.spec.objective_task.protocol.split;
  evidence.metric = metric_name(study);
  evidence.n = row.examples;
  evidence.baseline = baseline;
  evidence.value = *row.metric;
  evidence.numerics_class = study.numerics_class;
  return evidence;
}

// What the search measured, and what the reports measured on other data.
Result<std::vector<store::Evidence>> collect_evidence(const store::Store& store,
                                                      const store::StudyRow& study,
                                                      const store::TrialRow& row) {
  std::vector<store::Evidence> all;
  KVSWEEP_ASSIGN(const std::vector<store::TrialRow> rows, store.trials(study.id));
  for (const store::TrialRow& other : rows) {
    if (other.number < 0 && other.metric && row.metric) {
      all.push_back(evidence_of(study, row, *other.metric));
    }
  }
  KVSWEEP_ASSIGN(const std::vector<HeldOut> reports, held_out(store, study.id));
  for (const HeldOut& report : reports) {
    for (const HeldOutRow& held : report.rows) {
      if (held.trial != row.number) continue;
      store::Evidence evidence;
      evidence.task = report.task;
      evidence.split = report.split;
      evidence.metric = report.metric;
      evidence.n = report.examples;
      evidence.baseline = held.baseline;
      evidence.value = held.value;
      evidence.numerics_class = study.numerics_class;
      evidence.held_out = true;
      all.push_back(std::move(evidence));
    }
  }
  return all;
}

Result<store::ExportInput> export_input(const store::Store& store, const store::StudyRow& study,
                                        const TrialView& trial) {
  store::ExportInput input;
  input.map = trial.map;
  input.geometry = study.geometry;
  input.base = study.spec.baseline_kv;
  std::error_code ignored;
  // A model that is not on this machine is still known by its hash.
  if (fs::is_directory(study.spec.model, ignored)) input.model_dir = study.spec.model;
  input.model_hash = study.model_hash;
  input.context = study.spec.at.context;
  input.batch = study.spec.at.batch;
  input.search = {{"tool", "kvsweep"},
                  {"version", kVersion},
                  {"study", full_name(study)},
                  {"trial", trial.row.number},
                  {"algorithm", study.spec.search.algorithm},
                  {"seed", study.spec.search.seed},
                  {"objective", metric_name(study)}};
  KVSWEEP_ASSIGN(input.evidence, collect_evidence(store, study, trial.row));
  return input;
}

class Export final : public Verb {
 public:
  void declare(Options& options) override {
    options.note(
        "Ends with exit code 3, writing nothing, when the target format would lose a part of the "
        "map; --allow-lossy writes it all the same and lists what is lost. A map that a format "
        "cannot hold at all (KVTuner's: unquantized layers) is refused with exit code 1.");
    options.text("--trial", "N", trial_, "trial to export: its number, or `baseline`");
    options.text("--format", "NAME", format_, "see `kvsweep list exporters` (default kvmap)");
    options.text("--out", "FILE", out_, "file to write, or - for standard output");
    options.flag("--force", force_, "replace an existing file");
    options.flag("--allow-lossy", allow_lossy_, "accept a format that cannot hold everything");
    database_.declare(options);
    study_.declare(options);
    options.flag("--json", json_, "say what was written as a JSON document");
    options.example("export --trial 17 --format kvmap --out best.kvmap.json");
    options.example("export --trial 17 --format kvtuner --out best.yaml --allow-lossy");
  }

  Result<int> run(Context& context) override {
    if (trial_.empty()) return bad_input("--trial is missing; `kvsweep front` shows the numbers");
    if (out_.empty()) return bad_input("--out is missing; give a file, or - for standard output");
    KVSWEEP_ASSIGN(const store::Store store, database_.open(store::OpenMode::read_only));
    KVSWEEP_ASSIGN(const store::StudyRow study, study_.pick(store));
    KVSWEEP_ASSIGN(const TrialView trial, pick_trial(store, study, trial_));
    KVSWEEP_ASSIGN(const store::ExportInput input, export_input(store, study, trial));
    KVSWEEP_ASSIGN(const store::ExportOutput made, store::export_map(format_, input));
    if (!made.lost.empty() && !allow_lossy_) {
      context.err.print(
          fmt::format("kvsweep: {} cannot hold {}; nothing was written, and "
                      "--allow-lossy writes it without\n",
                      format_, join(made.lost, ", ")));
      return kLossy;
    }
    KVSWEEP_TRY(write(made, context));
    if (out_ != "-") report(made, trial, context);
    return kOk;
  }

 private:
  Status check_target(const std::string& path) const {
    std::error_code ignored;
    if (force_ || !fs::exists(path, ignored)) return {};
    return bad_input(path + " exists; give another --out, or --force to replace it");
  }

  Status write(const store::ExportOutput& made, const Context& context) const {
    if (out_ == "-") {
      context.out.print(made.text);
      return {};
    }
    const std::string sidecar = store::sidecar_path(out_);
    KVSWEEP_TRY(check_target(out_));
    if (!made.sidecar.empty()) {
      KVSWEEP_TRY(check_target(sidecar));
      KVSWEEP_TRY(write_file_atomic(sidecar, made.sidecar));
    }
    return write_file_atomic(out_, made.text);
  }

  void report(const store::ExportOutput& made, const TrialView& trial,
              const Context& context) const {
    const std::string sidecar = made.sidecar.empty() ? "" : store::sidecar_path(out_);
    if (json_) {
      const Json document = {{"file", out_},
                             {"sidecar", sidecar.empty() ? Json() : Json(sidecar)},
                             {"format", format_},
                             {"map_id", trial.row.map_id},
                             {"lost", made.lost}};
      context.out.print(document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
      return;
    }
    context.out.print(
        fmt::format("wrote {}: {}, map {}\n", out_, summary(trial.map), trial.row.map_id));
    if (!sidecar.empty()) context.out.print("wrote " + sidecar + "\n");
    if (!made.lost.empty()) context.out.print("lost: " + join(made.lost, ", ") + "\n");
  }

  std::string trial_;
  std::string format_ = "kvmap";
  std::string out_;
  bool force_ = false;
  bool allow_lossy_ = false;
  DatabaseOptions database_;
  StudyOptions study_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_export_verb() {
  return std::make_unique<Export>();
}

}  // namespace kvsweep::cli
