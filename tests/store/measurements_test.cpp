// Measurements: written once per content key, never changed, never half.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/json.hpp"
#include "tests/store/samples.hpp"
#include "tests/support/temp_dir.hpp"

namespace kvsweep::store {
namespace {

using test::must;
using test::sample_measurement;
using ::testing::HasSubstr;

class MeasurementsTest : public ::testing::Test {
 protected:
  Result<int64_t> put(const std::vector<Measurement>& measurements) {
    return store_.put_measurements(scope_, measurements, "w1", true, 7000);
  }
  std::map<std::string, Measurement> get(const MeasurementScope& scope,
                                         const std::vector<Measurement>& wanted) {
    std::vector<std::string> hashes;
    for (const Measurement& m : wanted) hashes.push_back(m.example_hash);
    return must(store_.measurements(scope, hashes));
  }

  test::TempDir dir_;
  Store store_ = test::open_writer(dir_.file("a.db"));
  MeasurementScope scope_ = test::sample_scope(store_);
};

TEST_F(MeasurementsTest, ComeBackEqual) {
  Measurement full = sample_measurement(3);
  full.text = std::string("a\0b \xff\xfe", 6) + "\nsüß";  // zero bytes and broken UTF-8
  full.strict_match = 0;
  full.kl = -1e-9;  // rounding may leave a mean just below zero
  full.nll = 2.5;
  Measurement forced;  // no output: only the metrics of a forced run
  forced.example = 4;
  forced.example_hash = sha256_hex("e4");
  forced.token_agreement = 1;
  EXPECT_EQ(must(put({full, forced})), 2);
  const auto found = get(scope_, {full, forced, sample_measurement(9)});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found.at(full.example_hash).text, full.text);
  EXPECT_EQ(found.at(full.example_hash).example_hash, full.example_hash);
  // to_json carries every field; text is compared above, since it is no UTF-8.
  const auto same = [](Measurement a, Measurement b) {
    a.text.clear();
    b.text.clear();
    EXPECT_EQ(to_json(a), to_json(b));
  };
  same(found.at(full.example_hash), full);
  same(found.at(forced.example_hash), forced);
  EXPECT_FALSE(found.at(forced.example_hash).exact_match.has_value());
}

TEST_F(MeasurementsTest, AreListedByMap) {
  const std::vector<Measurement> two = {sample_measurement(1), sample_measurement(2)};
  must(put(two));
  const auto scopes = must(store_.measured_scopes(scope_.map_id));
  ASSERT_EQ(scopes.size(), 1u);
  EXPECT_EQ(scopes[0].scope.model_hash, scope_.model_hash);
  EXPECT_EQ(scopes[0].scope.map_id, scope_.map_id);
  EXPECT_EQ(scopes[0].scope.numerics_class, scope_.numerics_class);
  EXPECT_EQ(scopes[0].scope.base, scope_.base);
  EXPECT_EQ(protocol_hash(scopes[0].protocol, scopes[0].mode), scope_.protocol_hash);
  const auto all = must(store_.measurements(scopes[0]));
  ASSERT_EQ(all.size(), 2u);
  for (const Measurement& m : two) {
    Measurement expected = m;  // tokens and timings are not read
    expected.tokens.clear();
    expected.timings = {};
    EXPECT_EQ(to_json(all.at(m.example_hash)), to_json(expected));
  }
  EXPECT_TRUE(must(store_.measured_scopes(std::string(64, '0'))).empty());
}

TEST_F(MeasurementsTest, IdempotentByKey) {
  const std::vector<Measurement> two = {sample_measurement(1), sample_measurement(2)};
  EXPECT_EQ(must(put(two)), 2);
  Measurement slower = sample_measurement(1);
  slower.timings = {99, 99};  // another run of the same
  slower.example = 31;        // the same example at another place of the split
  EXPECT_EQ(must(put({slower, sample_measurement(3)})), 1);
  EXPECT_EQ(get(scope_, two).at(slower.example_hash).timings.prefill_ms, 12.5);
  EXPECT_EQ(must(store_.info()).rows.at("measurements"), 3);
  EXPECT_TRUE(must(store_.events(0, 10)).empty());
}

TEST_F(MeasurementsTest, AnotherOutcomeIsKeptOutAndTold) {
  const Measurement first = sample_measurement(1);
  must(put({first}));
  Measurement other = first;
  other.text = "something else";
  other.exact_match = 0;
  EXPECT_EQ(must(put({other})), 0);
  EXPECT_EQ(get(scope_, {first}).at(first.example_hash).text, first.text);
  const auto events = must(store_.events(0, 10));
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].kind, "measurement_conflict");
  EXPECT_EQ(events[0].utc_ms, 7000);
  const Json detail = Json::parse(events[0].detail);
  EXPECT_EQ(detail["differs"], Json({"text", "exact_match"}));
  EXPECT_EQ(detail["map"], scope_.map_id);
  EXPECT_EQ(detail["example_hash"], first.example_hash);
  EXPECT_EQ(detail["worker"], "w1");
}

TEST_F(MeasurementsTest, EveryPartOfTheKeyCounts) {
  const Measurement m = sample_measurement(1);
  must(put({m}));
  std::vector<MeasurementScope> others(5, scope_);
  others[0].model_hash = sha256_hex("other model");
  must(store_.put_model(others[0].model_hash, "/m2", test::sample_geometry()));
  others[1].map_id = map_id(test::numbered_map(2));
  must(store_.put_map(test::numbered_map(2)));
  others[2].protocol_hash = protocol_hash(test::sample_protocol(), RunMode::forced);
  must(store_.put_task(test::sample_protocol(), RunMode::forced, 64));
  others[3].numerics_class = "cpu-avx512";
  others[4].base = BaseType::fp32;
  for (const MeasurementScope& other : others) {
    EXPECT_TRUE(get(other, {m}).empty());
    EXPECT_EQ(must(store_.put_measurements(other, {m}, "w1", true, 1)), 1);
    EXPECT_EQ(get(other, {m}).size(), 1u);
  }
  EXPECT_EQ(must(store_.info()).rows.at("measurements"), 6);
  EXPECT_EQ(must(store_.info()).rows.at("examples"), 1);
}

TEST_F(MeasurementsTest, UnknownIdentitiesAreNamed) {
  MeasurementScope scope = scope_;
  scope.map_id = sha256_hex("no map");
  const auto map = store_.put_measurements(scope, {sample_measurement(1)}, "w1", true, 1);
  EXPECT_EQ(map.error().code, ErrorCode::not_found);
  EXPECT_THAT(map.error().message, HasSubstr(scope.map_id));
  EXPECT_TRUE(get(scope, {sample_measurement(1)}).empty());  // a question, no error
}

TEST_F(MeasurementsTest, NothingOfABadCallIsStored) {
  const double nan = std::nan("");
  const double infinity = std::numeric_limits<double>::infinity();
  std::vector<std::pair<ErrorCode, Measurement>> bad;
  const auto add = [&](ErrorCode code, auto change) {
    Measurement m = sample_measurement(2);
    change(m);
    bad.emplace_back(code, m);
  };
  add(ErrorCode::numerics, [&](Measurement& m) { m.exact_match = nan; });
  add(ErrorCode::numerics, [&](Measurement& m) { m.kl = infinity; });
  add(ErrorCode::numerics, [&](Measurement& m) { m.nll = -infinity; });
  add(ErrorCode::numerics, [&](Measurement& m) { m.timings.decode_ms = nan; });
  add(ErrorCode::bad_input, [&](Measurement& m) { m.token_agreement = 1.5; });
  add(ErrorCode::bad_input, [&](Measurement& m) { m.output_tokens = -1; });
  add(ErrorCode::bad_input, [&](Measurement& m) { m.tokens = {4, -4}; });
  add(ErrorCode::bad_input, [&](Measurement& m) { m.example_hash = "abc"; });
  add(ErrorCode::bad_input, [&](Measurement& m) { m.example_hash[5] = 'G'; });
  for (const auto& [code, m] : bad) {
    const auto result = put({sample_measurement(1), m});
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, code) << result.error().message;
  }
  EXPECT_EQ(must(store_.info()).rows.at("measurements"), 0);
  // The refusal happens before SQLite is asked: a transaction around it may go on.
  must(store_.transaction([&]() -> Status {
    (void)put({bad[0].second});
    return store_.add_event(0, "numerics", "{}", 1);
  }));
  EXPECT_EQ(must(store_.events(0, 5)).size(), 1u);
}

}  // namespace
}  // namespace kvsweep::store
