#include "cli/options.hpp"

#include <fmt/format.h>

#include <charconv>

namespace kvsweep::cli {

void Options::flag(const std::string& name, bool& place, const std::string& help) {
  value(name, "", help, [&place](const std::string&) -> Status {
    place = true;
    return {};
  });
}

void Options::text(const std::string& name, const std::string& metavar, std::string& place,
                   const std::string& help) {
  value(name, metavar, help, [name, &place](const std::string& text) -> Status {
    if (text.empty()) return bad_input(name + " is empty; give a value");
    place = text;
    return {};
  });
}

void Options::text(const std::string& name, const std::string& metavar,
                   std::optional<std::string>& place, const std::string& help) {
  value(name, metavar, help, [name, &place](const std::string& text) -> Status {
    if (text.empty()) return bad_input(name + " is empty; give a value");
    place = text;
    return {};
  });
}

void Options::value(const std::string& name, const std::string& metavar, const std::string& help,
                    std::function<Status(const std::string&)> set) {
  OptionSpec spec;
  spec.name = name;
  spec.metavar = metavar;
  spec.help = help;
  spec.set = std::move(set);
  specs_.push_back(std::move(spec));
}

void Options::positional(const std::string& name, std::string& place, const std::string& help,
                         bool required) {
  text(name, name, place, help);
  specs_.back().positional = true;
  specs_.back().required = required;
}

void Options::rest(const std::string& name, std::vector<std::string>& place,
                   const std::string& help) {
  value(name, name, help, [&place](const std::string& text) -> Status {
    place.push_back(text);
    return {};
  });
  specs_.back().positional = true;
  specs_.back().rest = true;
}

Result<int64_t> Options::parse_integer(const std::string& name, const std::string& text,
                                       int64_t low, int64_t high) {
  int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc() && stop == end && number >= low && number <= high) return number;
  return bad_input(
      fmt::format("{} is \"{}\"; it must be a whole number from {} to {}", name, text, low, high));
}

}  // namespace kvsweep::cli
