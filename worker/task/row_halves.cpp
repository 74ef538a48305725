#include "worker/task/row_halves.hpp"

#include <algorithm>
#include <utility>

#include "worker/task/split_home.hpp"

namespace kvsweep::task {
namespace {

class HalfTask final : public Task {
 public:
  HalfTask(std::unique_ptr<Task> whole, std::vector<int64_t> rows, TaskProtocol protocol)
      : whole_(std::move(whole)), rows_(std::move(rows)), protocol_(std::move(protocol)) {}

  int64_t size() const override { return static_cast<int64_t>(rows_.size()); }

  Result<Example> example(int64_t index) const override {
    if (index < 0 || index >= size()) return no_example(protocol_, index, size());
    return whole_->example(rows_[static_cast<size_t>(index)]);
  }

  Score score(const Example& example, const std::string& output) const override {
    return whole_->score(example, output);
  }

 private:
  std::unique_ptr<Task> whole_;
  std::vector<int64_t> rows_;
  TaskProtocol protocol_;
};

}  // namespace

Result<std::unique_ptr<Task>> half_of(std::unique_ptr<Task> whole, const TaskProtocol& protocol) {
  const std::vector<std::string>& halves = row_halves();
  const auto home =
      static_cast<size_t>(std::find(halves.begin(), halves.end(), protocol.rows) - halves.begin());
  std::vector<int64_t> rows;
  for (int64_t index = 0; index < whole->size(); ++index) {
    KVSWEEP_ASSIGN(const Example example, whole->example(index));
    if (home_of(example.hash, halves.size()) == home) rows.push_back(index);
  }
  if (rows.empty()) {
    return bad_input("task " + protocol.name + ": none of its " + std::to_string(whole->size()) +
                     " examples belongs to rows: " + protocol.rows + "; use all rows");
  }
  return std::unique_ptr<Task>(
      std::make_unique<HalfTask>(std::move(whole), std::move(rows), protocol));
}

}  // namespace kvsweep::task
