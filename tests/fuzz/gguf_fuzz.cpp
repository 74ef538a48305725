// A GGUF file: what it lists lies inside it, and every value can be asked for.
#include "core/gguf.hpp"
#include "tests/fuzz/memory_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using kvsweep::fuzz::require;
  static const kvsweep::fuzz::MemoryFile file("model.gguf");
  file.write(data, size);
  const auto opened = kvsweep::GgufFile::open(file.path());
  kvsweep::fuzz::require_named(opened, file.path());
  if (!opened.ok()) return 0;
  for (const std::string& key : opened->keys("")) {
    require(opened->has(key));
    opened->integer(key, 0, 100).ok();
    opened->number(key).ok();
    opened->boolean(key).ok();
    opened->text(key).ok();
    if (!opened->is_array(key)) continue;
    opened->texts(key).ok();
    opened->integers(key).ok();
    opened->numbers(key).ok();
  }
  uint64_t sum = 0;
  for (const auto& tensor : opened->tensors()) {
    require(tensor.bytes <= size);
    for (uint64_t b = 0; b < tensor.bytes; ++b) sum += tensor.data[b];
  }
  asm volatile("" : : "r"(sum));  // so that every byte is read
  return 0;
}
