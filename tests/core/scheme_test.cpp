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
      ASSERT_LE(p + 1 - coded, most_exact(window, 1000));
      before = coded;
    }
  }
}

// Step by step as KVmix's code runs (decode appends, then codes, then attends), against the formula
// and the room that it states.
TEST(CodedTokens, SharesFollowTheirRecurrences) {
  for (const WindowRule rule : {WindowRule::window_share, WindowRule::total_share}) {
    for (int share = 1; share <= 9; ++share) {
      for (const int block : {32, 64}) {
        for (const int64_t prompt : {0, 1, 31, 33, 1000}) {
          const Window window{0, block, rule, share};
          CodedTokens counter(window, prompt);
          int64_t coded = 0;
          for (int64_t p = 0; p < 1500; ++p) {
            const bool whole = rule == WindowRule::total_share;
            const int64_t exact = whole ? p + 1 : p + 1 - coded;
            const int64_t stay = exact * share / 10;
            const int64_t leave = (exact - stay) / block * block;
            if (whole) {
              coded = leave;
            } else if (p + 1 >= prompt) {
              coded += leave;
            }
            ASSERT_EQ(counter.next(), coded) << p;
            if (p % 37 == 0) {
              ASSERT_EQ(coded_tokens(window, p, prompt), coded) << p;
            }
            if (p + 1 >= prompt) {
              ASSERT_LE(p + 1 - coded, most_exact(window, p + 1, prompt)) << p;
            }
          }
        }
      }
    }
  }
}

// KVmix at a prompt of 1000, share .2, groups of 32: 200 exact, after the next token 41 of the 201,
// then 10 (reference: LfLab-AI/KVmix, measured there).
TEST(CodedTokens, TheWindowOfKvmixCollapses) {
  const Window window{0, 32, WindowRule::window_share, 2};
  EXPECT_EQ(1000 - coded_tokens(window, 999, 1000), 200);
  EXPECT_EQ(1001 - coded_tokens(window, 1000, 1000), 41);
  EXPECT_EQ(1002 - coded_tokens(window, 1001, 1000), 10);
}

TEST(MakeScheme, PerTokenDefaults) {
  const auto scheme = make_scheme(options("per-token"));
  ASSERT_TRUE(scheme.ok());
  EXPECT_EQ(scheme->key_window(Codec::int4), (Window{0, 1}));
  EXPECT_EQ(scheme->value_window(Codec::int4), (Window{0, 1}));
  EXPECT_EQ(scheme->page_tokens(), 64);
  EXPECT_EQ(scheme->prefill, Prefill::stepwise);
  EXPECT_EQ(to_string(scheme->key_format(Codec::int8)), "int8-token-ghead");
  EXPECT_EQ(to_string(scheme->value_format(Codec::base)), "base");
}

TEST(MakeScheme, PerTokenResidualKeepsThatManyOnBothSides) {
  const auto scheme = make_scheme(options("per-token", 128, 16));
  ASSERT_TRUE(scheme.ok());
  EXPECT_EQ(scheme->key_window(Codec::int4), (Window{16, 1}));
  EXPECT_EQ(scheme->value_window(Codec::int4), (Window{16, 1}));
  EXPECT_EQ(scheme->page_tokens(), 64);  // token groups do not stretch the page
}

TEST(MakeScheme, KiviCodesKeysByResidualAndValuesOneByOne) {
  const auto scheme = make_scheme(options("kivi"));
  ASSERT_TRUE(scheme.ok());
  EXPECT_EQ(scheme->key_window(Codec::int4), (Window{1, 32}));
  EXPECT_EQ(scheme->value_window(Codec::int4), (Window{33, 1}));
  EXPECT_EQ(scheme->prefill, Prefill::exact);
  EXPECT_EQ(to_string(scheme->key_format(Codec::int4)), "int4-channel-g32");
  EXPECT_EQ(to_string(scheme->value_format(Codec::int2)), "int2-token-g32");

  const auto published = make_scheme(options("kivi", 32, 128));
  ASSERT_TRUE(published.ok());
  EXPECT_EQ(published->key_window(Codec::int4), (Window{1, 128}));
  EXPECT_EQ(published->value_window(Codec::int4), (Window{129, 1}));
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
  EXPECT_THAT(message(options("kvmix", 32, 32)), HasSubstr("use `share`"));
  EXPECT_THAT(message(options("fp8", 64)), HasSubstr("can only be head"));
  SchemeOptions share = options("kivi");
  share.share = 2;
  EXPECT_THAT(message(share), HasSubstr("use `residual`"));
  share = options("kvmix");
  share.share = 10;
  EXPECT_THAT(message(share), HasSubstr("1 to 9 tenths"));
  SchemeOptions sinks = options("per-token");
  sinks.sinks = 65;
  EXPECT_THAT(message(sinks), HasSubstr("0 to 64 tokens"));
  SchemeOptions symmetric = options("fp8");
  symmetric.symmetric = true;
  EXPECT_THAT(message(symmetric), HasSubstr("only integer codes"));
}

TEST(MakeScheme, ObjectsToPairsThatItCannotStore) {
  const Scheme kivi = make_scheme(options("kivi")).value();
  EXPECT_EQ(kivi.objection({Codec::int3, Codec::fp8_e4m3}), "");
  EXPECT_EQ(kivi.objection({Codec::fp8_e4m3, Codec::int4}),
            "scheme kivi codes keys per channel, which fp8_e4m3 is not made for");
  EXPECT_EQ(kivi.objection({}), "");
  const Scheme fp8 = make_scheme(options("fp8")).value();
  EXPECT_EQ(fp8.objection({Codec::base, Codec::int4}),
            "scheme fp8 knows 8-bit floats only, not int4");
  const Scheme kvmix = make_scheme(options("kvmix")).value();
  EXPECT_EQ(kvmix.objection({Codec::int2, Codec::mxfp4}),
            "scheme kvmix knows integer codes only, not mxfp4");
}

// Every scheme with every option reads back from its JSON, and says itself in words.
TEST(MakeScheme, OptionsReadBack) {
  for (const SchemeInfo& info : schemes()) {
    SchemeOptions all = options(std::string(info.name));
    all.sinks = 4;
    all.hadamard = Hadamard::both;
    if (info.codecs != SchemeCodecs::fp8) all.symmetric = true;
    if (info.window != WindowRule::tokens) all.share = 3;
    for (const SchemeOptions& asked : {options(std::string(info.name)), all}) {
      const Scheme made = make_scheme(asked).value();
      const auto read = scheme_options_from_json(to_json(options_of(made)));
      ASSERT_TRUE(read.ok()) << read.error().message;
      EXPECT_EQ(make_scheme(*read).value(), made);
      EXPECT_THAT(described(made), HasSubstr(std::string(info.name) + ", group "));
    }
    EXPECT_THAT(described(make_scheme(all).value()), HasSubstr("sinks 4"));
  }
}

}  // namespace
}  // namespace kvsweep
