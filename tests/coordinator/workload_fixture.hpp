// A workload over a real database file and a task of ten examples, with the test as its workers.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "coordinator/workload.hpp"
#include "core/hash.hpp"
#include "tests/support/temp_dir.hpp"

namespace kvsweep::coordinator {

inline const ModelGeometry kGeometry{
    .family = "llama", .max_context = 4096, .layers = {2, {2, 64}}};
inline const TaskProtocol kProtocol{
    .name = "word_problems", .version = "1.0", .split = "search", .shots = 2, .max_new_tokens = 96};

class WorkloadTest : public ::testing::Test {
 protected:
  WorkloadTest() {
    EXPECT_TRUE(store_.put_model(model_.model_hash, model_.model_dir, kGeometry).ok());
  }

  static store::Store open(const std::string& path) {
    auto store =
        store::Store::open(path, {.mode = store::OpenMode::read_write, .allow_network_fs = true});
    EXPECT_TRUE(store.ok());
    return std::move(store).value();
  }

  Workload workload(int per_unit = 4, const RetryLimits& retry = {}) {
    return Workload(model_, store_, clock_, {.retry = retry, .examples_per_unit = per_unit});
  }

  // A task of ten examples, described by worker w1.
  void describe(Workload& workload) {
    workload.describe(kProtocol);
    const auto grant = workload.take("w1", live_);
    ASSERT_TRUE(grant);
    ASSERT_EQ(grant->unit.kind, wire::UnitKind::describe);
    wire::UnitResult result{.unit_id = grant->unit_id, .numerics_class = "c"};
    result.description = wire::Description{.examples = 10};
    for (int i = 0; i < 10; ++i) {
      result.description->example_hashes.push_back(sha256_hex("example" + std::to_string(i)));
    }
    accept(workload, result);
    ASSERT_NE(workload.task(kProtocol), nullptr);
  }

  EvaluationRequest request(Workload& workload, const char* pair, int64_t examples = 10) {
    return {.map = uniform_map(*make_scheme({}), 2, *pair_from(pair)),
            .task = workload.task(kProtocol),
            .mode = RunMode::generate,
            .examples = examples};
  }

  // The n-th of 49 maps, which may share its units with `most` - 1 others.
  EvaluationRequest joint(Workload& workload, int n, int64_t most, int64_t examples = 10) {
    static const std::vector<const char*> pairs = {"K2V2", "K2V4", "K4V2", "K4V4",
                                                   "K8V4", "K4V8", "K8V8"};
    EvaluationRequest request = this->request(workload, pairs[n % 7], examples);
    request.map.layers[1] = *pair_from(pairs[n / 7]);
    request.maps_per_unit = most;
    return request;
  }

  Judgement accept(Workload& workload, const wire::UnitResult& result, bool leased = true) {
    const auto verdict = workload.accept(result, {"w1", leased, live_});
    EXPECT_TRUE(verdict.ok());
    return verdict.ok() ? verdict->judgement : Judgement::refused;
  }

  static wire::UnitResult run(const wire::Unit& unit) {
    wire::UnitResult result{.unit_id = unit.unit_id,
                            .model_hash = unit.model_hash,
                            .protocol_hash = protocol_hash(unit.protocol, unit.mode),
                            .base = unit.base,
                            .numerics_class = "c",
                            .wall_ms = 100};
    for (const PrecisionMap& map : unit.maps) {
      wire::MapMeasurements measured{.map_id = map_id(map)};
      for (int64_t example : unit.examples) {
        measured.measurements.push_back(
            {.example = example,
             .example_hash = sha256_hex("example" + std::to_string(example)),
             .answer = "x",
             .exact_match = example % 2});
      }
      result.maps.push_back(std::move(measured));
    }
    return result;
  }

  test::TempDir dir_;
  store::Store store_ = open(dir_.file("trials.db"));
  ManualClock clock_{1000};
  WorkerIds live_ = {"w1", "w2"};
  ModelContext model_{.model_dir = "/m", .model_hash = std::string(64, 'a'), .numerics_class = "c"};
};

}  // namespace kvsweep::coordinator
