// Small valid inputs of the store's tests.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "core/hash.hpp"
#include "core/study_spec.hpp"
#include "store/store.hpp"

namespace kvsweep::test {

// The value of a Result that must be ok.
template <typename T>
T must(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.error().message);
  return std::move(result).value();
}
inline void must(const Status& status) {
  if (!status.ok()) throw std::runtime_error(status.error().message);
}

inline ModelGeometry sample_geometry(int layers = 4, int kv_heads = 2, int head_dim = 64) {
  ModelGeometry geometry;
  geometry.family = "llama";
  geometry.max_context = 8192;
  geometry.layers.assign(static_cast<size_t>(layers), {kv_heads, head_dim});
  return geometry;
}

inline StudySpec sample_spec(const std::string& name = "alpha", const std::string& extra = "") {
  const std::string yaml = "name: " + name +
                           "\nmodel: /models/sample\n"
                           "objective_task: {name: word_problems, metric: token_agreement}\n" +
                           extra;
  return must(parse_spec(yaml, "sample.yaml")).studies.at(0);
}

inline std::string sample_model_hash() {
  return sha256_hex("sample model");
}

inline Scheme sample_scheme(const std::string& name = "per-token") {
  SchemeOptions options;
  options.name = name;
  return must(make_scheme(options));
}

inline store::Store open_writer(const std::string& path) {
  return must(store::Store::open(path, {store::OpenMode::read_write}));
}
inline store::Store open_reader(const std::string& path) {
  return must(store::Store::open(path, {store::OpenMode::read_only}));
}

inline store::StudyRow make_study(store::Store& store, const std::string& name = "alpha",
                                  const std::string& sweep = "") {
  return must(store.create_or_resume_study(sweep, sample_spec(name), sample_model_hash(),
                                           sample_geometry(), 1000));
}

// The n-th of 16^4 maps of four layers: two base-4 digits per layer.
inline PrecisionMap numbered_map(int64_t n) {
  PrecisionMap map{sample_scheme(), {}};
  for (int layer = 0; layer < 4; ++layer) {
    map.layers.push_back({codecs()[n % 4].codec, codecs()[n / 4 % 4].codec});
    n /= 16;
  }
  return map;
}

// A complete trial whose map is recorded.
inline store::TrialRow make_trial(store::Store& store, int64_t study_id, int64_t number,
                                  double bytes, double loss) {
  const PrecisionMap map = numbered_map(number + 1);
  must(store.put_map(map));
  store::TrialRow trial;
  trial.study_id = study_id;
  trial.number = number;
  trial.genome = {static_cast<int>(number % 5), 2};
  trial.origin = "random";
  trial.map_id = map_id(map);
  trial.state = store::TrialState::complete;
  trial.tell_order = number;
  trial.bytes = bytes;
  trial.effective_bits = bytes / 100;
  trial.metric = 1 - loss;
  trial.loss = loss;
  trial.examples = 10;
  trial.asked_utc_ms = 1000;
  trial.finished_utc_ms = 2500;
  return trial;
}

inline TaskProtocol sample_protocol() {
  return {"word_problems", "1.0", "search", 2, 0, 96};
}

inline Measurement sample_measurement(int64_t example) {
  Measurement m;
  m.example = example;
  m.example_hash = sha256_hex("example " + std::to_string(example));
  m.text = "The answer is " + std::to_string(example);
  m.tokens = {1, 127, 128, 49151, static_cast<int32_t>(example)};
  m.answer = std::to_string(example);
  m.exact_match = 1;
  m.token_agreement = 0.75;
  m.prompt_tokens = 100;
  m.output_tokens = 5;
  m.cache_bytes = 4096;
  m.timings = {12.5, 30};
  return m;
}

// Records model, task and map; what measurements of it have in common.
inline store::MeasurementScope sample_scope(store::Store& store, int64_t map = 1) {
  must(store.put_model(sample_model_hash(), "/models/sample", sample_geometry()));
  must(store.put_task(sample_protocol(), RunMode::generate, 64));
  must(store.put_map(numbered_map(map)));
  return {sample_model_hash(), map_id(numbered_map(map)),
          protocol_hash(sample_protocol(), RunMode::generate), "cpu-avx2", BaseType::fp16};
}

}  // namespace kvsweep::test
