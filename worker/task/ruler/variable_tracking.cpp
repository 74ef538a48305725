// vt: one chain of five variables in noise ("VAR A = 12345", "VAR B = VAR A", ...), after a short
// solved example with names of three letters. All five names are asked for.
#include <algorithm>

#include "core/text.hpp"
#include "worker/task/ruler/row.hpp"

namespace kvsweep::task::ruler {
namespace {

constexpr int kVariables = 5;
constexpr int kLetters = 5;
constexpr int kExampleLetters = 3;
constexpr int64_t kExampleNoises = 10;  // a few hundred tokens, as RULER's 500

struct Chain {
  std::vector<std::string> names;
  std::string value;
};

Chain draw_chain(int letters, Rng& rng) {
  Chain chain;
  while (chain.names.size() < kVariables) {
    std::string name = random_letters(letters, 'A', rng);
    if (std::find(chain.names.begin(), chain.names.end(), name) == chain.names.end()) {
      chain.names.push_back(std::move(name));
    }
  }
  chain.value = std::to_string(rng.between(10'000, 99'998));
  return chain;
}

// Statements follow noise sentences on their lines; the blank that ends all but the first
// statement is RULER's.
std::string context(const Chain& chain, int64_t noises, Rng& rng) {
  const std::vector<int64_t> places = sample(noises, kVariables, rng);
  std::vector<std::string> parts;
  size_t said = 0;
  for (int64_t i = 0; i < noises; ++i) {
    if (said < places.size() && places[said] == i) {
      parts.push_back("VAR " + chain.names[said] + " = " +
                      (said == 0 ? chain.value : "VAR " + chain.names[said - 1] + " "));
      ++said;
    }
    parts.push_back(std::string(kNoise) + "\n");
  }
  return join(parts, " ");
}

std::string question(const Chain& chain, int64_t noises, Rng& rng) {
  return "Memorize and track the chain(s) of variable assignment hidden in the following "
         "text.\n\n" +
         context(chain, noises, rng) +
         "\nQuestion: Find all variables that are assigned the value " + chain.value +
         " in the text above.";
}

// The spelling "assgined" is RULER's.
std::string prefix(const Chain& chain) {
  return " Answer: According to the chain(s) of variable assignment in the text above, " +
         std::to_string(kVariables) + " variables are assgined the value " + chain.value +
         ", they are: ";
}

class VariableTracking final : public Subtask {
 public:
  int answer_tokens() const override { return 30; }
  int64_t min_units() const override { return kVariables + 1; }

  Text text(const Material& /*material*/, int64_t units, const Accept& accept,
            Rng& rng) const override {
    Chain chain = draw_chain(kLetters, rng);
    while (!accept(join(chain.names, " ") + " " + chain.value)) chain = draw_chain(kLetters, rng);
    const Chain example = draw_chain(kExampleLetters, rng);
    Text text;
    text.input = question(example, kExampleNoises, rng) + prefix(example) + " " +
                 join(example.names, " ") + "\n\n\n\n";
    text.input += question(chain, units, rng);
    text.answer_prefix = prefix(chain);
    text.outputs = chain.names;
    return text;
  }
};

}  // namespace

std::unique_ptr<Subtask> make_variable_tracking() {
  return std::make_unique<VariableTracking>();
}

}  // namespace kvsweep::task::ruler
