// Terminal: where text goes and how it may look there.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace kvsweep::cli {

class Terminal {
 public:
  // Colour is used on a terminal unless NO_COLOR is set (https://no-color.org) or TERM is dumb.
  explicit Terminal(std::FILE* file);

  bool interactive() const { return interactive_; }
  int width() const;  // columns; 80 when unknown

  void print(std::string_view text) const;  // flushed
  std::string bold(std::string_view text) const { return styled(text, "1"); }
  std::string dim(std::string_view text) const { return styled(text, "2"); }
  std::string green(std::string_view text) const { return styled(text, "32"); }
  std::string yellow(std::string_view text) const { return styled(text, "33"); }
  std::string red(std::string_view text) const { return styled(text, "31"); }

  bool failed() const;  // a write failed (disk full, closed pipe)

 private:
  std::string styled(std::string_view text, std::string_view code) const;

  std::FILE* file_;
  bool interactive_;
  bool colour_;
};

// Columns that UTF-8 text takes: one per code point, none per escape sequence.
size_t display_width(std::string_view text);
// At most `width` columns of plain text, ending in "..." when cut.
std::string shortened(const std::string& text, size_t width);

}  // namespace kvsweep::cli
