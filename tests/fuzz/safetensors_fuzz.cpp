// A safetensors file: what it lists lies inside it.
#include <cstring>

#include "tests/fuzz/feedback.hpp"
#include "tests/fuzz/memory_file.hpp"
#include "worker/rust/kvsweep_rs.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using kvsweep::fuzz::require;
  static const kvsweep::fuzz::MemoryFile file("model.safetensors");
  kvsweep::fuzz::note_words(data, size);
  file.write(data, size);
  char* error = nullptr;
  KvsSafetensors* opened = kvs_safetensors_open(file.path().c_str(), &error);
  require((opened == nullptr) == (error != nullptr));
  if (opened == nullptr) {
    require(std::strstr(error, file.path().c_str()) != nullptr);
    kvsweep::fuzz::note(error);
    kvs_string_free(error);
    return 0;
  }
  uint64_t sum = 0;
  uint64_t bytes = 0;
  const size_t count = kvs_safetensors_count(opened);
  for (size_t i = 0; i < count; ++i) {
    KvsTensor tensor{};
    require(kvs_safetensors_tensor(opened, i, &tensor) == 0);
    require(std::strlen(tensor.name) + std::strlen(tensor.dtype) > 0);
    for (size_t r = 0; r < tensor.rank; ++r) sum += tensor.shape[r];
    for (uint64_t b = 0; b < tensor.bytes; ++b) sum += tensor.data[b];
    bytes += tensor.bytes;
  }
  static volatile uint64_t used;  // so that every byte is read
  used = sum;
  require(bytes <= size && used == sum);
  KvsTensor none{};
  require(kvs_safetensors_tensor(opened, count, &none) == -1);
  kvs_safetensors_free(opened);
  return 0;
}
