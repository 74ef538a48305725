// Needles in a haystack: sentences that give a key a magic value, hidden in noise, in a long text
// or among other needles. The settings of the eight subtasks are those of RULER's synthetic.yaml.
#include <algorithm>
#include <cmath>

#include "core/text.hpp"
#include "worker/task/ruler/row.hpp"

namespace kvsweep::task::ruler {
namespace {

enum class Haystack { noise, essay, needles };
enum class Kind { words, numbers, uuids };

struct Settings {
  const char* name;
  Haystack haystack;
  Kind key;
  Kind value;
  int keys;     // needles with a key of their own
  int values;   // per key
  int queries;  // keys asked for
};

constexpr Settings kSettings[] = {
    {"niah_single_1", Haystack::noise, Kind::words, Kind::numbers, 1, 1, 1},
    {"niah_single_2", Haystack::essay, Kind::words, Kind::numbers, 1, 1, 1},
    {"niah_single_3", Haystack::essay, Kind::words, Kind::uuids, 1, 1, 1},
    {"niah_multikey_1", Haystack::essay, Kind::words, Kind::numbers, 4, 1, 1},
    {"niah_multikey_2", Haystack::needles, Kind::words, Kind::numbers, 1, 1, 1},
    {"niah_multikey_3", Haystack::needles, Kind::uuids, Kind::uuids, 1, 1, 1},
    {"niah_multivalue", Haystack::essay, Kind::words, Kind::numbers, 1, 4, 1},
    // As many keys as queries: RULER raises num_needle_k to num_needle_q.
    {"niah_multiquery", Haystack::essay, Kind::words, Kind::numbers, 4, 1, 4},
};

constexpr int kDepths = 40;  // even steps from 0 to 100 % of the sentences, rounded

const char* plural(Kind kind) {
  return kind == Kind::numbers ? "numbers" : kind == Kind::uuids ? "uuids" : "words";
}

std::string uuid4(Rng& rng) {
  const uint64_t high = (rng.next() & ~uint64_t{0xf000}) | 0x4000;                 // version 4
  const uint64_t low = (rng.next() & ~(uint64_t{3} << 62)) | (uint64_t{2} << 62);  // variant 1
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (int i = 0; i < 32; ++i) {
    if (i == 8 || i == 12 || i == 16 || i == 20) text += '-';
    text += kDigits[((i < 16 ? high : low) >> (60 - 4 * (i % 16))) & 15];
  }
  return text;
}

std::string draw(Kind kind, const Material& material, Rng& rng) {
  if (kind == Kind::numbers) return std::to_string(rng.between(1'000'000, 9'999'999));
  if (kind == Kind::uuids) return uuid4(rng);
  const std::string& adjective = material.adjectives[rng.below(material.adjectives.size())];
  return adjective + "-" + material.nouns[rng.below(material.nouns.size())];
}

struct Facts {
  std::vector<std::string> keys;
  std::vector<std::vector<std::string>> values;  // of each key
  std::vector<std::string> needles;              // in the order of the text
};

class Niah final : public Subtask {
 public:
  explicit Niah(const Settings& settings) : settings_(settings) {}

  int answer_tokens() const override { return 128; }
  bool needs_essay() const override { return settings_.haystack == Haystack::essay; }
  int64_t min_units() const override {
    return needs_essay() ? 50 : settings_.keys * settings_.values;
  }

  Text text(const Material& material, int64_t units, const Accept& accept,
            Rng& rng) const override {
    Facts facts = draw_facts(material, rng);
    while (!accept(join(facts.needles, "\n"))) facts = draw_facts(material, rng);
    std::vector<std::string> asked;
    std::vector<std::string> outputs;
    for (const size_t i : queries(rng)) {
      asked.push_back(facts.keys[i]);
      outputs.insert(outputs.end(), facts.values[i].begin(), facts.values[i].end());
    }
    const std::string haystack = needs_essay() ? in_essay(facts, material, units, rng)
                                               : in_lines(facts, material, units, rng);
    return written(haystack, asked, std::move(outputs));
  }

 private:
  std::string needle(const std::string& key, const std::string& value) const {
    return std::string("One of the special magic ") + plural(settings_.value) + " for " + key +
           " is: " + value + ".";
  }

  // Keys differ, and so do values: an answer must not be right by chance.
  Facts draw_facts(const Material& material, Rng& rng) const {
    Facts facts;
    std::vector<std::string> used;
    const auto fresh = [&](Kind kind) {
      std::string drawn = draw(kind, material, rng);
      while (std::find(used.begin(), used.end(), drawn) != used.end()) {
        drawn = draw(kind, material, rng);
      }
      used.push_back(drawn);
      return drawn;
    };
    for (int k = 0; k < settings_.keys; ++k) {
      facts.keys.push_back(fresh(settings_.key));
      facts.values.emplace_back();
      for (int v = 0; v < settings_.values; ++v) {
        facts.values.back().push_back(fresh(settings_.value));
        facts.needles.push_back(needle(facts.keys.back(), facts.values.back().back()));
      }
    }
    shuffle(facts.needles, rng);
    return facts;
  }

  std::vector<size_t> queries(Rng& rng) const {
    std::vector<size_t> order;
    for (int i = 0; i < settings_.keys; ++i) order.push_back(static_cast<size_t>(i));
    shuffle(order, rng);
    order.resize(static_cast<size_t>(settings_.queries));
    return order;
  }

  std::string in_lines(const Facts& facts, const Material& material, int64_t units,
                       Rng& rng) const {
    const std::vector<int64_t> places =
        sample(units, static_cast<int64_t>(facts.needles.size()), rng);
    std::string text;
    size_t placed = 0;
    for (int64_t i = 0; i < units; ++i) {
      if (placed < places.size() && places[placed] == i) text += facts.needles[placed++] + "\n";
      if (settings_.haystack == Haystack::noise) {
        text += kNoise;
      } else {
        const std::string key = other_key(facts, material, rng);
        text += needle(key, draw(settings_.value, material, rng));
      }
      text += '\n';
    }
    text.pop_back();
    return text;
  }

  // A distractor with the key that is asked for would make two answers right.
  std::string other_key(const Facts& facts, const Material& material, Rng& rng) const {
    std::string key = draw(settings_.key, material, rng);
    while (std::find(facts.keys.begin(), facts.keys.end(), key) != facts.keys.end()) {
      key = draw(settings_.key, material, rng);
    }
    return key;
  }

  // Needles stand between sentences, at different ones of the 40 depths.
  std::string in_essay(const Facts& facts, const Material& material, int64_t units,
                       Rng& rng) const {
    const std::vector<std::string> sentences = sentences_of(material.essay, units);
    const std::vector<int64_t> depths =
        sample(kDepths, static_cast<int64_t>(facts.needles.size()), rng);
    std::vector<std::string> parts;
    size_t from = 0;
    for (size_t i = 0; i < depths.size(); ++i) {
      const double percent = std::nearbyint(100.0 * static_cast<double>(depths[i]) / (kDepths - 1));
      const auto to = static_cast<size_t>(static_cast<double>(sentences.size()) * percent / 100);
      parts.insert(parts.end(), sentences.begin() + static_cast<std::ptrdiff_t>(from),
                   sentences.begin() + static_cast<std::ptrdiff_t>(to));
      parts.push_back(facts.needles[i]);
      from = to;
    }
    parts.insert(parts.end(), sentences.begin() + static_cast<std::ptrdiff_t>(from),
                 sentences.end());
    return join(parts, " ");
  }

  Text written(const std::string& haystack, const std::vector<std::string>& asked,
               std::vector<std::string> outputs) const {
    const bool one = outputs.size() == 1;
    std::string kind = plural(settings_.value);
    if (one) kind.pop_back();
    std::string query = asked.front();
    if (asked.size() > 1) {
      const std::vector<std::string> firsts(asked.begin(), asked.end() - 1);
      query = join(firsts, ", ") + ", and " + asked.back();
    }
    Text text;
    text.input = std::string(one ? "A" : "Some") + " special magic " + kind +
                 (one ? " is" : " are") + " hidden within the following text. Make sure to " +
                 "memorize it. I will quiz you about the " + kind + " afterwards.\n" + haystack +
                 "\nWhat " + (one ? "is" : "are all") + " the special magic " + kind + " for " +
                 query + " mentioned in the provided text?";
    text.answer_prefix = " The special magic " + kind + " for " + query +
                         " mentioned in the provided text " + (one ? "is" : "are");
    text.outputs = std::move(outputs);
    return text;
  }

  Settings settings_;
};

}  // namespace

std::unique_ptr<Subtask> make_niah(const std::string& name) {
  for (const Settings& settings : kSettings) {
    if (name == settings.name) return std::make_unique<Niah>(settings);
  }
  return nullptr;
}

}  // namespace kvsweep::task::ruler
