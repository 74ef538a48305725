// RULER's prompts, answered from their text as a person would.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "core/text.hpp"
#include "tests/worker/task/ruler_testing.hpp"

namespace kvsweep::task::ruler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::map<std::string, std::vector<std::string>> needles_in(const std::string& text) {
  std::map<std::string, std::vector<std::string>> values;
  const std::string opening = "One of the special magic ";
  for (size_t at = text.find(opening); at != std::string::npos; at = text.find(opening, at + 1)) {
    const size_t key = text.find(" for ", at) + 5;
    const size_t is = text.find(" is: ", key);
    const size_t end = text.find('.', is);
    values[text.substr(key, is - key)].push_back(text.substr(is + 5, end - is - 5));
  }
  return values;
}

std::vector<std::string> sorted(std::vector<std::string> items) {
  std::sort(items.begin(), items.end());
  return items;
}

TEST(RulerSolved, NeedlesAnswerTheQuestion) {
  const Material material = made_material();
  const std::map<std::string, std::pair<size_t, size_t>> expected = {
      {"niah_single_1", {1, 1}},   {"niah_single_2", {1, 1}},   {"niah_single_3", {1, 1}},
      {"niah_multikey_1", {4, 1}}, {"niah_multikey_2", {0, 1}}, {"niah_multikey_3", {0, 1}},
      {"niah_multivalue", {1, 4}}, {"niah_multiquery", {4, 4}}};
  for (const auto& [subtask, counts] : expected) {
    const auto generator =
        Generator::open(options_of(subtask, 2048), material, count_words).value();
    for (int64_t i = 0; i < 20; ++i) {
      const Row row = generator.row(i).value();
      const auto needles = needles_in(row.input);
      if (counts.first > 0) {
        EXPECT_EQ(needles.size(), counts.first) << subtask;
      } else {
        EXPECT_GT(needles.size(), 50u) << subtask;
      }
      std::string query = between(row.input, " for ", " mentioned in the provided text?");
      EXPECT_THAT(row.answer_prefix,
                  HasSubstr(" for " + query + " mentioned in the provided text"));
      std::vector<std::string> solved;
      size_t asked = 0;
      for (const auto& [key, values] : needles) {
        if (occurrences(query, key) == 0) continue;
        if (query != key && occurrences(query, key + ",") == 0 &&
            query.substr(query.size() - key.size()) != key) {
          continue;
        }
        ++asked;
        solved.insert(solved.end(), values.begin(), values.end());
      }
      EXPECT_EQ(asked, subtask == "niah_multiquery" ? 4u : 1u) << query;
      EXPECT_EQ(sorted(solved), sorted(row.outputs)) << subtask;
      EXPECT_EQ(row.outputs.size(), counts.second);
    }
  }
}

TEST(RulerSolved, TheEssayIsWholeAroundTheNeedles) {
  const Material material = made_material();
  const auto generator =
      Generator::open(options_of("niah_multikey_1", 2048), material, count_words).value();
  for (int64_t i = 0; i < 10; ++i) {
    const Row row = generator.row(i).value();
    const auto lines = split(row.input, '\n');
    ASSERT_EQ(lines.size(), 3u);
    std::vector<std::string> words;
    for (const std::string& word : split(lines[1], ' ')) {
      if (word.rfind("ord", 1) == 1) words.push_back(word);
    }
    for (size_t w = 0; w < words.size(); ++w) {
      EXPECT_EQ(words[w], material.essay[w % material.essay.size()]);
    }
    EXPECT_GT(words.size(), 1500u);
    // A needle begins where a sentence ends.
    for (size_t at = lines[1].find("One of"); at != std::string::npos;
         at = lines[1].find("One of", at + 1)) {
      EXPECT_TRUE(at == 0 || lines[1].substr(at - 2, 2) == ". ") << at;
    }
  }
}

TEST(RulerSolved, ChainsOfVariables) {
  const Material material = made_material();
  const auto generator = Generator::open(options_of("vt", 2048), material, count_words).value();
  for (int64_t i = 0; i < 20; ++i) {
    const Row row = generator.row(i).value();
    // The example comes first, with its answer.
    const size_t start = row.input.rfind("Memorize and track");
    ASSERT_GT(start, 0u);
    const std::string value = between(row.input, "assigned the value ", " in the text above.");
    std::vector<std::string> chain;
    std::string holder = value;
    std::vector<std::string> words;
    std::string text = row.input.substr(start);
    std::replace(text.begin(), text.end(), '\n', ' ');
    for (const std::string& word : split(text, ' ')) {
      if (!word.empty()) words.push_back(word);
    }
    for (size_t w = 0; w + 3 < words.size(); ++w) {
      if (words[w] != "VAR" || words[w + 2] != "=") continue;
      const std::string source = words[w + 3] == "VAR" ? words[w + 4] : words[w + 3];
      EXPECT_EQ(source, holder);
      holder = words[w + 1];
      chain.push_back(holder);
      EXPECT_EQ(holder.size(), 5u);
    }
    EXPECT_EQ(chain, row.outputs);
    EXPECT_EQ(chain.size(), 5u);
    EXPECT_EQ(value.size(), 5u);
  }
}

std::map<std::string, int> counted(const std::string& text) {
  std::map<std::string, int> counts;
  for (const std::string& word : split(text, ' ')) ++counts[word];
  return counts;
}

TEST(RulerSolved, CommonWordsAreTheMostCommon) {
  const Material material = made_material();
  for (const auto& [length, common, other] : {std::tuple{2048, 6, 1}, {4096, 30, 3}}) {
    const auto generator =
        Generator::open(options_of("cwe", length), material, count_words).value();
    for (int64_t i = 0; i < 5; ++i) {
      const Row row = generator.row(i).value();
      auto counts = counted(between(row.input, "appear most often.\n", "\nQuestion:"));
      std::vector<std::string> found;
      int numbers = 0;
      for (const auto& [word, count] : counts) {
        if (word.back() == '.') {
          ++numbers;
          EXPECT_EQ(count, 1);
        } else if (count == common) {
          found.push_back(word);
        } else {
          EXPECT_EQ(count, other);
        }
      }
      EXPECT_EQ(found, sorted(row.outputs));
      EXPECT_EQ(found.size(), 10u);
      EXPECT_EQ(counts.count(std::to_string(numbers) + "."), 1u);
    }
  }
}

TEST(RulerSolved, CodedWordsFollowZipf) {
  const Material material = made_material();
  for (const int64_t length : {512, 4096}) {
    const auto generator =
        Generator::open(options_of("fwe", length), material, count_words).value();
    for (int64_t i = 0; i < 5; ++i) {
      const Row row = generator.row(i).value();
      const auto counts = counted(between(row.input, "coded words. ", "\nQuestion:"));
      std::vector<std::pair<int, std::string>> order;
      for (const auto& [word, count] : counts) order.emplace_back(count, word);
      std::sort(order.rbegin(), order.rend());
      ASSERT_GT(order.size(), 4u);
      EXPECT_EQ(order[0].second, "...");
      EXPECT_THAT(row.outputs, ElementsAre(order[1].second, order[2].second, order[3].second));
      EXPECT_GT(order[3].first, order[4].first);
      EXPECT_NEAR(order[0].first, 4 * order[1].first, 4);
      EXPECT_NEAR(order[0].first, 9 * order[2].first, 9);
    }
  }
}

}  // namespace
}  // namespace kvsweep::task::ruler
