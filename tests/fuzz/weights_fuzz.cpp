// model.safetensors as the weights of a model, also with layers that AWQ and GPTQ stored: every
// tensor can be read, or an error names the file. The first byte chooses the settings.
#include <iterator>
#include <vector>

#include "tests/fuzz/memory_file.hpp"
#include "tests/fuzz/read_all.hpp"

namespace {

using namespace kvsweep;

constexpr const char* kSettings[] = {
    R"({})",
    R"({"quantization_config":{"quant_method":"awq","bits":4,"group_size":8}})",
    R"({"quantization_config":{"quant_method":"awq","bits":4,"group_size":-1}})",
    R"({"quantization_config":{"quant_method":"gptq","bits":4,"group_size":8}})",
    (R"({"quantization_config":{"quant_method":"gptq","bits":4,"group_size":3,)"
     R"("checkpoint_format":"gptq_v2"}})"),
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::MemoryFile config("config.json");
  static const fuzz::MemoryFile file("model.safetensors");
  if (size == 0) return 0;
  config.write(kSettings[data[0] % std::size(kSettings)]);
  file.write(data + 1, size - 1);
  fuzz::read_all(file.folder(), file.path(), size);
  return 0;
}
