// A GGUF file as a model: its configuration, the documents of its tokenizer and all tensors, or
// errors that name the file.
#include "tests/fuzz/memory_file.hpp"
#include "tests/fuzz/read_all.hpp"
#include "worker/model/family.hpp"
#include "worker/text/gguf_tokenizer.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace kvsweep;
  static const fuzz::MemoryFile file("model.gguf");
  file.write(data, size);
  fuzz::require_named(model::configured_decoder(file.path()), file.path());
  const auto opened = GgufFile::open(file.path());
  fuzz::require_named(opened, file.path());
  if (!opened.ok()) return 0;
  fuzz::require_named(text::gguf_tokenizer(*opened), file.path());
  fuzz::require_named(text::gguf_tokenizer_config(*opened), file.path());
  fuzz::require_named(text::gguf_generation_config(*opened), file.path());
  fuzz::read_all(file.path(), file.path(), size);
  return 0;
}
