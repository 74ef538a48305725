// `kvsweep doctor`: is everything here that a study needs?
#include <fmt/format.h>

#include <algorithm>

#include "cli/common_options.hpp"
#include "cli/doctor_checks.hpp"
#include "cli/machine.hpp"
#include "core/json.hpp"

namespace kvsweep::cli {
namespace {

class Doctor final : public Verb {
 public:
  void declare(Options& options) override {
    input_.data_dir = environment("KVSWEEP_DATA_DIR");
    input_.database = "kvsweep.db";
    options.note(
        "Looks at this installation and machine. Ends with exit code 1 when something "
        "would keep a study from running.");
    options.text("--db", "FILE", input_.database, "database to look at (default kvsweep.db)");
    options.text("--data-dir", "DIR", input_.data_dir,
                 "folder of data sets (default $KVSWEEP_DATA_DIR)");
    options.text("--worker-program", "FILE", input_.worker_program,
                 "kvsweep-worker to ask (default: the one beside kvsweep)");
    options.flag("--json", json_, "print one JSON document");
    options.example("doctor --db /data/nightly.db");
  }

  Result<int> run(Context& context) override {
    const std::vector<Finding> findings = examine(input_);
    context.out.print(json_ ? json_text(findings) : plain_text(findings, context));
    const bool failed = std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
      return finding.health == Health::fail;
    });
    return failed ? kFailed : kOk;
  }

 private:
  static std::string plain_text(const std::vector<Finding>& findings, const Context& context) {
    std::string text;
    for (const Finding& finding : findings) {
      const std::string word = fmt::format("{:<4}", to_string(finding.health));
      const std::string mark = finding.health == Health::ok     ? context.out.green(word)
                               : finding.health == Health::warn ? context.out.yellow(word)
                                                                : context.out.red(word);
      text += fmt::format("{}  {:<15}  {}\n", mark, finding.what, finding.found);
      if (!finding.advice.empty()) text += fmt::format("{:23}{}\n", "", finding.advice);
    }
    return text;
  }

  static std::string json_text(const std::vector<Finding>& findings) {
    Json document = Json::array();
    for (const Finding& finding : findings) {
      document.push_back({{"check", finding.what},
                          {"health", to_string(finding.health)},
                          {"found", finding.found},
                          {"advice", finding.advice}});
    }
    return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  }

  DoctorInput input_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_doctor_verb() {
  return std::make_unique<Doctor>();
}

}  // namespace kvsweep::cli
