#include "core/json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "core/json_reader.hpp"
#include "tests/support/temp_dir.hpp"

namespace kvsweep {
namespace {

using ::testing::HasSubstr;

// Doubles by their bits and what ECMAScript prints, as RFC 8785 appendix B lists them: limits of
// the format, the borders of exponent notation, and neighbours that differ in the last bit.
TEST(CanonicalJson, NumbersOfRfc8785) {
  const std::pair<uint64_t, const char*> cases[] = {
      {0x0000000000000000, "0"},
      {0x8000000000000000, "0"},
      {0x0000000000000001, "5e-324"},
      {0x8000000000000001, "-5e-324"},
      {0x7fefffffffffffff, "1.7976931348623157e+308"},
      {0xffefffffffffffff, "-1.7976931348623157e+308"},
      {0x4340000000000000, "9007199254740992"},
      {0xc340000000000000, "-9007199254740992"},
      {0x4430000000000000, "295147905179352830000"},
      {0x44b52d02c7e14af5, "9.999999999999997e+22"},
      {0x44b52d02c7e14af6, "1e+23"},
      {0x44b52d02c7e14af7, "1.0000000000000001e+23"},
      {0x444b1ae4d6e2ef4e, "999999999999999700000"},
      {0x444b1ae4d6e2ef4f, "999999999999999900000"},
      {0x444b1ae4d6e2ef50, "1e+21"},
      {0x3eb0c6f7a0b5ed8c, "9.999999999999997e-7"},
      {0x3eb0c6f7a0b5ed8d, "0.000001"},
      {0x41b3de4355555553, "333333333.3333332"},
      {0x41b3de4355555554, "333333333.33333325"},
      {0x41b3de4355555555, "333333333.3333333"},
      {0x41b3de4355555556, "333333333.3333334"},
      {0x41b3de4355555557, "333333333.33333343"},
      {0xbecbf647612f3696, "-0.0000033333333333333333"},
      {0x43143ff3c1cb0959, "1424953923781206.2"},
  };
  for (const auto& [bits, text] : cases) {
    EXPECT_EQ(*canonical_json(std::bit_cast<double>(bits)), text);
  }
}

TEST(CanonicalJson, EqualNumbersPrintEqually) {
  EXPECT_EQ(*canonical_json(Json(4.5)), "4.5");
  EXPECT_EQ(*canonical_json(Json(100000.0)), "100000");
  EXPECT_EQ(*canonical_json(Json(100000)), "100000");
  EXPECT_EQ(*canonical_json(Json(-7)), "-7");
  EXPECT_EQ(*canonical_json(Json(1e-7)), "1e-7");
}

TEST(CanonicalJson, KeysBySixteenBitUnits) {
  // The order of RFC 8785 §3.2.3: U+1F600 is d83d de00 in UTF-16, so it comes before U+FB33,
  // although its UTF-8 bytes (f0...) come after (ef...).
  const Json json = {{"\u20ac", 1}, {"\r", 2},         {"\ufb33", 3}, {"1", 4},
                     {"\u00f6", 5}, {"\U0001f600", 6}, {"\u0080", 7}};
  EXPECT_EQ(*canonical_json(json),
            "{\"\\r\":2,\"1\":4,\"\u0080\":7,\"\u00f6\":5,\"\u20ac\":1,\"\U0001f600\":6,"
            "\"\ufb33\":3}");
}

TEST(CanonicalJson, StringsEscapeOnlyWhatTheyMust) {
  const Json json = std::string("\u20ac$\x0f\nA'B\"\\\"/\b\t\f\r\x7f");
  EXPECT_EQ(*canonical_json(json), "\"\u20ac$\\u000f\\nA'B\\\"\\\\\\\"/\\b\\t\\f\\r\x7f\"");
}

TEST(CanonicalJson, LiteralsAndNesting) {
  const Json json = {{"b", {Json(nullptr), true, false, Json::array(), Json::object()}}, {"a", 1}};
  EXPECT_EQ(*canonical_json(json), "{\"a\":1,\"b\":[null,true,false,[],{}]}");
}

TEST(CanonicalJson, RefusesWhatJsonCannotHold) {
  EXPECT_FALSE(canonical_json(Json(std::nan(""))).ok());
  EXPECT_FALSE(canonical_json(Json(std::numeric_limits<double>::infinity())).ok());
  EXPECT_FALSE(canonical_json(Json((int64_t{1} << 53) + 1)).ok());
  EXPECT_FALSE(canonical_json(Json(std::numeric_limits<uint64_t>::max())).ok());
  EXPECT_TRUE(canonical_json(Json(int64_t{1} << 53)).ok());
  EXPECT_FALSE(canonical_json(Json("\xff")).ok());
  EXPECT_FALSE(canonical_json(Json{{"\xff", 1}}).ok());
  EXPECT_FALSE(canonical_json(Json::binary({1, 2})).ok());
  Json deep = 1;
  for (int i = 0; i < 5000; ++i) deep = Json::array({std::move(deep)});
  EXPECT_FALSE(canonical_json(deep).ok());
}

TEST(ParseJson, ErrorsGiveLineAndColumn) {
  // The comma of line 3 stands in column 7.
  const auto bad = parse_json("{\n  \"a\": 1,\n  \"b\":,\n}", "x.json");
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().code, ErrorCode::bad_input);
  EXPECT_THAT(bad.error().message, HasSubstr("x.json"));
  EXPECT_THAT(bad.error().message, HasSubstr("line 3, column 7"));
  EXPECT_THAT(parse_json("{\"a\": [1, 2", "x").error().message, HasSubstr("ends too early"));
  EXPECT_FALSE(parse_json("", "x").ok());
  EXPECT_FALSE(parse_json("{} {}", "x").ok());
  EXPECT_FALSE(parse_json("[1e999]", "x").ok());
  EXPECT_FALSE(parse_json("\"\xff\"", "x").ok());
}

TEST(ParseJson, DuplicateKeysAreRefusedOnlyWithinOneObject) {
  const auto twice = parse_json(R"({"a": {"b": 1, "c": 2, "b": 3}})", "m.json");
  ASSERT_FALSE(twice.ok());
  EXPECT_THAT(twice.error().message, HasSubstr("\"b\" appears twice"));
  EXPECT_TRUE(parse_json(R"([{"a": 1}, {"a": {"a": 2}}])", "m.json").ok());
  EXPECT_FALSE(parse_json(R"({"": 1, "": 2})", "m.json").ok());
}

TEST(JsonReader, ReportsTheFirstProblemWithNameValueAndRange) {
  const Json json = {{"n", 5}, {"f", 1.5}, {"s", "text"}, {"list", {1, 2}}};
  JsonReader good(json, "thing");
  EXPECT_EQ(good.integer("n", 0, 10), 5);
  EXPECT_EQ(good.number("f", 0, 2), 1.5);
  EXPECT_EQ(good.number("n", 0, 10), 5.0);
  EXPECT_EQ(good.string("s", 10), "text");
  EXPECT_EQ(good.integers("list", 0, 2, 2), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(good.optional_integer("absent", 0, 1), std::nullopt);
  EXPECT_TRUE(good.done().ok());

  JsonReader bad(json, "thing");
  bad.integer("n", 6, 10);
  bad.integer("absent", 0, 1);
  EXPECT_EQ(bad.done().error().message,
            "thing: \"n\" is 5; it must be a whole number from 6 to 10");
}

TEST(JsonReader, RefusesOtherTypes) {
  const Json json = {{"f", 1.0},         {"big", std::numeric_limits<uint64_t>::max()},
                     {"nan", NAN},       {"s", "\xff"},
                     {"null", nullptr},  {"list", {1, "x"}},
                     {"long", "abcdef"}, {"b", 1}};
  const auto failing = [&](const auto& read) {
    JsonReader reader(json, "r");
    read(reader);
    return !reader.done().ok();
  };
  EXPECT_TRUE(failing([](JsonReader& r) { r.integer("f", 0, 5); }));
  EXPECT_TRUE(failing([](JsonReader& r) { r.integer("big", INT64_MIN, INT64_MAX); }));
  EXPECT_TRUE(failing([](JsonReader& r) { r.number("nan", -1, 1); }));
  EXPECT_TRUE(failing([](JsonReader& r) { r.string("s", 5); }));
  EXPECT_TRUE(failing([](JsonReader& r) { r.integer("null", 0, 5); }));
  EXPECT_TRUE(failing([](JsonReader& r) { r.integers("list", 0, 5, 5); }));
  EXPECT_TRUE(failing([](JsonReader& r) { r.integers("list", 0, 5, 1); }));
  EXPECT_TRUE(failing([](JsonReader& r) { r.string("long", 5); }));
  EXPECT_TRUE(failing([](JsonReader& r) { r.boolean("b"); }));
  EXPECT_TRUE(failing([](JsonReader& r) { r.object("list"); }));
  EXPECT_FALSE(failing([](JsonReader& r) { r.object("absent", true); }));
  const Json list = Json::array();
  EXPECT_FALSE(JsonReader(list, "r").done().ok());
}

TEST(JsonReader, LongValuesAreCutBetweenCharacters) {
  std::string text;
  for (int i = 0; i < 40; ++i) text += "\u00e9";
  const std::string cut = shown(text);
  EXPECT_LE(cut.size(), 40u);
  EXPECT_TRUE(Json::accept("\"" + cut.substr(1) + "\""));  // still UTF-8
}

TEST(ParseJson, RefusesNestingThatWouldFillTheMemory) {
  const auto nested = [](size_t depth) {
    return parse_json(std::string(depth, '[') + std::string(depth, ']'), "x.json");
  };
  EXPECT_TRUE(nested(200).ok());
  EXPECT_FALSE(parse_json(std::string(200, '['), "x.json").ok());
  for (const size_t depth : {size_t{300}, size_t{50'000'000}}) {
    const auto value = nested(depth);
    ASSERT_FALSE(value.ok());
    EXPECT_EQ(value.error().message, "x.json: nested deeper than 200 levels");
  }
}

}  // namespace
}  // namespace kvsweep
