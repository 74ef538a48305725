// RULER's generators: against the published rows, and against the counter that they are given.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "core/file.hpp"
#include "core/hash.hpp"
#include "core/text.hpp"
#include "tests/worker/task/ruler_testing.hpp"
#include "tests/worker/task/task_testing.hpp"
#include "worker/task/ruler/generator.hpp"
#include "worker/task/ruler/needle.hpp"
#include "worker/text/tokenizer.hpp"

namespace kvsweep::task::ruler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kNoRuler =
    "no RULER data: set KVSWEEP_DATA_DIR to a folder that holds ruler/nounlist.txt";

// Every hexadecimal digit group of a UUID becomes U.
std::string masked(const std::string& text) {
  std::string result;
  for (size_t i = 0; i < text.size();) {
    size_t end = i;
    while (end < text.size() &&
           (std::isxdigit(static_cast<unsigned char>(text[end])) || text[end] == '-')) {
      ++end;
    }
    if (end - i == 36) {
      result += 'U';
      i = end;
    } else {
      result += text[i++];
    }
  }
  return result;
}

std::vector<Json> published() {
  std::vector<Json> rows;
  const auto dir = testing::data_dir();
  const std::string path = dir.value_or("") + "/ruler/niah_multikey_3_4k_first100.jsonl";
  if (!dir || !std::filesystem::exists(path)) return rows;
  const std::string text = read_file(path).value();
  for (const std::string& line : split(text, '\n')) {
    if (!line.empty()) rows.push_back(Json::parse(line));
  }
  return rows;
}

TEST(RulerPublished, TheTemplateIsEqualByteForByte) {
  const std::vector<Json> rows = published();
  if (rows.empty()) GTEST_SKIP() << kNoRuler;
  ASSERT_EQ(rows.size(), 100u);
  const auto subtask = make_subtask("niah_multikey_3", 4096).value();
  std::set<std::string> fields;
  for (size_t i = 0; i < rows.size(); ++i) {
    Rng rng(1, "test", i << 32);
    const Text text = subtask->text(
        {}, 50, [](const std::string&) { return true; }, rng);
    Row row;
    row.index = static_cast<int64_t>(i);
    row.input = text.input;
    row.answer_prefix = text.answer_prefix;
    row.outputs = text.outputs;
    const Json ours = to_json(row);
    EXPECT_EQ(masked(ours["input"].get<std::string>()),
              masked(rows[i]["input"].get<std::string>()));
    EXPECT_EQ(ours["outputs"].size(), rows[i]["outputs"].size());
    EXPECT_EQ(ours["index"], rows[i]["index"]);
    for (const auto& [key, value] : rows[i].items()) {
      ASSERT_TRUE(ours.contains(key)) << key;
      EXPECT_EQ(ours[key].type_name(), std::string(value.type_name())) << key;
    }
    EXPECT_EQ(ours.size(), rows[i].size());
  }
}

// The published lengths are those of Llama 3's tokenizer, without a first token.
TEST(RulerPublished, TheLengthIsTokensOfThePromptAndTheAnswer) {
  const std::vector<Json> rows = published();
  const std::string folder = KVSWEEP_SOURCE_DIR "/.deps/tokenizers/llama3_1";
  if (rows.empty()) GTEST_SKIP() << kNoRuler;
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no Llama 3 tokenizer: run scripts/setup";
  const auto tokenizer = text::Tokenizer::load(folder).value();
  const int answer = make_subtask("niah_multikey_3", 4096).value()->answer_tokens();
  for (const Json& row : rows) {
    const auto tokens = tokenizer.count(row["input"].get<std::string>(), false);
    EXPECT_EQ(tokens.value() + answer, row["length"].get<int64_t>());
  }
}

class RulerSubtask : public ::testing::TestWithParam<std::string> {
 protected:
  Generator open(int64_t length) const {
    return Generator::open(options_of(GetParam(), length), material_, count_words).value();
  }
  const Material material_ = made_material();
};

INSTANTIATE_TEST_SUITE_P(Table, RulerSubtask, ::testing::ValuesIn(subtask_names()),
                         [](const auto& info) { return info.param; });

TEST_P(RulerSubtask, RowsFillTheLengthAndNeverExceedIt) {
  for (const int64_t length : {1024, 3000, 8192}) {
    const Generator generator = open(length);
    for (int64_t i = 0; i < 20; ++i) {
      const Row row = generator.row(i).value();
      EXPECT_EQ(row.index, i);
      EXPECT_EQ(row.length,
                count_words(row.input + row.answer_prefix).value() + generator.answer_tokens());
      EXPECT_LE(row.length, length);
      // A unit of cwe is a word three times with its numbers, one of vt 19 words; the words of cwe
      // end at 3000, those of fwe come in whole counts of each.
      if (GetParam() != "cwe" || length < 8192) {
        EXPECT_GE(row.length, length - length / 20) << i << " of " << length;
      }
    }
  }
}

TEST_P(RulerSubtask, RowsArePureAndDistinct) {
  const Generator a = open(1024);
  const Generator b = open(1024);
  std::set<std::string> inputs;
  for (int64_t i = 9; i >= 0; --i) {
    const Row row = b.row(i).value();
    EXPECT_EQ(to_json(row), to_json(a.row(i).value()));
    EXPECT_TRUE(inputs.insert(row.input).second);
  }
  for (const bool stream : {true, false}) {
    GeneratorOptions other = options_of(GetParam(), 1024);
    if (stream) {
      other.stream = "report";
    } else {
      other.seed = 8;
    }
    const auto generator = Generator::open(other, material_, count_words).value();
    EXPECT_NE(generator.row(0).value().outputs, a.row(0).value().outputs);
  }
}

TEST_P(RulerSubtask, WhatIsAcceptedIsKept) {
  GeneratorOptions picky = options_of(GetParam(), 1024);
  std::set<std::string> refused;
  picky.accept = [&](const std::string& facts) {
    if (sha256_hex(facts)[0] < '8') return true;
    refused.insert(facts);
    return false;
  };
  const auto generator = Generator::open(picky, material_, count_words).value();
  for (int64_t i = 0; i < 20; ++i) {
    const Row row = generator.row(i).value();
    for (const std::string& facts : refused) {
      EXPECT_FALSE(std::all_of(row.outputs.begin(), row.outputs.end(), [&](const auto& output) {
        return facts.find(output) != std::string::npos;
      }));
    }
  }
  EXPECT_FALSE(refused.empty());
}

TEST_P(RulerSubtask, ALengthThatIsTooShortIsAnError) {
  const auto generator = Generator::open(options_of(GetParam(), 60), material_, count_words);
  ASSERT_FALSE(generator.ok());
  EXPECT_EQ(generator.error().code, ErrorCode::bad_input);
  EXPECT_THAT(generator.error().message, HasSubstr("length is 60 tokens"));
  EXPECT_THAT(generator.error().message, HasSubstr("ruler/" + GetParam()));
}

TEST_P(RulerSubtask, AnErrorOfTheCounterIsPassedOn) {
  const auto broken = [](const std::string&) -> Result<int64_t> { return bad_input("no tokens"); };
  const auto generator = Generator::open(options_of(GetParam(), 1024), material_, broken);
  ASSERT_FALSE(generator.ok());
  EXPECT_EQ(generator.error().message, "no tokens");
}

TEST(NeedleGrid, CoversEveryLengthAndDepthOnce) {
  const Material material = made_material();
  const auto grid = NeedleGrid::open(16'000, material, count_words).value();
  std::set<std::pair<int64_t, double>> cells;
  std::set<int64_t> lengths;
  for (int64_t i = 0; i < NeedleGrid::kSize; ++i) {
    const NeedleGrid::Cell cell = grid.cell(i);
    EXPECT_TRUE(cells.emplace(cell.length, cell.depth).second);
    if (i < 12) lengths.insert(cell.length / 4000);
  }
  EXPECT_EQ(cells.begin()->first, 1000);
  EXPECT_EQ(cells.rbegin()->first, 16'000);
  EXPECT_GE(lengths.size(), 4u);  // the first dozen is spread over all lengths
}

TEST(NeedleGrid, RowsHideTheNeedleAtTheirDepthAndLength) {
  const Material material = made_material();
  const auto grid = NeedleGrid::open(8000, material, count_words).value();
  for (int64_t i = 0; i < 200; ++i) {
    const Row row = grid.row(i).value();
    const NeedleGrid::Cell cell = grid.cell(i);
    EXPECT_EQ(row.length, count_words(row.input).value() + NeedleGrid::kAnswerTokens);
    EXPECT_LE(row.length, cell.length);
    EXPECT_GE(row.length, cell.length * 97 / 100 - 10);
    EXPECT_EQ(occurrences(row.input, NeedleGrid::needle()), 1);
    EXPECT_EQ(occurrences(row.input, row.outputs.at(0)), 1);
    const std::string text = between(row.input, "<book> ", " </book>");
    const auto place = static_cast<double>(text.find(NeedleGrid::needle()));
    const auto rest = static_cast<double>(text.size() - NeedleGrid::needle().size());
    EXPECT_NEAR(place / rest, cell.depth, 0.03) << i;
    const bool inside = place > 0 && cell.depth < 1;  // the text may end within a sentence
    EXPECT_TRUE(!inside || text.substr(static_cast<size_t>(place) - 2, 2) == ". ") << i;
  }
  const auto too_short = NeedleGrid::open(300, material, count_words);
  ASSERT_FALSE(too_short.ok());
  EXPECT_THAT(too_short.error().message, HasSubstr("length is 300 tokens"));
}

TEST(RulerMaterial, ComesFromTheFolder) {
  const auto dir = testing::data_dir();
  if (!dir || !std::filesystem::exists(*dir + "/ruler/nounlist.txt")) GTEST_SKIP() << kNoRuler;
  const Material material = load_material(*dir, true).value();
  EXPECT_EQ(material.nouns.size(), 6782u);
  EXPECT_EQ(material.adjectives.size(), 912u);
  EXPECT_TRUE(std::is_sorted(material.words.begin(), material.words.end()));
  EXPECT_THAT(std::vector<std::string>(material.essay.begin(), material.essay.begin() + 3),
              ElementsAre("First", "Citizen:", "Before"));
  EXPECT_TRUE(load_material(*dir, false).value().essay.empty());
}

TEST(RulerMaterial, MissingOrEmptyListsAreNamed) {
  EXPECT_THAT(load_material("", false).error().message, HasSubstr("--data-dir"));
  const auto missing = load_material("/nonexistent", false);
  ASSERT_FALSE(missing.ok());
  EXPECT_THAT(missing.error().message, HasSubstr("/nonexistent/ruler/nounlist.txt"));
  EXPECT_THAT(make_subtask("qa_1", 4096).error().message, HasSubstr("niah_single_1"));
}

}  // namespace
}  // namespace kvsweep::task::ruler
