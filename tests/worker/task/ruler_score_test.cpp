// Scores of RULER and of the needle test on cases worked out by hand.
#include "worker/task/ruler/score.hpp"

#include <gtest/gtest.h>

namespace kvsweep::task::ruler {
namespace {

TEST(RulerScore, ShareOfTheReferencesThatAreContained) {
  EXPECT_EQ(share_contained("1234567", {"1234567"}), 1);
  EXPECT_EQ(share_contained("it is 91234567 or so", {"1234567"}), 1);
  EXPECT_EQ(share_contained("123456", {"1234567"}), 0);
  EXPECT_EQ(share_contained("", {"1234567"}), 0);
  EXPECT_EQ(share_contained("abcde XYZ", {"ABCDE", "xyz", "pqr", "stu"}), 0.5);
  EXPECT_EQ(share_contained("anything", {}), 0);
  // A control character parts a word, a multi-byte character does not matter.
  EXPECT_EQ(share_contained("ab\x01"
                            "cd",
                            {"abcd"}),
            0);
  EXPECT_EQ(share_contained("ab\x01"
                            "cd",
                            {"ab\ncd"}),
            1);
  EXPECT_EQ(share_contained("\n\n", {"\n"}), 0);
  EXPECT_EQ(share_contained("caf\xc3\xa9 Noir", {"CAF\xc3\xa9 noir"}), 1);
  EXPECT_EQ(share_contained(std::string(1 << 20, 'a') + "b", {"ab"}), 1);
}

// "the cat sat on the mat" and "the cat on mat" share
// the, cat, on, mat: P = 4/6, R = 4/4, F = 0.8.
TEST(RulerScore, Rouge1) {
  EXPECT_DOUBLE_EQ(rouge1_f("The cat sat on the mat.", "the cat, on MAT"), 0.8);
  EXPECT_DOUBLE_EQ(rouge1_f("the the the", "the"), 0.5);  // P = 1/3, R = 1
  EXPECT_DOUBLE_EQ(rouge1_f("a1 b2", "a1 b2"), 1);
  EXPECT_EQ(rouge1_f("", "word"), 0);
  EXPECT_EQ(rouge1_f("word", ""), 0);
  EXPECT_EQ(rouge1_f("x", "y"), 0);
}

}  // namespace
}  // namespace kvsweep::task::ruler
