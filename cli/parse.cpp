#include "cli/parse.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <deque>

#include "core/text.hpp"

namespace kvsweep::cli {
namespace {

// Words that came in for one option.
struct Received {
  const OptionSpec* spec = nullptr;
  std::vector<std::string> words;
  int64_t flags = 0;
  CLI::Option* option = nullptr;
};

void register_option(CLI::App& app, Received& received) {
  const OptionSpec& spec = *received.spec;
  // CLI11 names positionals without dashes.
  if (spec.metavar.empty()) {
    received.option = app.add_flag(spec.name, received.flags);
  } else {
    received.option = app.add_option(spec.name, received.words);
    received.option->expected(spec.rest ? -1 : 1);
    received.option->allow_extra_args(spec.rest);
  }
}

std::string known_options(const Options& options) {
  std::vector<std::string> names;
  for (const OptionSpec& spec : options.specs()) {
    if (!spec.positional) names.push_back(spec.name);
  }
  return join(names, ", ");
}

Error unexpected(const std::string& verb, const std::string& word, const Options& options) {
  if (word.size() < 2 || word[0] != '-') {
    return bad_input(
        fmt::format("unexpected argument \"{}\"; see `kvsweep {} --help`", word, verb));
  }
  std::vector<std::string> names = {"--help"};
  for (const OptionSpec& spec : options.specs()) {
    if (!spec.positional) names.push_back(spec.name);
  }
  const std::string name = word.substr(0, word.find('='));
  const std::string near = nearest_word(name, names);
  const std::string hint = near.empty()
                               ? fmt::format("`kvsweep {}` takes {}", verb, known_options(options))
                               : fmt::format("did you mean {}?", near);
  return bad_input(fmt::format("unknown option {}; {}", name, hint));
}

// The library's own sentences speak of counts and indices; what a person did wrong here is that a
// value is missing or given twice.
Error mismatch(const std::deque<Received>& all, const std::vector<std::string>& arguments,
               const std::string& fallback) {
  for (const Received& received : all) {
    const std::string& name = received.spec->name;
    if (received.spec->positional || received.spec->metavar.empty()) continue;
    size_t count = 0;
    bool last = false;
    for (size_t i = 0; i < arguments.size(); ++i) {
      const bool here =
          arguments[i] == name || arguments[i].compare(0, name.size() + 1, name + "=") == 0;
      count += here;
      if (here) last = i + 1 == arguments.size() || arguments[i + 1].compare(0, 2, "--") == 0;
    }
    if (count > 1) return bad_input(fmt::format("{} is given {} times; keep one", name, count));
    if (count == 1 && last) {
      return bad_input(fmt::format("{} needs a value ({})", name, received.spec->metavar));
    }
  }
  return bad_input(fallback);
}

Status deliver(const std::string& verb, const Received& received) {
  const OptionSpec& spec = *received.spec;
  if (spec.metavar.empty()) {
    if (received.flags > 0) return spec.set("");
    return {};
  }
  for (const std::string& word : received.words) KVSWEEP_TRY(spec.set(word));
  if (spec.required && received.words.empty()) {
    return bad_input(
        fmt::format("{} is missing ({}); see `kvsweep {} --help`", spec.name, spec.help, verb));
  }
  return {};
}

}  // namespace

Status parse_arguments(const std::string& verb, const std::vector<std::string>& arguments,
                       const Options& options) {
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  std::deque<Received> all;
  for (const OptionSpec& spec : options.specs()) {
    all.push_back({&spec, {}, 0, nullptr});
    register_option(app, all.back());
  }
  try {
    // CLI11 takes the words in reverse order.
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    return mismatch(all, arguments, error.what());
  }
  const std::vector<std::string> extras = app.remaining();
  if (!extras.empty()) return unexpected(verb, extras.front(), options);
  for (const Received& received : all) KVSWEEP_TRY(deliver(verb, received));
  return {};
}

}  // namespace kvsweep::cli
