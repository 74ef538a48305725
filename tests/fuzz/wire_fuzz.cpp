// Messages between coordinator and workers: what decodes encodes again, and then decodes equally.
#include "core/wire/messages.hpp"
#include "tests/fuzz/memory_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using kvsweep::fuzz::require;
  const auto message =
      kvsweep::wire::decode(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!message.ok()) return 0;
  const std::string bytes = kvsweep::wire::encode(*message);
  const auto again = kvsweep::wire::decode(bytes);
  require(again.ok());
  require(kvsweep::wire::encode(*again) == bytes);
  return 0;
}
