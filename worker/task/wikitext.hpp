// WikiText's raw files (Merity et al., arXiv 1609.07843) in the shapes that perplexity is measured
// on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kvsweep::task {

// The lines as rows of the data set, joined by "\n\n": a line that holds a blank alone is an empty
// row, every other keeps its line feed. Other texts may be given too.
std::string joined_rows(const std::string& text);

// The pages of the file, as EleutherAI/wikitext_document_level has them: a page begins with a line
// "= Title =" of one level. Lines joined by "\n".
std::vector<std::string> wikitext_pages(const std::string& text);

// A page with its blanks around punctuation undone, as lm-eval's wikitext (version 2.0) does it.
std::string detokenized(const std::string& page);

// len(re.split(r"\s+", page)): empty words at the ends count.
int64_t words_of(const std::string& page);

}  // namespace kvsweep::task
