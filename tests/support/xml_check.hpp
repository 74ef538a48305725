// Well-formedness of XML (1.0, the part that SVG files of ours use): an independent reading, since
// the writer has no parser to agree with.
#pragma once

#include <string>
#include <string_view>

namespace kvsweep::test {

// "" when `text` is well-formed: one root, tags nested and closed, attributes quoted and not
// repeated, only the five entities and numeric ones, no control characters. Else what is wrong.
std::string xml_problem(std::string_view text);

int count_of(std::string_view text, std::string_view part);

}  // namespace kvsweep::test
