// tokenizer_config.json, and the same bytes as generation_config.json.
#include "tests/fuzz/memory_file.hpp"
#include "worker/text/special_tokens.hpp"
#include "worker/text/tokenizer_settings.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const kvsweep::fuzz::MemoryFile file("tokenizer_config.json");
  static const kvsweep::fuzz::MemoryFile generation("generation_config.json");
  file.write(data, size);
  generation.write(data, size);
  using kvsweep::fuzz::require_named;
  require_named(kvsweep::text::read_special_tokens(file.folder()), file.path());
  require_named(kvsweep::text::read_tokenizer_settings(file.folder()), file.path());
  const auto lookup = [](const std::string& token) { return token == "</s>" ? 2 : -1; };
  require_named(kvsweep::text::read_eos_ids(file.folder(), 100, lookup), file.folder());
  return 0;
}
