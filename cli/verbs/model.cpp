// `kvsweep model show PATH`: what a model is, and why it would be refused.
#include "cli/model_report.hpp"
#include "cli/verb.hpp"

namespace kvsweep::cli {
namespace {

class Model final : public Verb {
 public:
  void declare(Options& options) override {
    options.note(
        "`model show` reads the configuration, the headers of the weight files, the tokenizer and "
        "the chat template, and says what kvsweep would refuse and why; the exit code is then 1. "
        "Only the hash, which names the model in databases and exported maps, needs every byte of "
        "the weights. That each tensor fits the configuration shows when the model is loaded.");
    options.positional("ACTION", action_, "show");
    options.positional("PATH", question_.path, "model folder, or a .gguf file");
    options.flag("--no-hash", no_hash_, "leave out the hash");
    options.text("--worker-program", "FILE", question_.worker_program,
                 "kvsweep-worker to ask (default: the one beside kvsweep)");
    options.flag("--json", json_, "print one JSON document");
    options.example("model show models/reference");
    options.example("model show /models/Llama-3.1-8B-Instruct --no-hash --json");
  }

  Result<int> run(Context& context) override {
    if (action_ != "show") {
      return bad_input("kvsweep model has no action \"" + action_ + "\"; allowed is show");
    }
    question_.hash = !no_hash_;
    const ModelReport report = inspect(question_, context.err);
    if (json_) {
      context.out.print(to_json(report).dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
    } else {
      context.out.print(model_text(report, context.out));
    }
    return report.refused.empty() ? kOk : kFailed;
  }

 private:
  std::string action_;
  ModelQuestion question_;
  bool no_hash_ = false;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_model_verb() {
  return std::make_unique<Model>();
}

}  // namespace kvsweep::cli
