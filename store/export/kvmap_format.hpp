// The named formats and the geometry of a kvmap. Internal to store/export.
#pragma once

#include <optional>
#include <string>

#include "core/format.hpp"
#include "core/geometry.hpp"
#include "core/json.hpp"
#include "core/result.hpp"
#include "store/export/json_text.hpp"

namespace kvsweep::store {

// A side in the base type is {"codec": "none", "type": "fp16", ...}; integer formats are
// {"codec": "affine-int", "bits": 4, "axis": ..., "group": ..., "scale": "fp16", ...}.
OrderedJson format_json(const Format& format, int head_dim, BaseType base);

struct NamedFormat {
  Format format;
  std::optional<BaseType> base;  // of a format in the base type
  double effective_bits = 0;     // as the file says
};

// Errors (bad_input) name the format: an unknown codec or bit width, scales that are not fp16, a
// rotation, another packing than the one of core/catalog/page_layout.hpp.
Result<NamedFormat> read_format(const Json& json, const std::string& where);

// Recomputes the bits from code, scale and zero widths (exports.md §4 rule 4); `head_dim` is of a
// layer that uses it. Error (bad_input) gives both numbers.
Status check_effective_bits(const NamedFormat& named, int head_dim, const std::string& where);

// {"num_layers", "kv_layers", "kv_heads", "head_dim_k", "head_dim_v", ...}: heads and dimensions
// are numbers, or lists with an entry per layer where layers differ.
OrderedJson geometry_json(const ModelGeometry& geometry);
Result<ModelGeometry> read_kvmap_geometry(const Json& json, const std::string& where);

// Equal up to the rounding of another writer's arithmetic.
bool same_number(double a, double b);

}  // namespace kvsweep::store
