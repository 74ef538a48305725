// `kvsweep data`: what the tasks say and read. Tasks and generators live in kvsweep-worker, so this
// verb becomes that program.
#include <map>

#include "cli/machine.hpp"
#include "cli/verb.hpp"
#include "core/text.hpp"

namespace kvsweep::cli {
namespace {

class Data final : public Verb {
 public:
  void declare(Options& options) override {
    data_dir_ = environment("KVSWEEP_DATA_DIR");
    options.note(
        "`data print TASK` writes the examples of a task, with their prompts and gold answers, "
        "exactly as a worker asks them. `data generate KIND` writes problems to train a model on "
        "(word_problems, drills or recall), from the generator behind the tasks of these names; "
        "none "
        "of them is ever in the splits search and report. Both write one JSON object a line. `data "
        "check DIR` reads every data set that it finds in a folder as the tasks would, and prints "
        "rows and SHA-256, then which files are missing and who publishes them. `data score DIR` "
        "scores "
        "predictions in the form of LongBench's pred.py (DIR/SET.jsonl, with pred, answers, "
        "all_classes and length) as its eval.py does, and prints the published averages.");
    options.positional("ACTION", action_, "print, generate, check or score");
    options.positional("NAME", name_, "task to print, kind of text to generate, or folder");
    pass(options, "--count", "N", "lines (default 10)");
    pass(options, "--seed", "N", "other texts, of what is generated");
    pass(options, "--length", "TOKENS", "how long prompts are, of what is made to a length");
    pass(options, "--split", "NAME", "print: part of the data set (default: of the task)");
    pass(options, "--shots", "N", "print: examples shown first (default: of the task)");
    pass(options, "--model", "PATH", "print: whose tokenizer makes prompts to a length (RULER)");
    options.text("--data-dir", "DIR", data_dir_, "folder of data sets (default $KVSWEEP_DATA_DIR)");
    options.text("--worker-program", "FILE", program_,
                 "kvsweep-worker to run (default: the one beside kvsweep)");
    options.example("data print word_problems --split report --count 3");
    options.example("data generate recall --count 1000 --length 512 > train.jsonl");
    options.example("data check ~/datasets");
    options.example("data score pred/llama2-7b-chat-4k");
  }

  Result<int> run(Context&) override {
    const auto flag = flags().find(action_);
    if (flag == flags().end()) {
      const std::string near = nearest_word(action_, {"print", "generate", "check", "score"});
      return bad_input("kvsweep data has no action \"" + action_ +
                       "\"; allowed are print, generate, check, score" +
                       (near.empty() ? "" : " (did you mean " + near + "?)"));
    }
    KVSWEEP_ASSIGN(const std::string program, find_worker_program(program_));
    std::vector<std::string> words = {flag->second, name_};
    if (action_ == "check") return become(program, words);
    words.insert(words.end(), passed_.begin(), passed_.end());
    if (!data_dir_.empty()) words.insert(words.end(), {"--data-dir", data_dir_});
    return become(program, words);
  }

 private:
  // The worker program's option for each action.
  static const std::map<std::string, std::string>& flags() {
    static const std::map<std::string, std::string> kFlags = {{"print", "--examples"},
                                                              {"generate", "--corpus"},
                                                              {"check", "--check-data"},
                                                              {"score", "--score"}};
    return kFlags;
  }

  // An option that the worker program checks and uses.
  void pass(Options& options, const std::string& name, const std::string& metavar,
            const std::string& help) {
    options.value(name, metavar, help, [this, name](const std::string& text) -> Status {
      passed_.push_back(name);
      passed_.push_back(text);
      return {};
    });
  }

  std::string action_;
  std::string name_;
  std::string data_dir_;
  std::string program_;
  std::vector<std::string> passed_;
};

}  // namespace

std::unique_ptr<Verb> make_data_verb() {
  return std::make_unique<Data>();
}

}  // namespace kvsweep::cli
