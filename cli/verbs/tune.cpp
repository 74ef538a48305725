// `kvsweep tune SPEC`: coordinator and local workers in one command.
#include "cli/run_study.hpp"

namespace kvsweep::cli {
namespace {

class Tune final : public Verb {
 public:
  void declare(Options& options) override {
    options.note(
        "Runs every study of SPEC on this machine: starts local workers, searches, records "
        "every measurement, prints the front. A study that was interrupted goes on where "
        "it stopped. Ctrl-C once finishes what is running, twice stops at once. \"best\" in the "
        "progress is the smallest cache so far with a loss within limits.max_loss (0.02 where "
        "the spec has none).");
    options.positional("SPEC", study_.spec, "study or sweep (YAML); see `kvsweep check --keys`");
    study_.database.declare(options);
    study_.run.declare_local(options);
    study_.run.declare_bind(options);
    study_.run.declare_units(options);
    study_.log.declare(options);
    options.flag("--json", study_.json, "print one JSON document; progress as JSON lines");
    options.example("tune examples/smollm2.yaml");
    options.example("tune nightly.yaml --db nightly.db --workers 4 --data-dir /data/sets");
  }

  Result<int> run(Context& context) override { return study_(context); }

 private:
  StudyRun study_;
};

}  // namespace

std::unique_ptr<Verb> make_tune_verb() {
  return std::make_unique<Tune>();
}

}  // namespace kvsweep::cli
