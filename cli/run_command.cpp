#include <fmt/format.h>

#include <algorithm>

#include "cli/help.hpp"
#include "cli/parse.hpp"
#include "cli/verb.hpp"
#include "cli/version.hpp"
#include "core/text.hpp"

namespace kvsweep::cli {
namespace {

const VerbInfo* find_verb(const std::string& name) {
  for (const VerbInfo& verb : verbs()) {
    if (verb.name == name) return &verb;
  }
  return nullptr;
}

int complain(Context& context, const std::string& message, int code) {
  context.err.print("kvsweep: " + replace_invalid_utf8(message) + "\n");
  return code;
}

int unknown_verb(Context& context, const std::string& name) {
  std::vector<std::string> names = {"help"};
  for (const VerbInfo& verb : verbs()) names.emplace_back(verb.name);
  const std::string near = nearest_word(name, names);
  return complain(context,
                  fmt::format("unknown verb \"{}\"; {}", name,
                              near.empty() ? "see `kvsweep --help`" : "did you mean " + near + "?"),
                  kUsage);
}

bool asks_for_help(const std::vector<std::string>& arguments) {
  const auto end = std::find(arguments.begin(), arguments.end(), "--");
  return std::any_of(arguments.begin(), end,
                     [](const std::string& word) { return word == "--help" || word == "-h"; });
}

int run_verb(const VerbInfo& info, const std::vector<std::string>& arguments, Context& context) {
  const std::unique_ptr<Verb> verb = info.make();
  Options options;
  verb->declare(options);
  if (asks_for_help(arguments)) {
    context.out.print(verb_help(info, options, context.out));
    return kOk;
  }
  const Status parsed = parse_arguments(std::string(info.name), arguments, options);
  if (!parsed.ok()) return complain(context, parsed.error().message, kUsage);
  const Result<int> code = verb->run(context);
  if (!code.ok()) return complain(context, code.error().message, kFailed);
  if (context.out.failed()) {
    return complain(context, "cannot write to standard output; is the disk full?", kFailed);
  }
  return *code;
}

}  // namespace

int run_command(const std::vector<std::string>& arguments, Context& context) {
  const std::string first = arguments.empty() ? "" : arguments.front();
  if (first.empty()) {
    context.err.print(general_help(context.err));
    return kUsage;
  }
  if (first == "--help" || first == "-h" || (first == "help" && arguments.size() == 1)) {
    context.out.print(general_help(context.out));
    return kOk;
  }
  if (first == "--version") {
    context.out.print(fmt::format("kvsweep {}\n", kVersion));
    return kOk;
  }
  std::vector<std::string> rest(arguments.begin() + 1, arguments.end());
  if (first == "help") {
    const VerbInfo* verb = find_verb(rest.front());
    return verb ? run_verb(*verb, {"--help"}, context) : unknown_verb(context, rest.front());
  }
  if (first.starts_with('-')) {
    return complain(context,
                    fmt::format("unknown option {} before the verb; options follow the verb, as in "
                                "`kvsweep tune SPEC --db FILE`",
                                first),
                    kUsage);
  }
  const VerbInfo* verb = find_verb(first);
  return verb ? run_verb(*verb, rest, context) : unknown_verb(context, first);
}

}  // namespace kvsweep::cli
