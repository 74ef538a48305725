#include "core/scheme.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kvsweep {
namespace {

using ::testing::HasSubstr;

SchemeOptions options(const std::string& name, std::optional<int> group = {},
                      std::optional<int> residual = {}) {
  SchemeOptions made;
  made.name = name;
  made.group = group;
  made.residual = residual;
  return made;
}

// The worked examples of scheme.hpp, by hand from floor(max(0, p + 1 - keep) / block) * block.
TEST(CodedTokens, WorkedExamples) {
  const Window keys{1, 32};
  EXPECT_EQ(coded_tokens(keys, 0), 0);
  EXPECT_EQ(coded_tokens(keys, 31), 0);
  EXPECT_EQ(coded_tokens(keys, 32), 32);
  EXPECT_EQ(coded_tokens(keys, 63), 32);
  EXPECT_EQ(coded_tokens(keys, 64), 64);
  const Window values{33, 1};
  EXPECT_EQ(coded_tokens(values, 32), 0);
  EXPECT_EQ(coded_tokens(values, 33), 1);
  EXPECT_EQ(coded_tokens(values, 100), 68);
  EXPECT_EQ(coded_tokens(Window{0, 1}, 0), 1);
  EXPECT_EQ(coded_tokens(Window{0, 1}, 41), 42);
}

TEST(CodedTokens, NeverMoreExactThanTheStagingBufferHolds) {
  for (const Window window : {Window{0, 1}, Window{1, 32}, Window{33, 1}, Window{5, 64}}) {
    int64_t before = 0;
    for (int64_t p = 0; p < 1000; ++p) {
      const int64_t coded = coded_tokens(window, p);
      ASSERT_GE(coded, before);
      ASSERT_LE(p + 1 - coded, window.staging_tokens());
      before = coded;
    }
  }
}

TEST(MakeScheme, PerTokenDefaults) {
  const auto scheme = make_scheme(options("per-token"));
  ASSERT_TRUE(scheme.ok());
  EXPECT_EQ(scheme->k, (Window{0, 1}));
  EXPECT_EQ(scheme->v, (Window{0, 1}));
  EXPECT_EQ(scheme->page_tokens(), 64);
  EXPECT_EQ(scheme->prefill, Prefill::stepwise);
  EXPECT_EQ(to_string(scheme->key_format(Codec::int8)), "int8-token-ghead");
  EXPECT_EQ(to_string(scheme->value_format(Codec::base)), "base");
}

TEST(MakeScheme, PerTokenResidualKeepsThatManyOnBothSides) {
  const auto scheme = make_scheme(options("per-token", 128, 16));
  ASSERT_TRUE(scheme.ok());
  EXPECT_EQ(scheme->k, (Window{16, 1}));
  EXPECT_EQ(scheme->v, (Window{16, 1}));
  EXPECT_EQ(scheme->page_tokens(), 64);  // token groups do not stretch the page
}

TEST(MakeScheme, KiviCodesKeysByResidualAndValuesOneByOne) {
  const auto scheme = make_scheme(options("kivi"));
  ASSERT_TRUE(scheme.ok());
  EXPECT_EQ(scheme->k, (Window{1, 32}));
  EXPECT_EQ(scheme->v, (Window{33, 1}));
  EXPECT_EQ(scheme->prefill, Prefill::exact);
  EXPECT_EQ(to_string(scheme->key_format(Codec::int4)), "int4-channel-g32");
  EXPECT_EQ(to_string(scheme->value_format(Codec::int2)), "int2-token-g32");

  const auto published = make_scheme(options("kivi", 32, 128));
  ASSERT_TRUE(published.ok());
  EXPECT_EQ(published->k, (Window{1, 128}));
  EXPECT_EQ(published->v, (Window{129, 1}));
}

TEST(MakeScheme, KiviWithALargerGroupTakesOneGroupAsResidual) {
  const auto scheme = make_scheme(options("kivi", 128));
  ASSERT_TRUE(scheme.ok());
  EXPECT_EQ(scheme->residual, 128);
  EXPECT_EQ(scheme->page_tokens(), 128);
}

TEST(MakeScheme, RefusesWithOneSentence) {
  const auto message = [](const SchemeOptions& wrong) {
    const auto scheme = make_scheme(wrong);
    EXPECT_FALSE(scheme.ok());
    return scheme.ok() ? "" : scheme.error().message;
  };
  EXPECT_THAT(message(options("kivvi")), HasSubstr("did you mean kivi?"));
  EXPECT_THAT(message(options("per-token", 48)), HasSubstr("32, 64, 128 and head"));
  EXPECT_THAT(message(options("kivi", 0)), HasSubstr("cannot use `group: head`"));
  EXPECT_THAT(message(options("kivi", 64, 32)), HasSubstr("multiple of the group"));
  EXPECT_THAT(message(options("kivi", 32, 48)), HasSubstr("multiple of the group"));
  EXPECT_THAT(message(options("kivi", 32, 0)), HasSubstr("multiple of the group"));
  EXPECT_THAT(message(options("per-token", 32, -1)), HasSubstr("residual -1"));
  EXPECT_THAT(message(options("per-token", 32, 1 << 20)), HasSubstr("out of range"));
}

}  // namespace
}  // namespace kvsweep
