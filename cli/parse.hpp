// Command-line parsing of one verb.
#pragma once

#include <string>
#include <vector>

#include "cli/options.hpp"
#include "core/result.hpp"

namespace kvsweep::cli {

// Sets every option of `options` that `arguments` (without program and verb) hold. Error
// (bad_input): one sentence, with the nearest option for an unknown one.
Status parse_arguments(const std::string& verb, const std::vector<std::string>& arguments,
                       const Options& options);

}  // namespace kvsweep::cli
