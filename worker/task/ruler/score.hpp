// How answers to RULER and to the needle test are scored.
#pragma once

#include <string>
#include <vector>

namespace kvsweep::task::ruler {

// Share, 0..1, of `outputs` that `text` contains, upper and lower case of ASCII being equal.
// Control characters (below 32) of the text count as newlines and blanks around it are dropped, as
// RULER does before it looks. 0 without outputs.
double share_contained(const std::string& text, const std::vector<std::string>& outputs);

// ROUGE-1 F of the two texts, 0..1: words are runs of ASCII letters and digits, in lower case;
// each counts as often as it stands in both. No stemming (the package rouge_score can stem).
double rouge1_f(const std::string& text, const std::string& reference);

}  // namespace kvsweep::task::ruler
