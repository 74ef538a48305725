#include "worker/task/wikitext.hpp"

#include <algorithm>
#include <utility>

#include "core/text.hpp"
#include "worker/task/unicode_text.hpp"

namespace kvsweep::task {
namespace {

using Text = std::u32string;

void replace_all(Text& text, std::u32string_view what, std::u32string_view with) {
  Text out;
  size_t begin = 0;
  for (size_t at = text.find(what); at != Text::npos; at = text.find(what, begin)) {
    out.append(text, begin, at - begin).append(with);
    begin = at + what.size();
  }
  text = std::move(out.append(text, begin));
}

Text stripped(std::u32string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return Text(text);
}

// `\(\s*([^\)]*?)\s*\)` -> `(\1)`, of any two marks: what lies between one and the next closing one
// loses the white space at its ends.
void trim_between(Text& text, char32_t open, char32_t close) {
  Text out;
  size_t begin = 0;
  for (size_t at = text.find(open); at != Text::npos; at = text.find(open, begin)) {
    const size_t end = text.find(close, at + 1);
    if (end == Text::npos) break;
    out.append(text, begin, at + 1 - begin);
    out.append(stripped(std::u32string_view(text).substr(at + 1, end - at - 1))).push_back(close);
    begin = end + 1;
  }
  text = std::move(out.append(text, begin));
}

// `/' [0-9]/`, which lm-eval replaces by `/'[0-9]/` to the letter.
void replace_slashed_digit(Text& text) {
  for (char32_t digit = U'0'; digit <= U'9'; ++digit) {
    replace_all(text, Text(U"/' ") + digit + U"/", U"/'[0-9]/");
  }
}

bool begins_page(const std::string& line) {
  Text shown = code_points(line);
  replace_all(shown, U"= = =", U"===");
  replace_all(shown, U"= =", U"==");
  shown = stripped(shown);
  return shown.starts_with(U"= ") && shown.ends_with(U" =");
}

bool is_blank(const std::string& text) {
  return stripped(code_points(text)).empty();
}

}  // namespace

std::string joined_rows(const std::string& text) {
  std::string out;
  bool first = true;
  for (size_t begin = 0; begin < text.size();) {
    const size_t feed = text.find('\n', begin);
    const size_t end = feed == std::string::npos ? text.size() : feed + 1;
    if (!first) out += "\n\n";
    first = false;
    const std::string line = text.substr(begin, end - begin);
    if (line != " \n") out += line;
    begin = end;
  }
  return out;
}

std::vector<std::string> wikitext_pages(const std::string& text) {
  std::vector<std::string> pages;
  std::vector<std::string> lines;
  for (const std::string& line : split(text, '\n')) {
    if (begins_page(line)) {
      std::string page = join(lines, "\n");
      if (!is_blank(page)) pages.push_back(std::move(page));
      lines.clear();
    }
    lines.push_back(line);
  }
  pages.push_back(join(lines, "\n"));
  return pages;
}

std::string detokenized(const std::string& page) {
  Text text = code_points(page);
  replace_all(text, U"s '", U"s'");
  replace_slashed_digit(text);
  for (const auto& [what, with] :
       std::vector<std::pair<std::u32string, std::u32string>>{{U" @-@ ", U"-"},
                                                              {U" @,@ ", U","},
                                                              {U" @.@ ", U"."},
                                                              {U" : ", U": "},
                                                              {U" ; ", U"; "},
                                                              {U" . ", U". "},
                                                              {U" ! ", U"! "},
                                                              {U" ? ", U"? "},
                                                              {U" , ", U", "}}) {
    replace_all(text, what, with);
  }
  trim_between(text, U'(', U')');
  trim_between(text, U'[', U']');
  trim_between(text, U'{', U'}');
  trim_between(text, U'"', U'"');
  trim_between(text, U'\'', U'\'');
  for (const auto& [what, with] :
       std::vector<std::pair<std::u32string, std::u32string>>{{U"= = = =", U"===="},
                                                              {U"= = =", U"==="},
                                                              {U"= =", U"=="},
                                                              {U" \u00b0 ", U"\u00b0"},
                                                              {U" \n", U"\n"},
                                                              {U"\n ", U"\n"},
                                                              {U" N ", U" 1 "},
                                                              {U" 's", U"'s"}}) {
    replace_all(text, what, with);
  }
  return utf8(text);
}

int64_t words_of(const std::string& page) {
  const Text text = code_points(page);
  int64_t gaps = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (is_space(text[i]) && (i == 0 || !is_space(text[i - 1]))) ++gaps;
  }
  return gaps + 1;
}

}  // namespace kvsweep::task
