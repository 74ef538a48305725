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
  EXPECT_THAT(message(share), HasSubstr("0.1, 0.2 ... or 0.9"));
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
            "scheme kivi codes keys per channel, which fp8_e4m3 is not made for; keys may have 16, "
            "8, 4, 3, 2");
  EXPECT_EQ(kivi.objection({}), "");
  const Scheme fp8 = make_scheme(options("fp8")).value();
  EXPECT_EQ(fp8.objection({Codec::base, Codec::int4}),
            "scheme fp8 knows 8-bit floats only, not int4; values may have 16, fp8, fp8e5m2");
  const Scheme kvmix = make_scheme(options("kvmix")).value();
  EXPECT_EQ(kvmix.objection({Codec::int2, Codec::mxfp4}),
            "scheme kvmix knows integer codes only, not mxfp4; values may have 16, 8, 4, 3, 2");
}

// Every scheme with every option reads back from its JSON, and says itself in words.
TEST(MakeScheme, OptionsReadBack) {
  for (const SchemeInfo& info : schemes()) {
    SchemeOptions all = options(std::string(info.name));
    all.sinks = 4;
    all.hadamard = Hadamard::both;
    if (info.codecs != SchemeCodecs::fp8) all.symmetric = true;
    if (info.reference()) all = options(std::string(info.name), 64);
    if (!info.counts_tokens()) all.share = 3;
    if (info.window == WindowRule::recode) all.residual = 7;
    for (const SchemeOptions& asked : {options(std::string(info.name)), all}) {
      const Scheme made = make_scheme(asked).value();
      const auto read = scheme_options_from_json(to_json(options_of(made)));
      ASSERT_TRUE(read.ok()) << read.error().message;
      EXPECT_EQ(make_scheme(*read).value(), made);
      EXPECT_THAT(described(made), HasSubstr(std::string(info.name) + ", group "));
    }
    const std::string said = info.reference() ? "group 64" : "sinks 4";
    EXPECT_THAT(described(make_scheme(all).value()), HasSubstr(said));
  }
}

// KVTuner, prompt 10: R = 0 holds one new token all the same and is flushed by the second; R = 32
// is a cycle of 32. What a step flushes, the next one sees.
TEST(CodedTokens, RecodingFollowsThePrompt) {
  const Window pairs = make_scheme(options("kvtuner")).value().key_window(Codec::int4);
  EXPECT_EQ(pairs, (Window{0, 2, WindowRule::recode, 0}));
  EXPECT_EQ(coded_tokens(pairs, 8, 10), 0);
  EXPECT_EQ(coded_tokens(pairs, 9, 10), 10);
  EXPECT_EQ(coded_tokens(pairs, 10, 10), 10);
  EXPECT_EQ(coded_tokens(pairs, 11, 10), 10);
  EXPECT_EQ(coded_tokens(pairs, 12, 10), 12);
  const Window cycle = make_scheme(options("kvtuner-kivi")).value().value_window(Codec::int4);
  EXPECT_EQ(coded_tokens(cycle, 41, 10), 10);
  EXPECT_EQ(coded_tokens(cycle, 42, 10), 42);
  for (int64_t p = 9; p < 300; ++p) {
    EXPECT_LE(p - coded_tokens(cycle, p, 10), most_exact(cycle, 1000, 10)) << p;
  }
}

TEST(MakeScheme, ReferenceSchemesHaveTheirOwnArithmeticAndNoOptionsOfOurs) {
  const Scheme kvtuner = make_scheme(options("kvtuner")).value();
  EXPECT_EQ(to_string(kvtuner.key_format(Codec::int4)), "int4-token-ghead-kvtuner");
  EXPECT_EQ(to_string(kvtuner.key_format(Codec::base)), "base");
  EXPECT_EQ(kvtuner.objection({Codec::int3, Codec::int4}),
            "scheme kvtuner knows int8, int4 and int2 only, not int3");
  const Scheme kivi = make_scheme(options("kvtuner-kivi-bf16")).value();
  EXPECT_EQ(to_string(kivi.key_format(Codec::int2)), "int2-channel-g32-kvtuner-bf16");
  EXPECT_EQ(to_string(kivi.value_format(Codec::int8)), "int8-token-g32-kvtuner-bf16");
  SchemeOptions symmetric = options("kvtuner", 32);
  symmetric.symmetric = true;
  EXPECT_EQ(to_string(make_scheme(symmetric)->key_format(Codec::int4)),
            "int4-token-g32-sym-kvtuner");
  const Scheme pack = make_scheme(options("kvmix-11pack")).value();
  EXPECT_EQ(to_string(pack.key_format(Codec::int3)), "int3-channel-g11-11pack");
  EXPECT_EQ(to_string(pack.key_format(Codec::int2)), "int2-channel-g32");
  EXPECT_EQ(pack.key_window(Codec::int3).block, 11);
  EXPECT_EQ(pack.key_window(Codec::int2).block, 32);
  EXPECT_THAT(pack.objection({Codec::int3, Codec::int3}), HasSubstr("for keys only"));
  for (const SchemeInfo& info : schemes()) {
    if (!info.reference()) continue;
    SchemeOptions sinks = options(std::string(info.name));
    sinks.sinks = 4;
    SchemeOptions symmetric = options(std::string(info.name));
    symmetric.symmetric = true;
    EXPECT_EQ(make_scheme(symmetric).ok(), info.arithmetic != Arithmetic::pack11);
    SchemeOptions rotated = options(std::string(info.name));
    rotated.hadamard = Hadamard::keys;
    SchemeOptions stepwise = options(std::string(info.name));
    stepwise.prefill = Prefill::stepwise;
    for (const SchemeOptions& wrong : {sinks, rotated, stepwise}) {
      const auto made = make_scheme(wrong);
      ASSERT_FALSE(made.ok());
      EXPECT_THAT(made.error().message, HasSubstr("reproduces published code"));
    }
  }
}

}  // namespace
}  // namespace kvsweep
