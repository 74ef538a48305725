#include "worker/task/longbench_data.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "core/hash.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/worker/task/longbench_testing.hpp"
#include "tests/worker/task/task_testing.hpp"
#include "worker/task/longbench_metrics.hpp"
#include "worker/task/middle_cut.hpp"
#include "worker/task/python_random.hpp"
#include "worker/text/tokenizer.hpp"

namespace kvsweep::task {
namespace {

using ::testing::HasSubstr;

constexpr const char* kNoLongBench =
    "no LongBench data: set KVSWEEP_DATA_DIR to a folder that holds longbench/config and "
    "longbench/mini";

std::optional<std::string> longbench_dir() {
  const auto dir = testing::data_dir();
  if (!dir || !std::filesystem::exists(*dir + "/longbench/config/dataset2prompt.json")) return {};
  return dir;
}

const Json& goldens() {
  static const Json kGoldens = testing::golden("longbench_prompts.json");
  return kGoldens;
}

std::vector<LongBenchRow> mini_rows(const std::string& dir, const LongBenchSet& set) {
  const std::string path = find_longbench({dir, std::string(set.name), true}).value();
  return read_longbench(path, set).value();
}

// golden: Python's template.format(**row).
TEST(LongBenchData, PromptsOfFiveRowsOfEachSetEqualPythons) {
  const auto dir = longbench_dir();
  if (!dir) GTEST_SKIP() << kNoLongBench;
  int compared = 0;
  for (const LongBenchSet& set : longbench_sets()) {
    const std::string prompt_template = longbench_template(*dir, set.name).value();
    const std::vector<LongBenchRow> rows = mini_rows(*dir, set);
    const Json& golden = goldens()["prompts"][std::string(set.name)];
    ASSERT_GE(golden.size(), 4u);
    for (size_t i = 0; i < golden.size(); ++i) {
      EXPECT_EQ(sha256_hex(fill_template(prompt_template, rows[i], "template").value()), golden[i])
          << set.name << " " << i;
      ++compared;
    }
  }
  EXPECT_EQ(compared, 104);  // 21 sets of 5; passage_count has 4
}

// Facts of core/catalog/longbench.def that the official configuration also states.
TEST(LongBenchData, TheTableAgreesWithTheOfficialConfiguration) {
  const auto dir = longbench_dir();
  if (!dir) GTEST_SKIP() << kNoLongBench;
  const Json lengths = read_json_file(*dir + "/longbench/config/dataset2maxlen.json").value();
  ASSERT_EQ(lengths.size(), longbench_sets().size());
  for (const LongBenchSet& set : longbench_sets()) {
    EXPECT_EQ(lengths[std::string(set.name)], set.new_tokens) << set.name;
  }
}

// The scores were computed by the official code; python-Levenshtein's for code_sim with indel.
TEST(LongBenchData, TheGoldenScoresAreMet) {
  const auto dir = longbench_dir();
  if (!dir) GTEST_SKIP() << kNoLongBench;
  const std::string path = *dir + "/longbench/golden/mini_predictions_scores.jsonl";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is missing";
  const ChineseSegmenter segmenter = ChineseSegmenter::load(*dir + "/jieba").value();
  std::ifstream file(path);
  int rows = 0;
  for (std::string line; std::getline(file, line); ++rows) {
    const Json row = Json::parse(line);
    const std::string name = row["dataset"];
    const LongBenchSet set = longbench_set(name).value();
    std::string prediction = row["prediction"];
    if (scores_first_line(set)) prediction = first_line(prediction);
    MetricInputs inputs{.segmenter = &segmenter};
    if (row["all_classes"].is_array()) {
      inputs.classes = row["all_classes"].get<std::vector<std::string>>();
    }
    const auto answers = row["answers"].get<std::vector<std::string>>();
    EXPECT_EQ(best_score(set.metric, prediction, answers, inputs), row["score"]) << row["_id"];
    if (!row.contains("score_levenshtein")) continue;
    inputs.similarity = Similarity::indel;
    EXPECT_EQ(best_score(set.metric, prediction, answers, inputs), row["score_levenshtein"]);
  }
  EXPECT_EQ(rows, 237);
}

// jieba 0.42.1's own tokens of 95 texts.
TEST(LongBenchData, TheGoldenTokensAreMet) {
  const auto dir = longbench_dir();
  if (!dir) GTEST_SKIP() << kNoLongBench;
  std::ifstream file(*dir + "/longbench/golden/jieba_tokens.jsonl");
  if (!file) GTEST_SKIP() << "longbench/golden/jieba_tokens.jsonl is missing";
  const ChineseSegmenter segmenter = ChineseSegmenter::load(*dir + "/jieba").value();
  int rows = 0;
  for (std::string line; std::getline(file, line); ++rows) {
    const Json row = Json::parse(line);
    EXPECT_EQ(testing::tokens_of(segmenter, row["text"]),
              row["tokens"].get<std::vector<std::string>>());
  }
  EXPECT_EQ(rows, 95);
}

std::string drawn_text(uint32_t seed) {
  const auto pieces = goldens()["pieces"].get<std::vector<std::string>>();
  PythonRandom random(seed);
  std::string text;
  for (int i = 0; i < 600; ++i) text += pieces.at(random.getrandbits(4));
  return text;
}

// golden: pred.py's truncation with transformers' tokenizers.
TEST(CutMiddle, EqualsPythonsWithRealTokenizers) {
  const auto max_tokens = goldens()["max_tokens"].get<std::vector<int64_t>>();
  for (const auto& [folder, golden] : goldens()["cuts"].items()) {
    const std::string path = std::string(KVSWEEP_SOURCE_DIR) + "/" + folder;
    if (!std::filesystem::exists(path)) continue;  // set-up fetches all but models/reference
    const text::Tokenizer tokenizer = text::Tokenizer::load(path).value();
    size_t k = 0;
    for (uint32_t seed = 0; seed < 8; ++seed) {
      for (const int64_t most : max_tokens) {
        EXPECT_EQ(sha256_hex(cut_middle(drawn_text(seed), most, tokenizer).value()), golden[k])
            << folder << " seed " << seed << " to " << most;
        ++k;
      }
    }
    EXPECT_EQ(k, golden.size());
  }
}

TEST(CutMiddle, EqualsPythonsOnRealPrompts) {
  const auto dir = longbench_dir();
  if (!dir) GTEST_SKIP() << kNoLongBench;
  for (const auto& [folder, golden] : goldens()["cut_rows"].items()) {
    const std::string path = std::string(KVSWEEP_SOURCE_DIR) + "/" + folder;
    if (!std::filesystem::exists(path)) continue;
    const text::Tokenizer tokenizer = text::Tokenizer::load(path).value();
    for (const auto& [name, digest] : golden.items()) {
      const LongBenchSet set = longbench_set(name).value();
      const std::string prompt =
          fill_template(longbench_template(*dir, name).value(), mini_rows(*dir, set).front(), name)
              .value();
      EXPECT_EQ(sha256_hex(cut_middle(prompt, 3500, tokenizer).value()), digest)
          << folder << " " << name;
    }
  }
}

TEST(CutMiddle, ShortPromptsStayAndOneTokenIsRefused) {
  const text::Tokenizer tokenizer =
      text::Tokenizer::load(KVSWEEP_SOURCE_DIR "/models/reference").value();
  EXPECT_EQ(cut_middle("hello", 1000, tokenizer).value(), "hello");
  EXPECT_FALSE(cut_middle("hello", 1, tokenizer).ok());
}

TEST(FillTemplate, AsPythonsFormat) {
  LongBenchRow row;
  row.context = "{input} C";
  row.input = "I";
  EXPECT_EQ(fill_template("a {context}-{input}{{}}", row, "t").value(), "a {input} C-I{}");
  for (const char* bad : {"{answers}", "{", "}", "{context"}) {
    const auto filled = fill_template(bad, row, "t.json");
    ASSERT_FALSE(filled.ok()) << bad;
    EXPECT_THAT(filled.error().message, HasSubstr("t.json: "));
  }
}

Json good_row() {
  return {{"input", "i"},         {"context", "c"}, {"answers", {"Paragraph 1, 段落1"}},
          {"all_classes", {"x"}}, {"length", 3},    {"_id", "7"}};
}

std::string error_of(const std::string& line, const char* set) {
  const test::TempDir dir;
  const std::string path = (dir.path() / "rows.jsonl").string();
  std::ofstream(path, std::ios::binary) << good_row().dump() << "\n" << line << "\n";
  const auto rows = read_longbench(path, longbench_set(set).value());
  if (rows.ok()) return "";
  EXPECT_EQ(rows.error().code, ErrorCode::bad_input);
  EXPECT_THAT(rows.error().message, HasSubstr(path + ":2: "));
  return rows.error().message;
}

std::string changed_row(const char* key, const Json& value) {
  Json row = good_row();
  row[key] = value;
  return row.dump();
}

TEST(ReadLongBench, BadLinesNameFileAndLine) {
  EXPECT_EQ(error_of(good_row().dump(), "passage_retrieval_en"), "");
  EXPECT_THAT(error_of("{\"input\": ", "qasper"), HasSubstr("not valid JSON at byte"));
  EXPECT_THAT(error_of("{\"input\": \"\xff\xfe\"}", "qasper"), HasSubstr("UTF-8"));
  EXPECT_THAT(error_of("[1]", "qasper"), HasSubstr("must be a JSON object, not array"));
  for (const char* key : {"input", "context", "answers", "all_classes"}) {
    Json row = good_row();
    row.erase(key);
    EXPECT_THAT(error_of(row.dump(), "qasper"), HasSubstr(std::string(key) + "\" is missing"));
    EXPECT_THAT(error_of(changed_row(key, 5), "qasper"), HasSubstr("must be"));
  }
  EXPECT_THAT(error_of(changed_row("answers", {"a", 1}), "qasper"), HasSubstr("list of strings"));
  EXPECT_THAT(error_of(changed_row("length", -1), "qasper"), HasSubstr("\"length\" must be"));
  EXPECT_THAT(error_of(changed_row("answers", {"12"}), "passage_retrieval_en"),
              HasSubstr("names no paragraph"));
  EXPECT_THAT(error_of(changed_row("answers", {"Paragraph 1"}), "passage_retrieval_zh"),
              HasSubstr("段落N"));
  EXPECT_THAT(error_of(changed_row("all_classes", nullptr), "trec"), HasSubstr("class names"));
  EXPECT_THAT(error_of(changed_row("answers", {std::string(70'000, 'a')}), "gov_report"),
              HasSubstr("70000 bytes"));
  EXPECT_EQ(error_of(changed_row("answers", Json::array()), "qasper"), "");  // scores 0
}

TEST(ReadLongBench, MissingFilesSayWhoPublishesThem) {
  const test::TempDir dir;
  const auto error = [](const auto& result) {
    EXPECT_FALSE(result.ok());
    return result.ok() ? std::string() : result.error().message;
  };
  const std::string folder = dir.path().string();
  EXPECT_THAT(error(find_longbench({folder, "qasper"})), HasSubstr("THUDM/LongBench"));
  EXPECT_THAT(error(find_longbench({folder, "qasper", true})), HasSubstr("MiniLongBench"));
  EXPECT_THAT(error(longbench_template(folder, "qasper")), HasSubstr("LongBench/config"));
}

}  // namespace
}  // namespace kvsweep::task
