#include "worker/task/longbench_metrics.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <ctime>
#include <fstream>
#include <map>

#include "core/hash.hpp"
#include "tests/worker/task/longbench_testing.hpp"
#include "tests/worker/task/task_testing.hpp"
#include "worker/task/python_random.hpp"
#include "worker/task/rouge_l.hpp"
#include "worker/task/unicode_text.hpp"

namespace kvsweep::task {
namespace {

constexpr const char* kTinyJieba = KVSWEEP_SOURCE_DIR "/tests/worker/task/golden/tiny_jieba";

const Json& goldens() {
  static const Json kGoldens = testing::golden("longbench_metrics.json");
  return kGoldens;
}

// Draws the pairs of one case of golden/longbench_metrics.json as make_longbench_goldens.py does.
class Pairs {
 public:
  explicit Pairs(const std::string& name)
      : case_(goldens()["cases"][name]),
        pieces_(case_["pieces"].get<std::vector<std::string>>()),
        separators_(case_["separators"].get<std::vector<std::string>>()),
        random_(case_["seed"].get<uint32_t>()) {
    if (name == "classification") classes_ = goldens()["classes"].get<std::vector<std::string>>();
  }

  std::pair<std::string, std::string> next() {
    std::string prediction = draw("prediction_bits");
    std::string truth = draw("truth_bits");
    if (!classes_.empty()) truth = pick(classes_);
    return {std::move(prediction), truth + case_["truth_end"].get<std::string>()};
  }

 private:
  const std::string& pick(const std::vector<std::string>& from) {
    return from[random_.getrandbits(16) % from.size()];
  }

  std::string draw(const char* bits) {
    std::string text;
    for (uint32_t left = random_.getrandbits(case_[bits].get<int>()); left > 0; --left) {
      text += pick(pieces_);
      text += pick(separators_);
    }
    return text;
  }

  Json case_;
  std::vector<std::string> pieces_, separators_, classes_;
  PythonRandom random_;
};

// `score(prediction, truth)` on all pairs of the case against the official code's results.
template <typename Metric>
void expect_official(const std::string& name, const std::string& label, const Metric& score) {
  const Json& golden = goldens()["cases"][name][label];
  if (golden.contains("rows")) {
    ASSERT_GE(golden["rows"].size(), 40u);
    for (const Json& row : golden["rows"]) {
      EXPECT_EQ(score(row["prediction"].get<std::string>(), row["truth"].get<std::string>()),
                row["score"].get<double>())
          << name << ": " << row;
    }
  }
  ASSERT_EQ(goldens()["count"], 10000);
  Pairs pairs(name);
  Sha256 digest;
  for (int i = 0; i < 10000; ++i) {
    const auto [prediction, truth] = pairs.next();
    const double value = score(prediction, truth);
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    digest.update(std::string_view(bytes, sizeof value));
  }
  EXPECT_EQ(digest.hex(), golden["sha256"]) << name << ", " << label;
}

const ChineseSegmenter& tiny_segmenter() {
  static const ChineseSegmenter kSegmenter = ChineseSegmenter::load(kTinyJieba).value();
  return kSegmenter;
}

constexpr const char* kNoJieba =
    "no jieba data: set KVSWEEP_DATA_DIR to a folder that holds jieba/dict.txt";

// jieba's own dictionary, nullptr without data.
const ChineseSegmenter* full_segmenter() {
  static const auto kSegmenter = []() -> std::unique_ptr<ChineseSegmenter> {
    const auto dir = testing::data_dir();
    if (!dir || !std::filesystem::exists(*dir + "/jieba/dict.txt")) return nullptr;
    return std::make_unique<ChineseSegmenter>(ChineseSegmenter::load(*dir + "/jieba").value());
  }();
  return kSegmenter.get();
}

TEST(LongBenchMetrics, EqualTheOfficialCodeOnTenThousandPairs) {
  expect_official("qa_f1", "official", qa_f1);
  expect_official("rouge", "official", rouge);
  expect_official("rouge_short", "official", rouge);
  expect_official("count", "official", count_score);
  expect_official("retrieval", "official", retrieval);
  expect_official("retrieval_zh", "official", retrieval_zh);
  const auto classes = goldens()["classes"].get<std::vector<std::string>>();
  expect_official("classification", "official",
                  [&](const std::string& prediction, const std::string& truth) {
                    return classification(prediction, truth, classes);
                  });
}

TEST(LongBenchMetrics, CodeSimilarityIsFuzzywuzzysInBothForms) {
  for (const char* name : {"code_sim", "code_sim_long"}) {
    for (const auto& [label, similarity] :
         {std::pair{"difflib", Similarity::difflib}, {"indel", Similarity::indel}}) {
      const Similarity way = similarity;
      expect_official(name, label, [way](const std::string& prediction, const std::string& truth) {
        return code_sim(prediction, truth, way);
      });
    }
  }
}

void expect_official_chinese(const std::string& label, const ChineseSegmenter& segmenter) {
  expect_official("qa_f1_zh", label, [&](const std::string& prediction, const std::string& truth) {
    return qa_f1_zh(prediction, truth, segmenter);
  });
  expect_official("rouge_zh", label, [&](const std::string& prediction, const std::string& truth) {
    return rouge_zh(prediction, truth, segmenter);
  });
}

TEST(LongBenchMetrics, ChineseOverAMadeUpDictionary) {
  expect_official_chinese("tiny", tiny_segmenter());
}

TEST(LongBenchMetrics, ChineseOverJiebasDictionary) {
  if (full_segmenter() == nullptr) GTEST_SKIP() << kNoJieba;
  expect_official_chinese("full", *full_segmenter());
}

std::string words_of(int count, const std::string& more = "") {
  std::string text;
  for (int i = 0; i < count; ++i) text += "w" + std::to_string(i) + " ";
  return text + more;
}

// golden "too_deep": the least numbers of words at which Python's recursion limit makes the score
// 0, found by running the official code under the frames of eval.py.
TEST(LongBenchMetrics, RougeEndsWherePythonsRecursionDoes) {
  const Json& golden = goldens()["too_deep"];
  for (const auto& [name, calls] : {std::pair{"rouge", kRougeCalls}, {"rouge_zh", kRougeZhCalls}}) {
    for (const auto& [k, more] : {std::pair{0, ""}, {1, "z"}}) {
      const int deep = golden[name][k];
      const auto score = [&](int words) {
        const std::string truth = words_of(words);
        return rouge_l(code_points(truth + more), code_points(truth), calls);
      };
      EXPECT_EQ(score(deep), 0) << name << " " << more;
      EXPECT_GT(score(deep - 1), 0.99) << name << " " << more;
    }
  }
}

TEST(LongBenchMetrics, WorkedExamples) {
  EXPECT_DOUBLE_EQ(qa_f1("The cat sat.", "a cat"), 2.0 / 3);
  EXPECT_EQ(qa_f1("", "a cat"), 0);
  EXPECT_EQ(qa_f1("the", "the"), 0);  // nothing is left on either side
  EXPECT_EQ(rouge("", "x"), 0);
  EXPECT_EQ(rouge("...", "x"), 0);
  // "a b c" and "d" against "a c d": {a, c} and {d}, so L = 3, n = 4, m = 3.
  EXPECT_DOUBLE_EQ(rouge("a b c. d", "a c d"), 2 * (0.75 * 1.0 / (0.75 + 1.0 + 1e-8)));
  // "Number" goes, which skips "something", so two names are left.
  EXPECT_EQ(classification("Number of something", "Number of something",
                           {"Number", "something", "Number of something"}),
            0.5);
  EXPECT_EQ(retrieval("Paragraph 12, or 3", "Paragraph 12"), 0.5);
  EXPECT_EQ(retrieval_zh("段落7", "段落7"), 1);
  EXPECT_EQ(count_score("5 or 5 or 6", "5"), 2.0 / 3);
  EXPECT_EQ(count_score("none", "5"), 0);
  EXPECT_EQ(code_sim("\n# comment\n  return x\nmore", "  return x"), 1);
  EXPECT_EQ(code_sim("`only`", "x"), 0);
  EXPECT_EQ(first_line("\n\nA\nB"), "A");
  EXPECT_EQ(best_score(LongBenchMetric::qa_f1, "cat", {"dog", "cat"}, {}), 1);
  EXPECT_EQ(best_score(LongBenchMetric::qa_f1, "cat", {}, {}), 0);
  EXPECT_FALSE(names_paragraph("12"));
  EXPECT_EQ(retrieval("12", "12"), 0);
  EXPECT_THROW(best_score(LongBenchMetric::rouge_zh, "a", {"b"}, {}), std::logic_error);
}

TEST(LongBenchMetrics, InvalidUtf8IsAReplacementCharacter) {
  EXPECT_EQ(qa_f1("caf\xc3 \xff", "caf\xef\xbf\xbd x"), 0.5);
  EXPECT_EQ(code_sim("ab\xff", "ab\xef\xbf\xbd"), 1);
  for (const auto& score : {qa_f1, rouge, retrieval, count_score}) {
    EXPECT_GE(score("\xf0\x9f\x98", "Paragraph \xed\xa0\x80"), 0);
  }
  EXPECT_EQ(qa_f1_zh("\xe4\xb8", "\xe4\xb8", tiny_segmenter()), 1);
}

// A prediction of a megabyte against an ordinary answer, in the forms that cost most.
TEST(LongBenchMetrics, AMegabyteTakesSeconds) {
  const auto repeated = [](const std::string& piece) {
    std::string text;
    while (text.size() < 1'000'000) text += piece;
    return text;
  };
  const std::vector<std::string> predictions = {repeated("w1 w2 x "),
                                                repeated("w1 x. "),
                                                repeated("w3. w4 w1. w2 w1 y. "),
                                                repeated("a"),
                                                repeated("w1 "),
                                                repeated("\n"),
                                                repeated(". "),
                                                repeated("中国北"),
                                                repeated("7 "),
                                                repeated("w9 w8 w7 w6 w5 w4 w3 w2 w1. "),
                                                words_of(150'000)};
  std::string truth = "Paragraph 7. ";
  for (int i = 0; i < 40; ++i) truth += words_of(25, ". ");
  const std::clock_t begin = std::clock();  // of this process: the machine may be busy
  for (const std::string& prediction : predictions) {
    for (const auto& score : {qa_f1, rouge, retrieval, count_score}) {
      EXPECT_LE(score(prediction, truth), 1);
    }
    for (const Similarity way : {Similarity::difflib, Similarity::indel}) {
      EXPECT_LE(code_sim(prediction, "    return self.w1(w2, w3) + w4", way), 1);
    }
    EXPECT_LE(qa_f1_zh(prediction, truth, tiny_segmenter()), 1);
    EXPECT_LE(rouge_zh(prediction, truth, tiny_segmenter()), 1);
  }
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  EXPECT_LT(seconds, 60);  // about 4 s for all 88 scores, several times that under sanitizers
}

TEST(ChineseSegmenter, EqualsJiebaOnTenThousandTexts) {
  const auto check = [](const std::string& label, const ChineseSegmenter& segmenter) {
    const Json& golden = goldens()["tokens_" + label];
    if (golden.contains("rows")) {
      for (const Json& row : golden["rows"]) {
        EXPECT_EQ(testing::tokens_of(segmenter, row["text"]),
                  row["tokens"].get<std::vector<std::string>>());
      }
    }
    Pairs pairs("rouge_zh");
    Sha256 digest;
    for (int i = 0; i < 10000; ++i) {
      const std::vector<std::string> tokens = testing::tokens_of(segmenter, pairs.next().first);
      for (size_t k = 0; k < tokens.size(); ++k) {
        digest.update(k == 0 ? tokens[k] : std::string(1, '\0') + tokens[k]);
      }
      digest.update("\1");
    }
    EXPECT_EQ(digest.hex(), golden["sha256"]) << label;
  };
  check("tiny", tiny_segmenter());
  if (full_segmenter() == nullptr) GTEST_SKIP() << kNoJieba;
  check("full", *full_segmenter());
}

TEST(ChineseSegmenter, BadTablesAreErrorsThatNameTheLine) {
  const std::filesystem::path dir =
      std::filesystem::temp_directory_path() / ("kvsweep_jieba_" + std::to_string(::getpid()));
  std::filesystem::create_directories(dir);
  const auto message = [&](const std::string& dictionary, const std::string& model) {
    std::ofstream(dir / "dict.txt") << dictionary;
    std::ofstream(dir / "hmm.json") << model;
    const auto loaded = ChineseSegmenter::load(dir.string());
    return loaded.ok() ? std::string() : loaded.error().message;
  };
  EXPECT_NE(message("中国 5 n\n北京 x n\n", "{}").find("dict.txt:2: "), std::string::npos);
  EXPECT_NE(message("\xff\xfe 5 n\n", "{}").find("dict.txt:1: the word is not valid UTF-8"),
            std::string::npos);
  EXPECT_NE(message("", "{}").find("holds no word"), std::string::npos);
  EXPECT_NE(message("中国 5 n\n", "{}").find("\"start\" must be an object"), std::string::npos);
  EXPECT_NE(message("中国 5 n\n", "[1").find("hmm.json"), std::string::npos);
  std::filesystem::remove_all(dir);
  const auto none = ChineseSegmenter::load(dir.string());
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace kvsweep::task
