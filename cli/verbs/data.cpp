// `kvsweep data`: what the tasks say, written out. The generators live with the tasks, so this verb
// becomes kvsweep-worker, which holds them.
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
        "of them is ever in the splits search and report. Both write one JSON object a line.");
    options.positional("ACTION", action_, "print or generate");
    options.positional("NAME", name_, "task to print, or kind of text to generate");
    pass(options, "--count", "N", "lines (default 10)");
    pass(options, "--seed", "N", "other texts, of what is generated");
    pass(options, "--length", "TOKENS", "how long prompts are, of what is made to a length");
    pass(options, "--split", "NAME", "print: part of the data set (default: of the task)");
    pass(options, "--shots", "N", "print: examples shown first (default: of the task)");
    options.text("--data-dir", "DIR", data_dir_, "folder of data sets (default $KVSWEEP_DATA_DIR)");
    options.text("--worker-program", "FILE", program_,
                 "kvsweep-worker to run (default: the one beside kvsweep)");
    options.example("data print word_problems --split report --count 3");
    options.example("data generate recall --count 1000 --length 512 > train.jsonl");
  }

  Result<int> run(Context&) override {
    if (action_ != "print" && action_ != "generate") {
      const std::string near = nearest_word(action_, {"print", "generate"});
      return bad_input("kvsweep data has no action \"" + action_ +
                       "\"; allowed are print, generate" +
                       (near.empty() ? "" : " (did you mean " + near + "?)"));
    }
    KVSWEEP_ASSIGN(const std::string program, find_worker_program(program_));
    std::vector<std::string> words = {action_ == "print" ? "--examples" : "--corpus", name_};
    words.insert(words.end(), passed_.begin(), passed_.end());
    if (!data_dir_.empty()) words.insert(words.end(), {"--data-dir", data_dir_});
    return become(program, words);
  }

 private:
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
