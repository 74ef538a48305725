// WikiText's shapes: golden/wikitext.json is what lm-eval's detokenizer and Python's re give
// (make_wikitext_goldens.py).
#include "worker/task/wikitext.hpp"

#include <gtest/gtest.h>

#include "core/file.hpp"
#include "core/text.hpp"
#include "tests/worker/task/task_testing.hpp"

namespace kvsweep::task {
namespace {

TEST(Wikitext, DetokenizesAsLmEval) {
  const Json golden = testing::golden("wikitext.json");
  ASSERT_EQ(golden.size(), 500u);
  int changed = 0;
  for (const Json& one : golden) {
    const std::string text = one["text"];
    EXPECT_EQ(detokenized(text), one["detokenized"]) << one;
    EXPECT_EQ(words_of(text), one["words"]) << one;
    changed += one["text"] != one["detokenized"] ? 1 : 0;
  }
  EXPECT_GT(changed, 300);
}

TEST(Wikitext, RowsKeepTheirLineFeedUnlessTheyAreBlank) {
  EXPECT_EQ(joined_rows(" \n = A = \n \n b\n"), "\n\n = A = \n\n\n\n\n b\n");
  EXPECT_EQ(joined_rows("a\nb"), "a\n\n\nb");
  EXPECT_EQ(joined_rows(""), "");
}

TEST(Wikitext, APageBeginsWithATitleOfOneLevel) {
  const std::string text = " \n = One = \n \n = = Part = = \n text\n = Two = \n more = \n";
  const std::vector<std::string> pages = wikitext_pages(text);
  ASSERT_EQ(pages.size(), 2u);
  EXPECT_EQ(pages[0], " = One = \n \n = = Part = = \n text");
  EXPECT_EQ(pages[1], " = Two = \n more = \n");
}

// The test set of WikiText-2 has 62 pages in lm-eval, and the whole file is in them.
TEST(Wikitext, TheTestSetHasSixtyTwoPages) {
  if (!testing::data_dir()) GTEST_SKIP() << testing::kNoData;
  const auto text = read_file(*testing::data_dir() + "/wikitext2/wiki.test.raw");
  if (!text.ok()) GTEST_SKIP() << text.error().message;
  const std::vector<std::string> pages = wikitext_pages(*text);
  EXPECT_EQ(pages.size(), 62u);
  EXPECT_EQ(" \n" + join(pages, "\n"), *text);
}

}  // namespace
}  // namespace kvsweep::task
