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
  return {name, std::string(info.version), split, shots, seed, info.max_new_tokens, info.length};
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

}  // namespace kvsweep::task::testing
