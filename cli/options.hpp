// Options: what a verb accepts, declared with the places its values go to. A small interface of
// our own, so that the command-line library is compiled into one file only (cli/parse.cpp).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/result.hpp"

namespace kvsweep::cli {

struct OptionSpec {
  std::string name;     // "--db", or "SPEC" for a positional
  std::string metavar;  // "FILE"; "" = a flag
  std::string help;
  bool positional = false;
  bool required = false;
  bool rest = false;  // takes every remaining word
  // Takes the text of the value ("" for a flag); an error is a usage error.
  std::function<Status(const std::string&)> set;
};

// Places (references) must outlive the parse.
class Options {
 public:
  void flag(const std::string& name, bool& place, const std::string& help);
  void text(const std::string& name, const std::string& metavar, std::string& place,
            const std::string& help);
  void text(const std::string& name, const std::string& metavar, std::optional<std::string>& place,
            const std::string& help);
  template <typename Integer>
  void integer(const std::string& name, const std::string& metavar, Integer& place, int64_t low,
               int64_t high, const std::string& help) {
    value(name, metavar, help, [name, low, high, &place](const std::string& text) -> Status {
      KVSWEEP_ASSIGN(const int64_t number, parse_integer(name, text, low, high));
      place = static_cast<Integer>(number);
      return {};
    });
  }
  void value(const std::string& name, const std::string& metavar, const std::string& help,
             std::function<Status(const std::string&)> set);

  void positional(const std::string& name, std::string& place, const std::string& help,
                  bool required = true);
  void rest(const std::string& name, std::vector<std::string>& place, const std::string& help);

  // A line for the help, without "kvsweep ".
  void example(const std::string& line) { examples_.push_back(line); }
  // A paragraph for the help, after the summary.
  void note(const std::string& text) { notes_.push_back(text); }

  const std::vector<OptionSpec>& specs() const { return specs_; }
  const std::vector<std::string>& examples() const { return examples_; }
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  static Result<int64_t> parse_integer(const std::string& name, const std::string& text,
                                       int64_t low, int64_t high);

  std::vector<OptionSpec> specs_;
  std::vector<std::string> examples_;
  std::vector<std::string> notes_;
};

}  // namespace kvsweep::cli
