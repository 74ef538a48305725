// What sets reference schemes apart (docs/decisions/0007): the parts of make_scheme and Scheme that
// only they need.
#pragma once

#include <string>

#include "core/scheme.hpp"

namespace kvsweep {

// Error (bad_input) names an option that what is published does not have. Other schemes pass.
Status check_reference(const SchemeInfo& scheme, const SchemeOptions& options);

// The format of one side with the scheme's arithmetic, where that side and codec have it.
Format with_arithmetic(Format format, Arithmetic arithmetic, bool keys);

// Empty, or the codec of the pair that the published code does not have.
std::string reference_objection(const SchemeInfo& scheme, Pair pair);

// Of both sides, under WindowRule::recode.
Window recode_window(const Scheme& scheme);

}  // namespace kvsweep
