#include "cli/help.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/text.hpp"

namespace kvsweep::cli {
namespace {

constexpr size_t kLineWidth = 80;

// Words of `text` in lines of at most kLineWidth columns, each after `indent` blanks.
std::string wrapped(const std::string& text, size_t indent) {
  std::string all;
  std::string line;
  for (const std::string& word : split(text, ' ')) {
    if (!line.empty() && indent + line.size() + 1 + word.size() > kLineWidth) {
      all += line + "\n" + std::string(indent, ' ');
      line.clear();
    }
    line += line.empty() ? word : " " + word;
  }
  return all + line;
}

std::string label_of(const OptionSpec& spec) {
  if (spec.positional) return spec.name;
  return spec.metavar.empty() ? spec.name : spec.name + " " + spec.metavar;
}

std::string usage(const VerbInfo& verb, const Options& options) {
  std::string line = fmt::format("kvsweep {} [options]", verb.name);
  for (const OptionSpec& spec : options.specs()) {
    if (!spec.positional) continue;
    line += " " + (spec.rest       ? "[" + spec.name + "...]"
                   : spec.required ? spec.name
                                   : "[" + spec.name + "]");
  }
  return line;
}

std::string option_table(const Options& options, bool positional) {
  size_t width = 0;
  for (const OptionSpec& spec : options.specs()) width = std::max(width, label_of(spec).size());
  std::string all;
  for (const OptionSpec& spec : options.specs()) {
    if (spec.positional != positional) continue;
    all += fmt::format("  {:<{}}  {}\n", label_of(spec), width, wrapped(spec.help, width + 4));
  }
  return all;
}

}  // namespace

std::string general_help(const Terminal& terminal) {
  std::string text =
      "kvsweep finds which KV-cache precision each layer of a language model needs.\n\n" +
      terminal.bold("Usage") + "\n  kvsweep VERB [options]\n\n" + terminal.bold("Verbs") + "\n";
  for (const VerbInfo& verb : verbs()) {
    text += fmt::format("  {:<12} {}\n", verb.name, verb.summary);
  }
  text += "\n" + terminal.bold("Examples") +
          "\n"
          "  kvsweep tune examples/smollm2.yaml      run a study here, with local workers\n"
          "  kvsweep front --svg front.svg           look at what it found\n"
          "  kvsweep export --trial 17 --format kvmap --out best.kvmap.json\n"
          "  kvsweep doctor                          when something does not work\n\n" +
          terminal.bold("Exit codes") +
          "\n"
          "  0    done\n"
          "  1    failed; the reason is on standard error\n"
          "  2    the command line was wrong\n"
          "  3    the target format cannot hold the whole map; see `kvsweep export --help`\n"
          "  130  interrupted; what was measured is recorded\n\n"
          "`kvsweep VERB --help` explains one verb. Results go to standard output, progress and\n"
          "errors to standard error. NO_COLOR turns colours off.\n";
  return text;
}

std::string verb_help(const VerbInfo& verb, const Options& options, const Terminal& terminal) {
  std::string text = fmt::format("kvsweep {}: {}\n\n", verb.name, verb.summary);
  for (const std::string& note : options.notes()) text += wrapped(note, 0) + "\n\n";
  text += terminal.bold("Usage") + "\n  " + usage(verb, options) + "\n\n";
  const std::string arguments = option_table(options, true);
  if (!arguments.empty()) text += terminal.bold("Arguments") + "\n" + arguments + "\n";
  text += terminal.bold("Options") + "\n" + option_table(options, false);
  if (!options.examples().empty()) text += "\n" + terminal.bold("Examples") + "\n";
  for (const std::string& example : options.examples()) text += "  kvsweep " + example + "\n";
  return text;
}

}  // namespace kvsweep::cli
