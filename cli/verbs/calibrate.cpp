// `kvsweep calibrate`: how large a model's keys and values become, for calibrated constants. The
// model runs in kvsweep-worker, which this verb becomes.
#include "cli/machine.hpp"
#include "cli/verb.hpp"

namespace kvsweep::cli {
namespace {

class Calibrate final : public Verb {
 public:
  void declare(Options& options) override {
    data_dir_ = environment("KVSWEEP_DATA_DIR");
    options.note(
        "Runs the first examples of a task, prompts and greedy answers, under the unquantized "
        "cache and writes the largest key and value of each layer: a ranges file. With it "
        "(--ranges, or scheme.ranges of a spec) fp8 codecs use one constant scale per layer and "
        "side in place of stored scales, as serving engines do, and nvfp4 a calibrated tensor "
        "scale. What is larger than these ranges saturates, so calibrate on texts like those that "
        "will be served.");
    options.text("--model", "PATH", model_, "Hugging Face model folder, or a .gguf file");
    options.text("--task", "NAME", task_, "task; see `kvsweep list tasks`");
    pass(options, "--out", "FILE", "where to write (default: standard output)");
    options.text("--examples", "N", examples_, "the first so many (default 10)");
    pass(options, "--split", "NAME", "part of the data set (default: of the task)");
    pass(options, "--shots", "N", "examples shown first (default: of the task)");
    pass(options, "--seed", "N", "of a generated task");
    pass(options, "--length", "TOKENS", "how long prompts are, of what is made to a length");
    pass(options, "--baseline-kv", "TYPE", "fp32, fp16 or bf16 (default fp16)");
    pass(options, "--threads", "N", "threads to compute with (default: every core)");
    options.text("--data-dir", "DIR", data_dir_, "folder of data sets (default $KVSWEEP_DATA_DIR)");
    options.text("--worker-program", "FILE", program_,
                 "kvsweep-worker to run (default: the one beside kvsweep)");
    options.example("calibrate --model m --task word_problems --examples 32 --out m.ranges.json");
    options.example(
        "evaluate --model m --map uniform:KVfp8 --ranges m.ranges.json --task word_problems");
  }

  Result<int> run(Context&) override {
    if (model_.empty()) {
      return bad_input("--model is missing; give a Hugging Face model folder or a .gguf file");
    }
    if (task_.empty()) return bad_input("--task is missing; see `kvsweep list tasks`");
    KVSWEEP_ASSIGN(const std::string program, find_worker_program(program_));
    std::vector<std::string> words = {"--calibrate", model_, "--task", task_, "--count", examples_};
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

  std::string model_;
  std::string task_;
  std::string examples_ = "10";
  std::string data_dir_;
  std::string program_;
  std::vector<std::string> passed_;
};

}  // namespace

std::unique_ptr<Verb> make_calibrate_verb() {
  return std::make_unique<Calibrate>();
}

}  // namespace kvsweep::cli
