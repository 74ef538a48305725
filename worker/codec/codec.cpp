#include "worker/codec/codec.hpp"

#include "worker/codec/affine_int.hpp"
#include "worker/codec/fp4.hpp"
#include "worker/codec/fp8.hpp"
#include "worker/codec/kvmix.hpp"
#include "worker/codec/kvtuner.hpp"

namespace kvsweep::codec {

bool Codec::supports(const Variant& variant) const {
  if (variant.symmetric && !supports_symmetric) return false;
  return variant.calibrated ? calibration != Calibration::never
                            : calibration != Calibration::required;
}

kernels::PackedFormat Codec::packed(const Variant& variant) const {
  kernels::PackedFormat format{code, params, variant.constant};
  if (variant.symmetric) format.params = kernels::ParamKind::half_scale;
  if (variant.calibrated && calibration == Calibration::optional) {
    format.params = kernels::ParamKind::none;
  }
  return format;
}

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
