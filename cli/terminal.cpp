#include "cli/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

namespace kvsweep::cli {
namespace {

bool set_and_not_empty(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

bool dumb_terminal() {
  const char* term = std::getenv("TERM");
  return term == nullptr || std::string_view(term) == "dumb";
}

bool starts_code_point(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
}

}  // namespace

Terminal::Terminal(std::FILE* file)
    : file_(file),
      interactive_(::isatty(::fileno(file)) != 0 && !dumb_terminal()),
      colour_(interactive_ && !set_and_not_empty("NO_COLOR")) {}

int Terminal::width() const {
  winsize size{};
  if (::ioctl(::fileno(file_), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

void Terminal::print(std::string_view text) const {
  std::fwrite(text.data(), 1, text.size(), file_);
  std::fflush(file_);
}

bool Terminal::failed() const {
  return std::ferror(file_) != 0;
}

std::string Terminal::styled(std::string_view text, std::string_view code) const {
  if (!colour_) return std::string(text);
  return "\033[" + std::string(code) + "m" + std::string(text) + "\033[0m";
}

size_t display_width(std::string_view text) {
  size_t columns = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\033') {
      while (i < text.size() && text[i] != 'm') ++i;
    } else {
      columns += starts_code_point(text[i]);
    }
  }
  return columns;
}

std::string shortened(const std::string& text, size_t width) {
  if (display_width(text) <= width) return text;
  if (width < 4) return std::string(width, '.');
  size_t columns = 0;
  size_t end = 0;
  while (end < text.size()) {
    if (starts_code_point(text[end]) && columns++ == width - 3) break;
    ++end;
  }
  return text.substr(0, end) + "...";
}

}  // namespace kvsweep::cli
