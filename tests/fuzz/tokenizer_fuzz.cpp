// tokenizer.json: loads or names itself; then texts of all kinds become ids and ids become text.
#include "tests/fuzz/feedback.hpp"
#include "tests/fuzz/memory_file.hpp"
#include "worker/rust/kvsweep_rs.h"
#include "worker/text/tokenizer.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using kvsweep::fuzz::require;
  static const kvsweep::fuzz::MemoryFile file("tokenizer.json");
  kvs_limit_memory(uint64_t{64} << 20);
  kvsweep::fuzz::note_words(data, size);
  file.write(data, size);
  const auto tokenizer = kvsweep::text::Tokenizer::load(file.folder());
  kvsweep::fuzz::require_named(tokenizer, file.path());
  if (!tokenizer.ok()) {
    kvsweep::fuzz::note(tokenizer.error().message);
    return 0;
  }
  for (const char* text :
       {"", "hello  world\n", "a\xcc\x81 \xf0\x9f\x98\x80", "<s>12 </s>aaaaaaaa"}) {
    const auto ids = tokenizer->encode(text, true);
    if (!ids.ok()) {
      kvsweep::fuzz::note(ids.error().message);
      continue;
    }
    for (const int32_t id : *ids) require(id >= 0);
    tokenizer->decode(*ids, false).ok();
    tokenizer->decode(*ids, true).ok();
  }
  tokenizer->decode({0, 1, 2, 5, 64, 200, 1 << 20}, false).ok();
  return 0;
}
