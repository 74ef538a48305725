// A chat template: compiles or says why, renders or says why, in bounded time and memory.
#include <cstring>
#include <string>

#include "tests/fuzz/feedback.hpp"
#include "tests/fuzz/memory_file.hpp"
#include "worker/rust/kvsweep_rs.h"

namespace {

constexpr const char* kContext =
    R"({"messages":[{"role":"system","content":" be brief "},{"role":"user","content":"é\n😀"},)"
    R"({"role":"assistant","content":"<think>x</think>4"}],"add_generation_prompt":true,)"
    R"("tools":null,"documents":null,"bos_token":"<s>","eos_token":"</s>"})";
constexpr uint64_t kSteps = 20000;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using kvsweep::fuzz::require;
  kvsweep::fuzz::note_words(data, size);
  kvs_limit_memory(uint64_t{16} << 20);
  char* error = nullptr;
  KvsTemplate* compiled = kvs_template_compile(reinterpret_cast<const char*>(data), size, &error);
  require((compiled == nullptr) == (error != nullptr));
  if (compiled != nullptr) {
    size_t length = 0;
    char* prompt = kvs_template_render(compiled, kContext, std::strlen(kContext), "2024-07-26",
                                       kSteps, &length, &error);
    require((prompt == nullptr) == (error != nullptr));
    require(prompt == nullptr || length <= (size_t{64} << 20));
    kvs_string_free(prompt);
    kvs_template_free(compiled);
  }
  if (error != nullptr) kvsweep::fuzz::note(error);
  kvs_string_free(error);
  return 0;
}
