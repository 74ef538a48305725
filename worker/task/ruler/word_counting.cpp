// cwe, common words: a numbered list in which ten words stand more often than the others, after a
// solved example. fwe, frequent words: coded words with frequencies of Zipf's law, of which the
// second to fourth are asked for.
#include <algorithm>
#include <cmath>
#include <set>

#include "core/text.hpp"
#include "worker/task/ruler/row.hpp"

namespace kvsweep::task::ruler {
namespace {

constexpr size_t kCommon = 10;
constexpr int64_t kLong = 4096;  // tokens from which on words repeat more often

// How often a common and another word stand in the list.
struct Repeats {
  int common;
  int other;
};

std::string numbered(const std::vector<const std::string*>& words) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += ' ';
    text += std::to_string(i + 1) + ". " + *words[i];
  }
  return text;
}

// The first kCommon of `words` are the common ones.
std::string word_list(const std::vector<const std::string*>& words, Repeats repeats, Rng& rng) {
  std::vector<const std::string*> list;
  for (size_t i = 0; i < words.size(); ++i) {
    list.insert(list.end(), static_cast<size_t>(i < kCommon ? repeats.common : repeats.other),
                words[i]);
  }
  shuffle(list, rng);
  return "Below is a numbered list of words. In these words, some appear more often than others. "
         "Memorize the ones that appear most often.\n" +
         numbered(list) + "\nQuestion: What are the 10 most common words in the above list?";
}

class CommonWords final : public Subtask {
 public:
  explicit CommonWords(int64_t length)
      : repeats_(length < kLong ? Repeats{6, 1} : Repeats{30, 3}),
        example_repeats_(length < kLong ? Repeats{3, 1} : Repeats{10, 3}),
        example_words_(length < kLong ? 20 : 40) {}

  int answer_tokens() const override { return 120; }
  int64_t min_units() const override { return kCommon + 1; }
  int64_t max_units(const Material& material, int64_t length) const override {
    return std::min(length, static_cast<int64_t>(material.words.size()));
  }

  Text text(const Material& material, int64_t units, const Accept& accept,
            Rng& rng) const override {
    const std::string prefix = " Answer: The top 10 words that appear most often in the list are:";
    std::vector<std::string> common;
    do {
      common = names(draw_words(material, kCommon, {}, rng));
    } while (!accept(join(common, " ")));
    const std::vector<const std::string*> shown = draw_words(material, example_words_, {}, rng);
    const std::vector<const std::string*> first(shown.begin(), shown.begin() + kCommon);
    Text text;
    text.input = word_list(shown, example_repeats_, rng) + prefix + " " + numbered(first) + "\n";
    text.input +=
        word_list(draw_words(material, static_cast<size_t>(units), common, rng), repeats_, rng);
    text.answer_prefix = prefix;
    text.outputs = std::move(common);
    return text;
  }

 private:
  static std::vector<std::string> names(const std::vector<const std::string*>& words) {
    std::vector<std::string> texts;
    for (const std::string* word : words) texts.push_back(*word);
    return texts;
  }

  // `count` different words, `first` at their head.
  static std::vector<const std::string*> draw_words(const Material& material, size_t count,
                                                    const std::vector<std::string>& first,
                                                    Rng& rng) {
    std::vector<const std::string*> all;
    for (const std::string& word : material.words) all.push_back(&word);
    for (size_t i = 0; i < first.size(); ++i) {
      const auto place = std::lower_bound(material.words.begin(), material.words.end(), first[i]);
      const auto wanted = &*place;
      std::swap(all[i], *std::find(all.begin(), all.end(), wanted));
    }
    for (size_t i = first.size(); i < count; ++i) {
      std::swap(all[i], all[i + rng.below(all.size() - i)]);
    }
    all.resize(count);
    return all;
  }

  Repeats repeats_;
  Repeats example_repeats_;
  size_t example_words_;
};

class FrequentWords final : public Subtask {
 public:
  explicit FrequentWords(int64_t length)
      : vocabulary_(static_cast<size_t>(std::max<int64_t>(length / 50, 5))) {}

  int answer_tokens() const override { return 50; }
  // From here on the fourth word stands more often than the fifth.
  int64_t min_units() const override { return 83; }

  Text text(const Material& /*material*/, int64_t units, const Accept& accept,
            Rng& rng) const override {
    std::vector<std::string> words;
    std::vector<std::string> asked;
    do {
      words = draw_vocabulary(rng);
      asked.assign(words.begin() + 1, words.begin() + 4);
    } while (!accept(join(asked, " ")));
    Text text;
    text.input =
        "Read the following coded text and track the frequency of each coded word. Find the three "
        "most frequently appeared coded words. " +
        join(coded(words, units, rng), " ") +
        "\nQuestion: Do not provide any explanation. Please ignore the dots '....'. What are the "
        "three most frequently appeared words in the above coded text?";
    text.answer_prefix =
        " Answer: According to the coded text above, the three most frequently appeared words are:";
    text.outputs = std::move(asked);
    return text;
  }

 private:
  static constexpr int kLetters = 6;
  static constexpr double kZeta2 = 1.6449340668482264;  // pi^2 / 6: Zipf's law with alpha 2

  // The most frequent word is noise.
  std::vector<std::string> draw_vocabulary(Rng& rng) const {
    std::vector<std::string> words = {"..."};
    std::set<std::string> known;
    while (words.size() < vocabulary_) {
      std::string word = random_letters(kLetters, 'a', rng);
      if (known.insert(word).second) words.push_back(std::move(word));
    }
    return words;
  }

  static std::vector<std::string> coded(const std::vector<std::string>& words, int64_t units,
                                        Rng& rng) {
    std::vector<std::string> text;
    for (size_t i = 0; i < words.size(); ++i) {
      const auto rank = static_cast<double>(i + 1);
      const auto times = static_cast<size_t>(static_cast<double>(units) / (rank * rank) / kZeta2);
      text.insert(text.end(), times, words[i]);
    }
    shuffle(text, rng);
    return text;
  }

  size_t vocabulary_;
};

}  // namespace

std::unique_ptr<Subtask> make_common_words(int64_t length) {
  return std::make_unique<CommonWords>(length);
}

std::unique_ptr<Subtask> make_frequent_words(int64_t length) {
  return std::make_unique<FrequentWords>(length);
}

}  // namespace kvsweep::task::ruler
