// Help texts.
#pragma once

#include <string>

#include "cli/terminal.hpp"
#include "cli/verb.hpp"

namespace kvsweep::cli {

std::string general_help(const Terminal& terminal);
std::string verb_help(const VerbInfo& verb, const Options& options, const Terminal& terminal);

}  // namespace kvsweep::cli
