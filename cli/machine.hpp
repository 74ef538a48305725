// Facts about this machine and this installation.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/result.hpp"

namespace kvsweep::cli {

// The value of an environment variable; "" when unset.
std::string environment(const char* name);

// kvsweep-worker: `given`, else $KVSWEEP_WORKER, else beside this program, else in the worker
// folder of a build tree, else on PATH.
Result<std::string> find_worker_program(const std::string& given);

// This process becomes `program` with these arguments; returns only to say why it did not (io).
Error become(const std::string& program, std::vector<std::string> arguments);

// Processors this process may use (affinity and cgroup).
int usable_processors();

// Folder of the running program.
std::string program_folder();

// 0 when it cannot be told.
int64_t available_memory_bytes();

// Size of all *.safetensors of a model folder, or of a GGUF file's elements at 16 bits; 0 when
// there are none.
int64_t weight_bytes(const std::string& model_dir);

// Runs a program with arguments and returns what it wrote to standard output, at most 1 MiB.
// Errors: io (cannot start; did not end within `timeout_ms` and was killed), internal (exit status
// or signal, with the last line of its standard error).
struct ProgramRun {
  std::string program;
  std::string argument;
  int64_t timeout_ms = 10000;
};
Result<std::string> output_of(const ProgramRun& run);

}  // namespace kvsweep::cli
