#include "tests/support/sample_database.hpp"

#include <stdexcept>

#include "core/catalog/page_layout.hpp"

namespace kvsweep::test {
namespace {

constexpr int64_t kStart = 1796070231000;  // 2026-11-30T20:23:51Z

void require(const Status& status) {
  if (!status.ok()) throw std::runtime_error(status.error().message);
}

template <typename T>
T require(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.error().message);
  return std::move(result).value();
}

ModelGeometry geometry() {
  ModelGeometry made;
  made.family = "llama";
  made.max_context = 8192;
  made.layers.assign(4, {2, 64});
  return made;
}

StudySpec spec() {
  StudySpec made;
  made.name = "small";
  made.model = "/nowhere/model";
  made.search.trials = 6;
  made.search.groups = 2;
  made.objective_task = require(make_task({.name = "word_problems",
                                           .split = "search",
                                           .seed = {},
                                           .max_new_tokens = {},
                                           .examples = 64,
                                           .metric = "token_agreement"}));
  return made;
}

struct Sample {
  int64_t number;
  std::vector<const char*> layers;
  double loss;
};

PrecisionMap map_of(const Sample& sample) {
  PrecisionMap map{require(make_scheme({})), {}};
  for (const char* pair : sample.layers) map.layers.push_back(require(pair_from(pair)));
  return map;
}

store::TrialRow trial_of(const Sample& sample, int64_t study_id) {
  const PrecisionMap map = map_of(sample);
  const CacheLayout layout = cache_layout(map, geometry(), BaseType::fp16);
  store::TrialRow row;
  row.study_id = study_id;
  row.number = sample.number;
  row.map_id = map_id(map);
  row.bytes = static_cast<double>(layout.bytes(4096, 1));
  row.effective_bits = effective_bits(layout, geometry(), 4096);
  row.state = store::TrialState::complete;
  row.metric = 1 - sample.loss;
  row.loss = sample.loss;
  row.examples = 64;
  row.asked_utc_ms = kStart + 1000 * (sample.number + 1);
  row.finished_utc_ms = row.asked_utc_ms + 2500;
  row.origin = sample.number < 0 ? "baseline" : "uniform";
  row.tell_order = sample.number;
  if (sample.number >= 0) row.genome = {static_cast<int>(sample.number), 0};
  if (sample.number == 2) row.parents = {0, 1};
  if (sample.number == 2) row.origin = "crossover";
  return row;
}

}  // namespace

void make_sample_database(const std::string& path) {
  store::Store store = require(store::Store::open(path, {store::OpenMode::read_write, false}));
  const std::string model(64, 'a');
  require(store.put_model(model, "/nowhere/model", geometry()));
  store::StudyRow study =
      require(store.create_or_resume_study("nightly", spec(), model, geometry(), kStart));
  const std::vector<Sample> samples = {
      {-1, {"K16V16", "K16V16", "K16V16", "K16V16"}, 0.0},
      {0, {"K8V8", "K8V8", "K8V8", "K8V8"}, 0.01},
      {1, {"K4V4", "K4V4", "K4V4", "K4V4"}, 0.05},
      {2, {"K8V4", "K8V4", "K4V4", "K4V4"}, 0.02},
      {3, {"K8V4", "K8V4", "K8V4", "K8V4"}, 0.03},
      {4, {"K2V2", "K2V2", "K2V2", "K2V2"}, 0.4},
  };
  for (const Sample& sample : samples) {
    require(store.put_map(map_of(sample)));
    require(store.put_trial(trial_of(sample, study.id)));
  }
  const Sample broken{5, {"K2V4", "K2V4", "K2V4", "K2V4"}, 0};
  require(store.put_map(map_of(broken)));
  store::TrialRow failed = trial_of(broken, study.id);
  failed.state = store::TrialState::failed;
  failed.metric.reset();
  failed.loss.reset();
  failed.examples = 0;
  failed.failure = "oom: the cache budget is too small";
  require(store.put_trial(failed));
  require(store.add_event(
      study.id, "report",
      R"({"task":"word_problems","split":"report","metric":"token_agreement","examples":32,"maps":[)"
      R"({"trial":4,"map_id":"x","value":0.5,"baseline":1.0,"loss":0.5},)"
      R"({"trial":1,"map_id":"y","value":0.9375,"baseline":1.0,"loss":0.0625,)"
      R"("loss_low":0.02,"loss_high":0.2,"method":"Tango"}]})",
      kStart + 9000));
  study.status = store::StudyStatus::finished;
  study.status_reason = "budget spent";
  study.numerics_class = "cpu/test";
  study.reference_bytes = kSampleBaselineBytes;
  study.reference_loss = 1;
  study.finished_utc_ms = kStart + 10000;
  require(store.update_study(study));
}

}  // namespace kvsweep::test
