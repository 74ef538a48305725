// `kvsweep coordinator SPEC`: the same as tune, with workers that others start.
#include "cli/run_study.hpp"

namespace kvsweep::cli {
namespace {

class CoordinatorVerb final : public Verb {
 public:
  void declare(Options& options) override {
    options.note(
        "Runs every study of SPEC on workers that `kvsweep worker` starts, here or on other "
        "machines. Without --insecure it listens on this machine only, since the "
        "connection is not encrypted yet.");
    options.positional("SPEC", study_.spec, "study or sweep (YAML); see `kvsweep check --keys`");
    study_.database.declare(options);
    study_.run.declare_bind(options);
    study_.run.declare_units(options);
    study_.log.declare(options);
    options.flag("--json", study_.json, "print one JSON document; progress as JSON lines");
    options.example("coordinator nightly.yaml --bind tcp://127.0.0.1:5555");
    options.example("coordinator nightly.yaml --bind tcp://0.0.0.0:5555 --insecure");
    study_.local_workers = false;
  }

  Result<int> run(Context& context) override { return study_(context); }

 private:
  StudyRun study_;
};

}  // namespace

std::unique_ptr<Verb> make_coordinator_verb() {
  return std::make_unique<CoordinatorVerb>();
}

}  // namespace kvsweep::cli
