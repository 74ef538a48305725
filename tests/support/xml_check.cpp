#include "tests/support/xml_check.hpp"

#include <cctype>
#include <set>
#include <vector>

namespace kvsweep::test {
namespace {

bool is_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == ':';
}

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  std::string problem() {
    if (text_.substr(0, 5) == "<?xml") {
      const size_t end = text_.find("?>");
      if (end == std::string_view::npos) return "the declaration does not end";
      at_ = end + 2;
    }
    while (at_ < text_.size()) {
      const std::string wrong = text_[at_] == '<' ? tag() : character();
      if (!wrong.empty()) return wrong + " at byte " + std::to_string(at_);
    }
    if (!open_.empty()) return "<" + open_.back() + "> is not closed";
    return roots_ == 1 ? "" : "there must be one root";
  }

 private:
  std::string character() {
    const char c = text_[at_];
    if (open_.empty() && !std::isspace(static_cast<unsigned char>(c)))
      return "text outside the root";
    if (c == '&') return entity();
    if (c == '>') return "a bare >";
    if (static_cast<unsigned char>(c) < 0x20 && c != '\n') return "a control character";
    ++at_;
    return "";
  }

  std::string entity() {
    const size_t end = text_.find(';', at_);
    if (end == std::string_view::npos) return "an entity without end";
    const std::string_view name = text_.substr(at_ + 1, end - at_ - 1);
    for (const char* known : {"amp", "lt", "gt", "quot", "apos", "#39"}) {
      if (name == known) {
        at_ = end + 1;
        return "";
      }
    }
    return "an unknown entity";
  }

  std::string name() {
    const size_t begin = at_;
    while (at_ < text_.size() && is_name(text_[at_])) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }

  bool take(std::string_view part) {
    if (text_.substr(at_, part.size()) != part) return false;
    at_ += part.size();
    return true;
  }

  std::string tag() {
    ++at_;
    if (take("/")) {
      const std::string closing = name();
      if (open_.empty() || open_.back() != closing) return "</" + closing + "> closes nothing";
      open_.pop_back();
      return take(">") ? "" : "a closing tag does not end";
    }
    const std::string opening = name();
    if (opening.empty()) return "a bare <";
    if (open_.empty()) ++roots_;
    std::set<std::string> attributes;
    while (at_ < text_.size() && text_[at_] == ' ') {
      ++at_;
      const std::string attribute = name();
      if (attribute.empty() || !attributes.insert(attribute).second) return "a bad attribute";
      if (!take("=\"")) return "an attribute without quotes";
      while (at_ < text_.size() && text_[at_] != '"') {
        if (text_[at_] == '<' || static_cast<unsigned char>(text_[at_]) < 0x20) {
          return "a character that an attribute may not hold";
        }
        if (text_[at_] == '&') {
          if (std::string wrong = entity(); !wrong.empty()) return wrong;
        } else {
          ++at_;
        }
      }
      if (!take("\"")) return "an attribute does not end";
    }
    if (take("/>")) return "";
    if (!take(">")) return "a tag does not end";
    open_.push_back(opening);
    return "";
  }

  std::string_view text_;
  size_t at_ = 0;
  int roots_ = 0;
  std::vector<std::string> open_;
};

}  // namespace

std::string xml_problem(std::string_view text) {
  return Reader(text).problem();
}

int count_of(std::string_view text, std::string_view part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

}  // namespace kvsweep::test
