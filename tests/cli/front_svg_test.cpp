#include "cli/front_svg.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string.h>

#include <cmath>
#include <limits>

#include "tests/support/xml_check.hpp"

namespace kvsweep::cli {
namespace {

using test::count_of;
using test::xml_problem;
using ::testing::HasSubstr;

SvgPlot sample() {
  SvgPlot plot;
  plot.title = "a <b> & \"c\" 'd'";
  plot.x_label = "bits";
  plot.y_label = "loss";
  plot.trials = {{4.5, 0.05, "trial 1: K4V4", true},
                 {2.5, 0.40, "trial 4: <K2V2>", true},
                 {6.5, 0.03, "trial 3", false},
                 {8.5, 0.01, "trial 0", true}};
  plot.baseline = {{16, 0, "baseline", false}};
  return plot;
}

// The checker itself must refuse what is not XML, or the tests below say nothing.
TEST(XmlCheck, RefusesMalformedText) {
  EXPECT_EQ(xml_problem("<a><b c=\"d\"/>x &amp; y</a>"), "");
  for (const char* bad : {"<a>", "<a></b>", "<a/><b/>", "<a b=c/>", "<a b=\"1\" b=\"2\"/>",
                          "<a>&nbsp;</a>", "<a>x < y</a>", "<a b=\"<\"/>", "", "<a>\x01</a>"}) {
    EXPECT_NE(xml_problem(bad), "") << bad;
  }
}

TEST(FrontSvg, IsWellFormedWithOneMarkPerTrial) {
  const std::string svg = front_svg(sample());
  EXPECT_EQ(xml_problem(svg), "");
  EXPECT_EQ(count_of(svg, "class=\"trial"), 4);
  EXPECT_EQ(count_of(svg, "class=\"trial member\""), 3);
  EXPECT_EQ(count_of(svg, "class=\"front\""), 2);     // the line and its key in the legend
  EXPECT_EQ(count_of(svg, "class=\"baseline\""), 2);  // the mark and its key
  EXPECT_THAT(svg, HasSubstr("a &lt;b&gt; &amp; &quot;c&quot; &#39;d&#39;</text>"));
  EXPECT_THAT(svg, HasSubstr("<title>trial 4: &lt;K2V2&gt;</title>"));
}

// The front goes through its members from light to heavy, each step first to the right at the old
// loss, then down: M x0 y0, L x1 y0, L x1 y1 ...
TEST(FrontSvg, FrontIsAStaircase) {
  const std::string svg = front_svg(sample());
  const size_t begin = svg.rfind("class=\"front\" d=\"M") + 18;
  const std::string path = svg.substr(begin, svg.find('"', begin) - begin);
  double x = 0;
  double y = 0;
  ASSERT_EQ(std::sscanf(path.c_str(), "%lf %lf", &x, &y), 2);
  int steps = 0;
  const char* rest = strchr(path.c_str(), 'L');
  while (rest != nullptr) {
    double next_x = 0;
    double next_y = 0;
    ASSERT_EQ(std::sscanf(rest, "L%lf %lf", &next_x, &next_y), 2);
    if (steps % 2 == 0) {
      EXPECT_GT(next_x, x);
      EXPECT_EQ(next_y, y);
    } else {
      EXPECT_EQ(next_x, x);
      EXPECT_GT(next_y, y);  // down the picture: less loss
    }
    x = next_x;
    y = next_y;
    ++steps;
    rest = strchr(rest + 1, 'L');
  }
  EXPECT_EQ(steps, 4);  // three members
}

TEST(FrontSvg, MarksLieInsideThePlot) {
  const std::string svg = front_svg(sample());
  for (size_t at = svg.find("class=\"trial"); at != std::string::npos;
       at = svg.find("class=\"trial", at + 1)) {
    double x = 0;
    double y = 0;
    ASSERT_EQ(std::sscanf(svg.c_str() + svg.find("cx=", at), "cx=\"%lf\" cy=\"%lf\"", &x, &y), 2);
    EXPECT_TRUE(x >= 78 && x <= 736) << x;
    EXPECT_TRUE(y >= 74 && y <= 398) << y;
  }
}

TEST(FrontSvg, OddInputIsStillAPicture) {
  EXPECT_EQ(xml_problem(front_svg({})), "");
  SvgPlot plot = sample();
  plot.title = "bad \xff utf-8 \x01 control";
  plot.trials.push_back({std::nan(""), 0.1, "no bits", true});
  plot.trials.push_back({4, std::numeric_limits<double>::infinity(), "no loss", true});
  const std::string svg = front_svg(plot);
  EXPECT_EQ(xml_problem(svg), "");
  EXPECT_EQ(count_of(svg, "class=\"trial"), 4);  // what cannot be placed is left out
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf\""), std::string::npos);

  SvgPlot one;
  one.trials = {{4.5, 0, "only", true}};
  EXPECT_EQ(xml_problem(front_svg(one)), "");
  SvgPlot negative;  // a map that beats the baseline by chance
  negative.trials = {{4.5, -0.02, "lucky", true}, {2.5, 0.1, "other", true}};
  EXPECT_EQ(xml_problem(front_svg(negative)), "");
}

TEST(NiceTicks, StepsOfOneTwoFive) {
  EXPECT_EQ(nice_ticks(0, 16, 5), (std::vector<double>{0, 5, 10, 15}));
  EXPECT_EQ(nice_ticks(0, 16.8, 8), (std::vector<double>{0, 5, 10, 15}));  // raw step 2.1 -> 5
  EXPECT_EQ(nice_ticks(0, 0.42, 6).size(), 5u);  // raw 0.07 -> 0.1: 0, .1, .2, .3, .4
  const std::vector<double> ticks = nice_ticks(-0.021, 0.105, 6);  // raw 0.021 -> 0.05
  ASSERT_EQ(ticks.size(), 3u);
  EXPECT_EQ(ticks[0], 0);
  EXPECT_NEAR(ticks[2], 0.1, 1e-12);
}

}  // namespace
}  // namespace kvsweep::cli
