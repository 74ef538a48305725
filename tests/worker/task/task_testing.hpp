// What the tests of worker/task share.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>

#include "core/json.hpp"
#include "core/task_protocol.hpp"
#include "worker/task/task.hpp"

namespace kvsweep::task::testing {

inline Json golden(const std::string& name) {
  return read_json_file(KVSWEEP_SOURCE_DIR "/tests/worker/task/golden/" + name).value();
}

// The folder of data sets: KVSWEEP_DATA_DIR, else ../shared/data beside the project.
inline std::optional<std::string> data_dir() {
  const char* variable = std::getenv("KVSWEEP_DATA_DIR");
  const std::string dir = variable != nullptr && *variable != '\0'
                              ? std::string(variable)
                              : std::string(KVSWEEP_SOURCE_DIR "/../shared/data");
  if (!std::filesystem::exists(dir + "/gsm8k/test.jsonl")) return std::nullopt;
  return dir;
}

inline constexpr const char* kNoData =
    "no gsm8k data: set KVSWEEP_DATA_DIR to a folder that holds gsm8k/test.jsonl";

inline TaskProtocol protocol_of(const std::string& name, const std::string& split, int shots,
                                int64_t seed = 0) {
  const TaskInfo info = task_info(name).value();
  TaskProtocol protocol;
  protocol.name = name;
  protocol.version = info.version;
  protocol.split = split;
  protocol.shots = shots;
  protocol.seed = seed;
  protocol.max_new_tokens = info.max_new_tokens;
  protocol.length = info.length;
  return protocol;
}

// Two tiny splits in the published form, written below `dir`.
inline void write_tiny_gsm8k(const std::filesystem::path& dir, int train, int test) {
  std::filesystem::create_directories(dir / "gsm8k");
  for (const auto& [split, count] : {std::pair{"train", train}, {"test", test}}) {
    std::ofstream file(dir / "gsm8k" / (std::string(split) + ".jsonl"));
    for (int i = 0; i < count; ++i) {
      const std::string number = std::to_string(i);
      file << Json{{"question", std::string(split) + " question " + number + "?"},
                   {"answer", "It is <<" + number + "+1=" + std::to_string(i + 1) + ">>" +
                                  std::to_string(i + 1) + ".\n#### " + std::to_string(i + 1)}}
                  .dump()
           << "\n";
    }
  }
}

// Word lists and a text, as RULER's subtasks need them.
inline void write_tiny_ruler(const std::filesystem::path& dir) {
  std::filesystem::create_directories(dir / "ruler");
  for (const char* kind : {"noun", "adjective", "verb"}) {
    std::ofstream list(dir / "ruler" / (std::string(kind) + "list.txt"));
    for (int i = 100; i < 400; ++i) list << kind << i << "\n";
  }
  std::ofstream essay(dir / "ruler" / "essay.txt");
  for (int i = 0; i < 500; ++i) essay << "Once upon a time\nit rained " << i << " days.\n";
}

// The exemplars of gsm8k_cot, in the form of the published ones.
inline void write_tiny_exemplars(const std::filesystem::path& dir) {
  Json exemplars = Json::array();
  for (int i = 0; i < 8; ++i) {
    const std::string number = std::to_string(i);
    exemplars.push_back({{"question", "What is " + number + "?"},
                         {"target_gsm8k_cot", "It is given. The answer is " + number + "."},
                         {"target_gsm8k_cot_llama", "Given. The final answer is " + number}});
  }
  std::filesystem::create_directories(dir / "gsm8k");
  std::ofstream(dir / "gsm8k" / "cot_fewshot_8.json") << exemplars.dump();
}

// A task of the line: of a family that of a file which write_tiny_data writes.
inline std::string sample_task(const TaskInfo& info) {
  const std::string name(info.name);
  if (name == "generate/*") return "generate/sample.yaml";
  return name.ends_with("*") ? name.substr(0, name.size() - 1) + "sample" : name;
}

// A question with words and a number, which both metrics and filters have something to do with.
inline constexpr const char* kSampleYaml =
    "data: sample\n"
    "prompt: \"Q: {{ question }}\\nA:\"\n"
    "gold: \"{{ choices[answer] }}\"\n"
    "stops: [\"Q:\"]\n"
    "filters: [strip, lower]\n";

// Something for every task that reads data.
inline void write_tiny_data(const std::filesystem::path& dir) {
  write_tiny_gsm8k(dir, 40, 12);
  write_tiny_exemplars(dir);
  write_tiny_ruler(dir);
  std::ofstream(dir / "sample.yaml") << kSampleYaml;
  // One file for the families: JSON lines, and a text of pages to others.
  std::ofstream sample(dir / "sample");
  for (int i = 0; i < 120; ++i) {
    sample << Json{{"question", "= Number " + std::to_string(i) + " ="},
                   {"choices", {"one", "two", "three"}},
                   {"answer", i % 3}}
                  .dump()
           << "\n";
  }
}

// Tokenizer of the reference model, which comes with kvsweep.
inline std::shared_ptr<const text::Tokenizer> reference_tokenizer() {
  return std::make_shared<const text::Tokenizer>(
      text::Tokenizer::load(KVSWEEP_SOURCE_DIR "/models/reference").value());
}

}  // namespace kvsweep::task::testing
