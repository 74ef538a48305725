#include "worker/task/unicode_text.hpp"

#include <gtest/gtest.h>

#include "core/hash.hpp"
#include "tests/worker/task/task_testing.hpp"

namespace kvsweep::task {
namespace {

// golden/unicode.json: digests over every code point but surrogates, from Python's str and re.
TEST(UnicodeText, EveryCodePointIsAsInPython) {
  const Json golden = testing::golden("unicode.json");
  Sha256 classes, lowered, sigma;
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xd800 && c < 0xe000) continue;
    classes.update(std::string(1, static_cast<char>('0' + (is_space(c) ? 1 : 0) +
                                                    (is_digit(c) ? 2 : 0) + (is_word(c) ? 4 : 0))));
    lowered.update(utf8(lower(std::u32string(1, c))));
    // Before and after a capital sigma, each with a cased letter on the other side.
    sigma.update(utf8(lower(std::u32string(U"a") + c + U"\u03a3")));
    sigma.update(utf8(lower(std::u32string(1, c) + U"\u03a3")));
    sigma.update(utf8(lower(std::u32string(U"a\u03a3") + c)));
    sigma.update(utf8(lower(std::u32string(U"a\u03a3") + c + U"b")));
  }
  EXPECT_EQ(classes.hex(), golden["classes"]);
  EXPECT_EQ(lowered.hex(), golden["lower"]);
  EXPECT_EQ(sigma.hex(), golden["sigma"]);
}

TEST(UnicodeText, CodePointsAndBack) {
  const std::string text = "a\u00e9\u4e2d\U0001f600";
  const std::u32string points = code_points(text);
  EXPECT_EQ(points, U"a\u00e9\u4e2d\U0001f600");
  EXPECT_EQ(utf8(points), text);
  EXPECT_EQ(code_points("a\xff\xc3"), U"a\ufffd\ufffd");
  EXPECT_EQ(code_points(""), U"");
}

// Expected from Python's str.split() and re.findall.
TEST(UnicodeText, Splits) {
  const std::u32string text = U"\u3000a  b\u00a0c\x1c";
  EXPECT_EQ(split_words(text), (std::vector<std::u32string_view>{U"a", U"b", U"c"}));
  EXPECT_TRUE(split_words(U" \n").empty());
  EXPECT_EQ(split_at(U".a..b", U'.'), (std::vector<std::u32string_view>{U"", U"a", U"", U"b"}));
  EXPECT_EQ(split_at(U"", U'.'), (std::vector<std::u32string_view>{U""}));
  EXPECT_EQ(digit_runs(U"x12\u0661y3\u00b2"),
            (std::vector<std::u32string_view>{U"12\u0661", U"3"}));
}

}  // namespace
}  // namespace kvsweep::task
