// Identities, studies, trials, workers, units, events and the views people read.
#include "store/store.hpp"

#include <SQLiteCpp/SQLiteCpp.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/store/samples.hpp"
#include "tests/support/temp_dir.hpp"

namespace kvsweep::store {
namespace {

using test::must;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class StoreTest : public ::testing::Test {
 protected:
  // One value of a query, as a person at a shell would ask it.
  std::string shell(const std::string& sql) {
    SQLite::Database database(path_, SQLite::OPEN_READONLY);
    SQLite::Statement statement(database, sql);
    return statement.executeStep() ? statement.getColumn(0).getString() : "(no row)";
  }

  Result<StudyRow> resume(const StudySpec& spec, const std::string& hash = "") {
    return store_.create_or_resume_study("nightly", spec,
                                         hash.empty() ? test::sample_model_hash() : hash,
                                         test::sample_geometry(), 5000);
  }

  test::TempDir dir_;
  std::string path_ = dir_.file("a.db");
  Store store_ = test::open_writer(path_);
};

TEST_F(StoreTest, MapsComeBackEqual) {
  for (const char* name : {"per-token", "kivi"}) {
    for (int64_t n = 1; n < 40; n += 3) {
      PrecisionMap map = test::numbered_map(n);
      map.scheme = test::sample_scheme(name);
      must(store_.put_map(map));
      must(store_.put_map(map));
      EXPECT_EQ(must(store_.map_by_id(map_id(map))), map);
      EXPECT_EQ(must(store_.map_by_id(map_id(map).substr(0, 20))), map);
    }
  }
  EXPECT_EQ(must(store_.info()).rows.at("maps"), 26);
  EXPECT_EQ(must(store_.info()).rows.at("schemes"), 2);
}

TEST_F(StoreTest, MapsWithPairsPerHeadComeBackEqual) {
  PrecisionMap map = test::numbered_map(7);
  map.layers[2] =
      LayerPairs::of_heads({{Codec::int8, Codec::int4}, {Codec::base, Codec::fp8_e4m3}});
  must(store_.put_map(map));
  const PrecisionMap back = must(store_.map_by_id(map_id(map)));
  EXPECT_EQ(back, map);
  EXPECT_EQ(map_id(back), map_id(map));
  EXPECT_EQ(shell("SELECT json_extract(layers, '$[2][0]') || ' ' || json_extract(layers, "
                  "'$[2][1]') || ' ' || json_type(layers, '$[1]') FROM maps"),
            "int8/int4 base/fp8_e4m3 text");
  // One row per head of that layer, one per layer elsewhere.
  EXPECT_EQ(shell("SELECT group_concat(layer || ifnull('.' || head, '') || ':' || k_codec || '/' "
                  "|| v_codec, ' ') FROM (SELECT * FROM v_layer_bits ORDER BY layer, head)"),
            "0:int3/int8 1:base/base 2.0:int8/int4 2.1:base/fp8_e4m3 3:base/base");
}

TEST_F(StoreTest, MapPrefixes) {
  EXPECT_EQ(store_.map_by_id("abc").error().code, ErrorCode::not_found);
  EXPECT_EQ(store_.map_by_id("").error().code, ErrorCode::bad_input);
  // 40 ids over 16 first digits: two share one (pigeonhole).
  std::map<char, std::string> seen;
  char twice = 0;
  for (int64_t n = 0; n < 40; ++n) {
    must(store_.put_map(test::numbered_map(n)));
    const std::string id = map_id(test::numbered_map(n));
    if (!seen.emplace(id[0], id).second) twice = id[0];
  }
  const auto ambiguous = store_.map_by_id(std::string(1, twice));
  ASSERT_FALSE(ambiguous.ok());
  EXPECT_THAT(ambiguous.error().message, HasSubstr("more digits"));
}

TEST_F(StoreTest, AllBaselineMapsAreOne) {
  must(store_.put_map(baseline_map(test::sample_scheme("kivi"), 4)));
  must(store_.put_map(baseline_map(test::sample_scheme("per-token"), 4)));
  EXPECT_EQ(must(store_.info()).rows.at("maps"), 1);
}

TEST_F(StoreTest, StudyComesBackEqual) {
  const StudySpec spec = test::sample_spec(
      "alpha",
      "scheme: {name: kivi, group: 64, residual: 128}\nlimits: {max_bits: 5.0, max_loss: 0.01}\n"
      "search: {trials: 40, seed: 7, candidates: [K8V4, K4V2]}\n");
  StudyRow made = must(resume(spec));
  EXPECT_EQ(made.status, StudyStatus::running);
  EXPECT_EQ(made.created_utc_ms, 5000);
  made.numerics_class = "cpu-avx512";
  made.status = StudyStatus::stopped;
  made.status_reason = "drained";
  made.reference_bytes = 12345.5;
  made.reference_loss = 0.5;
  must(store_.update_study(made));
  const StudyRow read = must(store_.study("nightly/alpha"));
  EXPECT_EQ(to_json(read.spec), to_json(spec));
  EXPECT_EQ(read.geometry, test::sample_geometry());
  EXPECT_EQ(read.model_hash, test::sample_model_hash());
  EXPECT_EQ(read.numerics_class, "cpu-avx512");
  EXPECT_EQ(read.status, StudyStatus::stopped);
  EXPECT_EQ(read.status_reason, "drained");
  EXPECT_EQ(read.reference_bytes, 12345.5);
  EXPECT_EQ(read.reference_loss, 0.5);
  made.id = 99;
  EXPECT_EQ(store_.update_study(made).error().code, ErrorCode::not_found);
}

TEST_F(StoreTest, ResumeRunsAStoppedStudyAndKeepsAFinishedOne) {
  const StudySpec spec = test::sample_spec();
  StudyRow study = must(resume(spec));
  study.status = StudyStatus::stopped;
  study.status_reason = "drained";
  must(store_.update_study(study));
  const StudyRow again = must(resume(spec));
  EXPECT_EQ(again.id, study.id);
  EXPECT_EQ(again.status, StudyStatus::running);
  EXPECT_EQ(again.status_reason, "");
  EXPECT_EQ(again.created_utc_ms, study.created_utc_ms);

  study.status = StudyStatus::finished;
  study.status_reason = "budget spent";
  study.finished_utc_ms = 9000;
  must(store_.update_study(study));
  const StudyRow finished = must(resume(spec));
  EXPECT_EQ(finished.status, StudyStatus::finished);
  EXPECT_EQ(finished.status_reason, "budget spent");
  EXPECT_EQ(finished.finished_utc_ms, 9000);
}

TEST_F(StoreTest, MoreTrialsExtendAFinishedStudy) {
  StudyRow study = must(resume(test::sample_spec("alpha", "search: {trials: 40}\n")));
  study.status = StudyStatus::finished;
  study.finished_utc_ms = 9000;
  must(store_.update_study(study));
  const StudyRow more = must(resume(test::sample_spec("alpha", "search: {trials: 60}\n")));
  EXPECT_EQ(more.id, study.id);
  EXPECT_EQ(more.status, StudyStatus::running);
  EXPECT_EQ(more.finished_utc_ms, 0);
  EXPECT_EQ(more.spec.search.trials, 60);
  const auto events = must(store_.events(study.id, 10));
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].kind, "study_extended");
  const auto fewer = resume(test::sample_spec("alpha", "search: {trials: 50}\n"));
  ASSERT_FALSE(fewer.ok());
  EXPECT_EQ(fewer.error().code, ErrorCode::conflict);
  EXPECT_THAT(fewer.error().message, HasSubstr("search.trials was 60 and is now 50"));
}

TEST_F(StoreTest, AFailedStudyThatMeasuredNothingLeavesItsName) {
  StudyRow study = must(resume(test::sample_spec("alpha", "search: {seed: 7}\n")));
  study.status = StudyStatus::failed;
  study.status_reason = "bad_input: no such data set";
  must(store_.update_study(study));
  const StudyRow again = must(resume(test::sample_spec("alpha", "search: {seed: 8}\n")));
  EXPECT_EQ(again.id, study.id);
  EXPECT_EQ(again.status, StudyStatus::running);
  EXPECT_EQ(again.status_reason, "");
  EXPECT_EQ(again.spec.search.seed, 8u);
  const auto events = must(store_.events(study.id, 10));
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].kind, "study_redefined");
}

TEST_F(StoreTest, AnotherDefinitionIsAConflictThatSaysWhat) {
  const StudySpec spec = test::sample_spec("alpha", "search: {seed: 7}\n");
  must(resume(spec));
  const auto seed = resume(test::sample_spec("alpha", "search: {seed: 8, trials: 500}\n"));
  ASSERT_FALSE(seed.ok());
  EXPECT_EQ(seed.error().code, ErrorCode::conflict);
  EXPECT_THAT(seed.error().message,
              AllOf(HasSubstr("nightly/alpha"), HasSubstr("search.seed was 7 and is now 8"),
                    Not(HasSubstr("trials was"))));
  const auto limit =
      resume(test::sample_spec("alpha", "search: {seed: 7}\nlimits: {max_bits: 5}\n"));
  ASSERT_FALSE(limit.ok());
  EXPECT_THAT(limit.error().message, HasSubstr("limits.max_bits was unset and is now 5"));
  const auto model = resume(spec, sha256_hex("other weights"));
  ASSERT_FALSE(model.ok());
  EXPECT_THAT(model.error().message, HasSubstr("model's hash"));
  // Nothing of the refused attempts stays behind.
  EXPECT_EQ(to_json(must(store_.study("alpha")).spec), to_json(spec));
  EXPECT_EQ(must(store_.info()).rows.at("models"), 1);
  StudySpec moved = spec;
  moved.model = "/elsewhere/sample";
  EXPECT_EQ(must(resume(moved)).spec.model, "/elsewhere/sample");
}

TEST_F(StoreTest, StudiesAreFoundByNameAndId) {
  const StudyRow a = test::make_study(store_, "llama", "night");
  const StudyRow b = test::make_study(store_, "llama", "day");
  const StudyRow c = test::make_study(store_, "qwen", "");
  EXPECT_EQ(must(store_.study("night/llama")).id, a.id);
  EXPECT_EQ(must(store_.study("day/llama")).id, b.id);
  EXPECT_EQ(must(store_.study("qwen")).id, c.id);
  EXPECT_EQ(must(store_.study(std::to_string(b.id))).id, b.id);
  const auto both = store_.study("llama");
  ASSERT_FALSE(both.ok());
  EXPECT_EQ(both.error().code, ErrorCode::bad_input);
  EXPECT_THAT(both.error().message, AllOf(HasSubstr("night/llama"), HasSubstr("day/llama")));
  const auto near = store_.study("qwem");
  ASSERT_FALSE(near.ok());
  EXPECT_EQ(near.error().code, ErrorCode::not_found);
  EXPECT_THAT(near.error().message, HasSubstr("did you mean qwen?"));
  EXPECT_EQ(must(store_.studies()).size(), 3u);
}

TEST_F(StoreTest, GroupsAreReplaced) {
  const StudyRow study = test::make_study(store_);
  const std::vector<Pair> pairs = {{Codec::int4, Codec::int2}, {Codec::int8, Codec::base}};
  must(store_.put_groups(study.id, {{0, 1}, {2, 3}}, {pairs, pairs}));
  must(store_.put_groups(study.id, {{0, 1, 2, 3}}, {pairs}));
  EXPECT_EQ(shell("SELECT group_concat(number || layers || candidates) FROM groups"),
            R"(0[0,1,2,3]["int4/int2","int8/base"])");
  EXPECT_FALSE(store_.put_groups(study.id, {{0}}, {}).ok());
}

TEST_F(StoreTest, TrialsComeBackEqualAndAreUpdated) {
  const StudyRow study = test::make_study(store_);
  TrialRow trial = test::make_trial(store_, study.id, 3, 640.5, 0.125);
  trial.state = TrialState::asked;
  trial.tell_order = -1;
  trial.tells_before = 2;
  trial.metric.reset();
  trial.loss.reset();
  trial.parents = {0, 2};
  must(store_.put_trial(trial));
  trial.state = TrialState::failed;
  trial.failure = "oom: no memory \"left\"";
  trial.tell_order = 1;
  trial.reused = true;
  must(store_.put_trial(trial));
  TrialRow baseline = test::make_trial(store_, study.id, 7, 900, 0);
  baseline.number = -1;
  baseline.genome.clear();
  baseline.tell_order = -1;
  must(store_.put_trial(baseline));

  const auto rows = must(store_.trials(study.id));
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].number, -1);
  EXPECT_TRUE(rows[0].genome.empty());
  EXPECT_EQ(rows[0].loss, 0.0);
  const TrialRow& read = rows[1];
  EXPECT_EQ(read.genome, trial.genome);
  EXPECT_EQ(read.parents, trial.parents);
  EXPECT_EQ(read.origin, "random");
  EXPECT_EQ(read.map_id, trial.map_id);
  EXPECT_EQ(read.state, TrialState::failed);
  EXPECT_EQ(read.failure, trial.failure);
  EXPECT_EQ(read.tell_order, 1);
  EXPECT_EQ(read.tells_before, 2);
  EXPECT_EQ(read.bytes, 640.5);
  EXPECT_EQ(read.effective_bits, trial.effective_bits);
  EXPECT_FALSE(read.metric || read.loss);
  EXPECT_TRUE(read.reused);
  EXPECT_EQ(read.asked_utc_ms, 1000);
  EXPECT_EQ(read.finished_utc_ms, 2500);
}

TEST_F(StoreTest, TrialsAreRefusedWithAReason) {
  const StudyRow study = test::make_study(store_);
  must(store_.put_trial(test::make_trial(store_, study.id, 0, 10, 0.5)));
  TrialRow same = test::make_trial(store_, study.id, 1, 10, 0.5);
  same.map_id = map_id(test::numbered_map(1));  // that of trial 0
  const Status twice = store_.put_trial(same);
  EXPECT_EQ(twice.error().code, ErrorCode::conflict);
  EXPECT_THAT(twice.error().message, HasSubstr("same map as trial 0"));

  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    TrialRow trial = test::make_trial(store_, study.id, 2, 10, 0.5);
    trial.loss = bad;
    EXPECT_EQ(store_.put_trial(trial).error().code, ErrorCode::numerics);
    trial.loss = 0.5;
    trial.bytes = bad;
    EXPECT_EQ(store_.put_trial(trial).error().code, ErrorCode::numerics);
  }
  TrialRow half = test::make_trial(store_, study.id, 3, 10, 0.5);
  half.loss.reset();
  EXPECT_FALSE(store_.put_trial(half).ok());
  TrialRow unknown = test::make_trial(store_, study.id, 4, 10, 0.5);
  unknown.map_id = sha256_hex("no map");
  EXPECT_EQ(store_.put_trial(unknown).error().code, ErrorCode::not_found);
  TrialRow orphan = test::make_trial(store_, 77, 5, 10, 0.5);  // no such study: foreign key
  EXPECT_FALSE(store_.put_trial(orphan).ok());
  EXPECT_EQ(must(store_.trials(study.id)).size(), 1u);
}

TEST_F(StoreTest, TransactionsCommitOrLeaveNothing) {
  const StudyRow study = test::make_study(store_);
  const auto put = [&](int n) {
    return store_.put_trial(test::make_trial(store_, study.id, n, 10, 0.5));
  };
  const Status failed = store_.transaction([&]() -> Status {
    KVSWEEP_TRY(put(0));
    return bad_input("changed my mind");
  });
  EXPECT_EQ(failed.error().message, "changed my mind");
  EXPECT_TRUE(must(store_.trials(study.id)).empty());
  EXPECT_THROW((void)store_.transaction([&]() -> Status {
    must(put(0));
    throw std::runtime_error("broken invariant");
  }),
               std::runtime_error);
  EXPECT_TRUE(must(store_.trials(study.id)).empty());
  // SQLite refuses a statement and the body goes on: the whole must not be committed.
  const Status ignored = store_.transaction([&]() -> Status {
    KVSWEEP_TRY(put(0));
    TrialRow orphan = test::make_trial(store_, 77, 1, 10, 0.5);
    (void)store_.put_trial(orphan);
    return {};
  });
  EXPECT_FALSE(ignored.ok());
  EXPECT_TRUE(must(store_.trials(study.id)).empty());
  EXPECT_FALSE(
      store_.transaction([&] { return store_.transaction([] { return Status(); }); }).ok());
  must(store_.transaction([&]() -> Status {
    KVSWEEP_TRY(put(0));
    return put(1);
  }));
  EXPECT_EQ(must(store_.trials(study.id)).size(), 2u);
}

TEST_F(StoreTest, WorkersKeepTheirFirstSighting) {
  WorkerRow worker{"w1", "host", "cpu", "Xeon", "cpu-avx2", "0.1.0", 1000, 1000, 0, 0};
  must(store_.put_worker(worker));
  worker.first_seen_utc_ms = 5000;  // restarted
  worker.last_seen_utc_ms = 6000;
  worker.units_done = 4;
  worker.device_name = "Xeon 2";
  must(store_.put_worker(worker));
  const auto rows = must(store_.workers());
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].first_seen_utc_ms, 1000);
  EXPECT_EQ(rows[0].last_seen_utc_ms, 6000);
  EXPECT_EQ(rows[0].units_done, 4);
  EXPECT_EQ(rows[0].device_name, "Xeon 2");
  EXPECT_EQ(shell("SELECT first_seen FROM v_workers"), "1970-01-01T00:00:01.000Z");
}

TEST_F(StoreTest, UnitsAreUpserted) {
  const StudyRow study = test::make_study(store_);
  must(store_.put_unit("u1", study.id, "measure", "leased", 1, "w9", "", 0, 1000));
  must(store_.put_unit("u1", study.id, "measure", "done", 2, "w9", "", 321.5, 2000));
  must(store_.put_unit("u2", 0, "describe", "failed", 1, "", "oom: none left", 1, 2000));
  EXPECT_EQ(shell("SELECT state || attempts || wall_ms FROM units WHERE unit_id = 'u1'"),
            "done2321.5");
  EXPECT_EQ(must(store_.workers()).size(), 1u) << "an unknown worker gets a row";
}

TEST_F(StoreTest, EventsNewestFirst) {
  const StudyRow study = test::make_study(store_);
  for (int i = 0; i < 5; ++i) {
    must(store_.add_event(i % 2 ? study.id : 0, "kind" + std::to_string(i), "{}", 1000 + i));
  }
  const auto all = must(store_.events(0, 3));
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].kind, "kind4");
  EXPECT_EQ(all[2].kind, "kind2");
  const auto of_study = must(store_.events(study.id, 10));
  ASSERT_EQ(of_study.size(), 2u);
  EXPECT_EQ(of_study[0].kind, "kind3");
  EXPECT_FALSE(store_.add_event(0, "kind", "not json", 1).ok());
}

TEST_F(StoreTest, ViewsReadLikeText) {
  const StudyRow study = test::make_study(store_, "alpha", "nightly");
  // numbered_map(2): layer 0 has codecs[2] = int4 keys and codecs[0] = base values, the rest base.
  must(store_.put_trial(test::make_trial(store_, study.id, 1, 640, 0.25)));
  EXPECT_EQ(shell("SELECT study || ' ' || number || ' ' || state || ' ' || layers || ' ' || asked "
                  "|| ' ' || seconds FROM v_trials"),
            "nightly/alpha 1 complete K4V16, K16V16 x3 1970-01-01T00:00:01.000Z 1.5");
  EXPECT_EQ(shell("SELECT study || number || loss FROM v_front"), "nightly/alpha10.25");
  EXPECT_EQ(shell("SELECT group_concat(layer || ':' || ifnull(k_bits, '-') || '/' || "
                  "ifnull(v_bits, '-'), ' ') FROM v_layer_bits WHERE trial = 1"),
            "0:4/- 1:-/- 2:-/- 3:-/-");
}

}  // namespace
}  // namespace kvsweep::store
