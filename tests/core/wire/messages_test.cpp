#include "core/wire/messages.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "core/wire/cbor_check.hpp"

namespace kvsweep::wire {
namespace {

using ::testing::HasSubstr;

Measurement measurement(int64_t example) {
  Measurement m;
  m.example = example;
  m.example_hash = "e" + std::to_string(example);
  m.text = "the answer is 9 \u20ac";
  m.tokens = {0, 23, 24, 255, 65536, 2147483647};
  m.answer = "9";
  m.exact_match = 1;
  m.token_agreement = 0.1;  // not exact in 32 bits
  m.prompt_tokens = 640;
  m.output_tokens = 6;
  m.cache_bytes = int64_t{5} << 33;
  m.timings = {1.25, 1e-3};
  m.draft = DraftUse{2, 9, 4, 17, 1};
  return m;
}

UnitResult result_message() {
  UnitResult m;
  m.lease_id = "lease";
  m.unit_id = "unit";
  m.model_hash = "model";
  m.protocol_hash = "protocol";
  m.base = BaseType::bf16;
  m.numerics_class = "cpu/avx2";
  m.batch_invariant = false;
  m.maps = {{"map-a", {measurement(0), measurement(7)}}, {"map-b", {}}};
  m.wall_ms = 1234.5;
  return m;
}

Lease lease_message() {
  SchemeOptions options;
  options.name = "kivi";
  Lease m;
  m.lease_id = "lease";
  m.attempt = 3;
  m.unit.unit_id = "unit";
  m.unit.model_dir = "/models/a";
  m.unit.model_hash = "model";
  m.unit.base = BaseType::fp32;
  m.unit.protocol = {"gsm8k", "3.0", "test", 5, 0, 256};
  m.unit.mode = RunMode::forced;
  m.unit.maps = {uniform_map(make_scheme(options).value(), 3, {Codec::int4, Codec::base})};
  m.unit.maps[0].layers[1] =
      LayerPairs::of_heads({{Codec::int8, Codec::int4}, {Codec::int4, Codec::base}});
  m.unit.examples = {0, 5, 1318};
  m.unit.references = {{0, {{1, 2, 3}}}, {5, {{}}}, {1318, {{49151}}}};
  m.unit.drafts = {{0, {7, 8}}, {1318, {}}};
  return m;
}

std::vector<Message> one_of_each() {
  UnitResult described = result_message();
  described.maps.clear();
  described.description = Description{2, {"h0", "h1"}};
  UnitResult failed = result_message();
  failed.maps.clear();
  failed.failure = UnitFailure{ErrorCode::oom, "the cache budget of 1 GiB is too small"};
  return {
      Hello{"w1", "host", 4242, "0.1.0", "cpu", "Some CPU", "cpu/avx2", 2, int64_t{8} << 30},
      Welcome{"session", 1000, 30000},
      Refuse{"another version"},
      Ready{},
      lease_message(),
      Progress{{{"lease", 3, 40, 12345}, {"other", 0, 0, 0}}},
      Progress{},
      result_message(),
      described,
      failed,
      Ack{"lease"},
      Release{"lease", "asked to stop"},
      Drain{},
      Bye{"done"},
  };
}

// Encoding is a pure function of every field, so equal bytes after a round trip mean that no field
// was lost or changed on the way back.
TEST(Messages, RoundTrip) {
  for (const Message& message : one_of_each()) {
    const std::string bytes = encode(message);
    const auto back = decode(bytes);
    ASSERT_TRUE(back.ok()) << type_name(message) << ": " << back.error().message;
    EXPECT_EQ(back->index(), message.index());
    EXPECT_EQ(encode(*back), bytes) << type_name(message);
  }
}

TEST(Messages, FieldsArriveAsTheyWereSent) {
  const auto lease = std::get<Lease>(*decode(encode(lease_message())));
  EXPECT_EQ(lease.attempt, 3);
  EXPECT_EQ(lease.unit.maps, lease_message().unit.maps);
  EXPECT_EQ(lease.unit.protocol, lease_message().unit.protocol);
  EXPECT_EQ(lease.unit.examples, (std::vector<int64_t>{0, 5, 1318}));
  EXPECT_EQ(lease.unit.references.at(0).tokens, (std::vector<int32_t>{1, 2, 3}));
  EXPECT_TRUE(lease.unit.references.at(5).tokens.empty());
  EXPECT_EQ(lease.unit.drafts, lease_message().unit.drafts);
  EXPECT_EQ(lease.unit.mode, RunMode::forced);
  EXPECT_EQ(lease.unit.kind, UnitKind::measure);

  const auto result = std::get<UnitResult>(*decode(encode(result_message())));
  ASSERT_EQ(result.maps.size(), 2u);
  EXPECT_EQ(result.maps[0].measurements[1].token_agreement, 0.1);  // all 64 bits
  EXPECT_EQ(result.maps[0].measurements[1].cache_bytes, int64_t{5} << 33);
  EXPECT_FALSE(result.maps[0].measurements[1].kl.has_value());
  EXPECT_FALSE(result.batch_invariant);
  EXPECT_FALSE(result.failure.has_value());
}

TEST(Messages, TypeNames) {
  std::vector<std::string> names;
  for (const Message& message : one_of_each()) {
    const std::string name(type_name(message));
    if (names.empty() || names.back() != name) names.push_back(name);
  }
  EXPECT_EQ(names,
            (std::vector<std::string>{"hello", "welcome", "refuse", "ready", "lease", "progress",
                                      "result", "ack", "release", "drain", "bye"}));
}

TEST(Messages, TextThatIsNotUtf8IsRepairedBeforeSending) {
  UnitResult m = result_message();
  m.maps[0].measurements[0].text = "cut \xe2\x82";
  const auto back = decode(encode(m));
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(std::get<UnitResult>(*back).maps[0].measurements[0].text, "cut \ufffd\ufffd");
}

TEST(Messages, LongSentencesAreCutSoThatTheyArrive) {
  UnitResult m = result_message();
  m.maps.clear();
  // 16384 is even and the euro sign takes three bytes: the cut falls inside one.
  std::string text;
  while (text.size() < 100000) text += "\u20ac";
  m.failure = UnitFailure{ErrorCode::internal, text};
  const auto back = decode(encode(m));
  ASSERT_TRUE(back.ok()) << back.error().message;
  const std::string& arrived = std::get<UnitResult>(*back).failure->message;
  EXPECT_EQ(arrived, text.substr(0, 16383));  // 5461 whole signs
  EXPECT_TRUE(decode(encode(Refuse{text})).ok());
  Hello hello{"w"};
  hello.device_name = text;
  EXPECT_TRUE(decode(encode(hello)).ok());
}

std::string cbor(const Json& json) {
  std::string bytes;
  Json::to_cbor(json, bytes);
  return bytes;
}

Json json_of(const Message& message) {
  return Json::from_cbor(encode(message));
}

TEST(Decode, AnotherVersionIsAConflictThatSaysBoth) {
  Json json = json_of(Ready{});
  json["v"] = 7;
  const auto back = decode(cbor(json));
  ASSERT_FALSE(back.ok());
  EXPECT_EQ(back.error().code, ErrorCode::conflict);
  EXPECT_THAT(back.error().message, HasSubstr("version 7, this side 1"));
  // A future message may look quite different: the version is judged first.
  EXPECT_EQ(decode(cbor({{"v", 2}, {"t", "greeting"}})).error().code, ErrorCode::conflict);
}

TEST(Decode, MalformedFieldsAreNamed) {
  struct Case {
    Message message;
    const char* pointer;
    Json value;
    const char* named;
  };
  const Case cases[] = {
      {Hello{"w"}, "/worker_id", 5, "worker_id"},
      {Hello{"w"}, "/worker_id", "", "worker_id"},
      {Hello{"w"}, "/worker_id", std::string(300, 'x'), "worker_id"},
      {Hello{"w"}, "/pid", -1, "pid"},
      {Hello{"w"}, "/threads", 1e3, "threads"},
      {Welcome{"s", 1, 1}, "/lease_ms", 0, "lease_ms"},
      {Welcome{"s", 1, 1}, "/heartbeat_ms", int64_t{1} << 60, "heartbeat_ms"},
      {lease_message(), "/attempt", 0, "attempt"},
      {lease_message(), "/unit", "x", "unit"},
      {lease_message(), "/unit/kind", "guess", "kind"},
      {lease_message(), "/unit/base", "fp8", "fp8"},
      {lease_message(), "/unit/mode", "both", "both"},
      {lease_message(), "/unit/examples/1", -5, "examples"},
      {lease_message(), "/unit/maps/0/layers/1", "K3V9", "K3V9"},
      {lease_message(), "/unit/maps/0/scheme/group", 48, "group"},
      {lease_message(), "/unit/protocol/shots", 100000, "shots"},
      {lease_message(), "/unit/references/0/tokens/0", int64_t{1} << 31, "tokens"},
      {lease_message(), "/unit/drafts/0/tokens/0", -1, "tokens"},
      {Progress{{{"l", 1, 2, 3}}}, "/leases/0/done", -1, "done"},
      {result_message(), "/maps/0/measurements/0/draft/accepted", 10, "accepted"},
      {result_message(), "/maps/0/measurements/0/exact_match", 2, "exact_match"},
      {result_message(), "/maps/0/measurements", Json::object(), "measurements"},
      {result_message(), "/maps", Json::array(), "outcome"},
      {result_message(), "/failure", {{"code", "oom"}, {"message", "m"}}, "outcome"},
      {result_message(), "/wall_ms", -1, "wall_ms"},
      {result_message(), "/batch_invariant", 1, "batch_invariant"},
      {Bye{"x"}, "/reason", Json::array(), "reason"},
      {Ready{}, "/t", "rady", "rady"},
      {Ready{}, "/t", 5, "\"t\""},
      {Ready{}, "/v", "1", "\"v\""},
  };
  for (const Case& c : cases) {
    Json json = json_of(c.message);
    json[Json::json_pointer(c.pointer)] = c.value;
    const auto back = decode(cbor(json));
    ASSERT_FALSE(back.ok()) << c.pointer;
    EXPECT_EQ(back.error().code, ErrorCode::bad_input) << c.pointer;
    EXPECT_THAT(back.error().message, HasSubstr(c.named));
  }
}

TEST(Decode, EveryFieldIsRequiredButTheOutcomes) {
  for (const Message& message : one_of_each()) {
    const Json whole = json_of(message);
    for (const auto& [key, value] : whole.items()) {
      Json part = whole;
      part.erase(key);
      EXPECT_FALSE(decode(cbor(part)).ok()) << type_name(message) << " without " << key;
    }
  }
}

TEST(Decode, OnlyFailureClassesOfUnits) {
  UnitResult m = result_message();
  m.maps.clear();
  m.failure = UnitFailure{ErrorCode::conflict, "no unit fails like this"};
  EXPECT_FALSE(decode(encode(m)).ok());
}

TEST(Decode, NotAMap) {
  for (const Json& json : {Json(5), Json("hello"), Json::array({1, 2}), Json(nullptr)}) {
    EXPECT_EQ(decode(cbor(json)).error().code, ErrorCode::bad_input);
  }
  EXPECT_FALSE(decode("").ok());
}

TEST(Decode, DeepNestingIsRefusedBeforeAnyoneRecurses) {
  std::string bomb(1 << 20, '\x81');  // a million arrays of one element
  EXPECT_THAT(decode(bomb).error().message, HasSubstr("nested too deeply"));
}

TEST(Decode, LyingLengthsAreRefused) {
  const std::pair<std::string, const char*> cases[] = {
      {std::string("\x9b\x7f\xff\xff\xff\xff\xff\xff\xff", 9), "too early"},  // array of 2^63-1
      {std::string("\xbb\xff\xff\xff\xff\xff\xff\xff\xff", 9), "too early"},  // map of 2^64-1
      {std::string("\x7b\xff\xff\xff\xff\xff\xff\xff\xff", 9), "too early"},  // text of 2^64-1
      {std::string("\xa1\x01\x02", 3), "key is not a text"},
      {std::string("\x5f\x41\x61\xff", 4), "indefinite"},  // indefinite bytes
      {std::string("\xc0\x61\x61", 3), "no message has"},  // a tag
      {std::string("\x41\x61", 2), "no message has"},      // bytes
      {std::string("\xf9\x3c\x00", 3), "no message has"},  // half float
      {std::string("\xfb\x7f\xf0\x00\x00\x00\x00\x00\x00", 9), "not finite"},
      {std::string("\x61\xff", 2), "not UTF-8"},
      {std::string("\xa0\xa0", 2), "bytes follow"},
      {std::string("\x3b\xff\xff\xff\xff\xff\xff\xff\xff", 9), "out of range"},
  };
  for (const auto& [bytes, reason] : cases) {
    EXPECT_THAT(check_cbor(bytes).error().message, HasSubstr(reason));
    EXPECT_FALSE(decode(bytes).ok());
  }
}

TEST(Decode, EveryTruncationIsRefused) {
  for (const Message& message : one_of_each()) {
    const std::string bytes = encode(message);
    for (size_t n = 0; n < bytes.size(); ++n) {
      ASSERT_FALSE(decode(std::string_view(bytes).substr(0, n)).ok());
    }
    EXPECT_FALSE(decode(bytes + '\0').ok());
  }
}

// A flipped bit may give another valid message (a digit of a number), but never a throw, and what
// is accepted must survive its own round trip.
TEST(Decode, EveryFlippedBitIsHandled) {
  for (const Message& message : one_of_each()) {
    std::string bytes = encode(message);
    for (size_t i = 0; i < bytes.size() * 8; ++i) {
      bytes[i / 8] = static_cast<char>(bytes[i / 8] ^ (1 << i % 8));
      if (const auto back = decode(bytes); back.ok()) {
        EXPECT_TRUE(decode(encode(*back)).ok());
      }
      bytes[i / 8] = static_cast<char>(bytes[i / 8] ^ (1 << i % 8));
    }
  }
}

TEST(Decode, RandomBytesAreHandled) {
  std::mt19937_64 random(20261129);
  for (int round = 0; round < 20000; ++round) {
    std::string bytes(random() % 200, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    EXPECT_FALSE(decode(bytes).ok());
  }
  // Random bytes written over a valid message reach the later checks.
  const std::string valid = encode(lease_message());
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = valid;
    for (uint64_t n = 1 + random() % 4; n > 0; --n) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    (void)decode(bytes).ok();
  }
}

TEST(Decode, TooLargeIsRefused) {
  const std::string huge(static_cast<size_t>(kMaxMessageBytes) + 1, '\0');
  EXPECT_THAT(decode(huge).error().message, HasSubstr("at most"));
}

}  // namespace
}  // namespace kvsweep::wire
