#include "worker/codec/codec.hpp"

#include "worker/codec/affine_int.hpp"

namespace kvsweep::codec {

const std::vector<Codec>& codecs() {
  static const std::vector<Codec> table = {
#define KVSWEEP_PACKED_CODEC(id, function) function(),
#include "worker/codec/codecs.def"
#undef KVSWEEP_PACKED_CODEC
  };
  return table;
}

const Codec* find_codec(std::string_view name) {
  for (const Codec& codec : codecs()) {
    if (codec.name == name) return &codec;
  }
  return nullptr;
}

}  // namespace kvsweep::codec
