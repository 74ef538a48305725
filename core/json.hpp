// Canonical JSON (RFC 8785) and reading of JSON files with one-sentence errors.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "core/result.hpp"

namespace kvsweep {

using Json = nlohmann::json;

// RFC 8785: keys sorted by UTF-16 code units, no white space, numbers as ECMAScript prints them.
// NaN and infinity cannot be represented: bad_input.
Result<std::string> canonical_json(const Json& value);

// Parses text; `where` (a path) starts the message, which gives line and column. Values nested
// deeper than 200 levels are refused.
Result<Json> parse_json(const std::string& text, const std::string& where);
// Files of at most 64 MiB.
Result<Json> read_json_file(const std::string& path);

}  // namespace kvsweep
