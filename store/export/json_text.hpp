// JSON for people. Internal to store/export.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.hpp"
#include "core/result.hpp"

namespace kvsweep::store {

using OrderedJson = nlohmann::ordered_json;  // keeps the order in which keys were added

// Two spaces of indent, but what fits in a line of 140 characters stays in one: a layer per line.
// Ends with a newline.
std::string pretty_json(const OrderedJson& value);

// Error (bad_input): `object` has a key that is neither in `known` nor begins with "x-".
Status check_keys(const Json& object, const std::vector<std::string>& known,
                  const std::string& where);

}  // namespace kvsweep::store
