#include "cli/table.hpp"

#include <gtest/gtest.h>

#include <cstdio>

namespace kvsweep::cli {
namespace {

TEST(Table, AlignsByColumnAndTrimsTheEnd) {
  const Terminal terminal(stdout);
  Table table({">n", "name", "~note"});
  table.row({"1", "a", "short"});
  table.row({"100", "longer", ""});
  if (terminal.interactive()) GTEST_SKIP() << "needs a pipe on standard output";
  EXPECT_EQ(table.text(terminal),
            "  n  name    note\n"
            "  1  a       short\n"
            "100  longer\n");
}

TEST(Table, MissingCellsAreEmpty) {
  const Terminal terminal(stdout);
  Table table({"a", "b"});
  EXPECT_TRUE(table.empty());
  table.row({"x"});
  if (terminal.interactive()) GTEST_SKIP() << "needs a pipe on standard output";
  EXPECT_EQ(table.text(terminal), "a  b\nx\n");
}

TEST(DisplayWidth, CountsCodePointsAndNoEscapes) {
  EXPECT_EQ(display_width("abc"), 3u);
  EXPECT_EQ(display_width("\u20ac5"), 2u);
  EXPECT_EQ(display_width("\033[1mabc\033[0m"), 3u);
}

TEST(Shortened, CutsBetweenCodePoints) {
  EXPECT_EQ(shortened("abcdef", 6), "abcdef");
  EXPECT_EQ(shortened("abcdefg", 6), "abc...");
  EXPECT_EQ(shortened("\u20ac\u20ac\u20ac\u20ac\u20ac", 4), "\u20ac...");
}

}  // namespace
}  // namespace kvsweep::cli
