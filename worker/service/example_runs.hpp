// From the examples of a unit to the engine's requests, and from what they gave to measurements.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/wire/messages.hpp"
#include "worker/engine/engine.hpp"
#include "worker/task/render.hpp"
#include "worker/task/task.hpp"

namespace kvsweep::service {

// The requests of all examples, the same for every map.
class ExampleRuns {
 public:
  // Renders the examples `unit.examples` of `task`. `task` and what `model` points at outlive the
  // object. Errors (bad_input): those of render; a unit that is to be run in a mode its task does
  // not have, or teacher-forced without the baseline's output.
  static Result<ExampleRuns> make(const wire::Unit& unit, const task::Task& task,
                                  const task::ModelText& model);

  const std::vector<engine::SequenceRequest>& requests() const { return requests_; }

  // Whether generation of request `index` ends after `tokens`: a stop string, or a newline token
  // where the example says so. Of mode generate.
  bool ends(int64_t index, const std::vector<int32_t>& tokens) const;

  // `outputs` of one map, in the order of requests(); one measurement an example, in the order of
  // the unit.
  Result<std::vector<Measurement>> measurements(
      const std::vector<engine::SequenceOutput>& outputs) const;

 private:
  struct Item {
    int64_t index = 0;  // in the split
    task::Example example;
    size_t first = 0;  // of its requests
    size_t count = 0;
  };

  ExampleRuns(RunMode mode, const task::Task& task, const task::ModelText& model)
      : mode_(mode), task_(&task), model_(model) {}
  Status add(const wire::Unit& unit, int64_t index);
  Status set_up_answer(const wire::Unit& unit, const Item& item,
                       engine::SequenceRequest& request) const;
  Result<Measurement> measurement(const Item& item, const engine::SequenceOutput* outputs) const;
  Status set_generated(const Item& item, const engine::SequenceOutput& output,
                       Measurement& m) const;
  void set_likelihoods(const Item& item, const engine::SequenceOutput* outputs,
                       Measurement& m) const;

  RunMode mode_;
  const task::Task* task_;
  task::ModelText model_;
  int32_t newline_ = -1;  // token, where an example needs it
  std::vector<Item> items_;
  std::vector<engine::SequenceRequest> requests_;
};

}  // namespace kvsweep::service
