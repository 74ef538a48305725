// GSM8K (Cobbe et al., arXiv 2110.14168) as in lm-evaluation-harness 0.4, task gsm8k version 3.0:
// prompts, stops, filters and shots equal to it, in all its forms. Data: DATA_DIR/gsm8k/train.jsonl
// and test.jsonl, as published.
//
// Shots. lm-eval keeps one random.Random(1234) per task and calls sample(train, shots) once for
// each evaluated document, in order; so example i has the i-th sample, however many are evaluated.
//
// Split train, for tuning without touching test rows (lm-eval has no such task): the same generator
// and order; a sample that holds the example itself is drawn again, whole.
#include <algorithm>

#include "worker/task/math_task.hpp"
#include "worker/task/problem_file.hpp"
#include "worker/task/python_random.hpp"

namespace kvsweep::task {
namespace {

constexpr uint32_t kFewShotSeed = 1234;

Status check_shots(const TaskProtocol& protocol, size_t pool) {
  const size_t available = pool - (protocol.split == "train" ? 1 : 0);
  if (static_cast<size_t>(protocol.shots) <= available) return {};
  return bad_input("gsm8k: shots is " + std::to_string(protocol.shots) + ", but only " +
                   std::to_string(available) + " train problems can serve as shots");
}

std::vector<std::vector<uint32_t>> draw_shots(size_t examples, size_t pool, int shots,
                                              bool from_pool) {
  PythonRandom random(kFewShotSeed);
  std::vector<std::vector<uint32_t>> drawn;
  drawn.reserve(examples);
  while (drawn.size() < examples) {
    std::vector<uint32_t> rows =
        random.sample(static_cast<uint32_t>(pool), static_cast<uint32_t>(shots));
    const auto self = static_cast<uint32_t>(drawn.size());
    const bool hits = from_pool && std::find(rows.begin(), rows.end(), self) != rows.end();
    if (!hits) drawn.push_back(std::move(rows));
  }
  return drawn;
}

}  // namespace

Result<std::unique_ptr<Task>> open_gsm8k(const TaskProtocol& protocol, const TaskInputs& inputs) {
  const std::string& data_dir = inputs.data_dir;
  KVSWEEP_ASSIGN(const auto problems, read_published(data_dir, protocol.split));
  const bool from_pool = protocol.split == "train";
  std::shared_ptr<const Problems> pool = problems;
  std::vector<std::vector<uint32_t>> shots;
  if (protocol.shots > 0) {
    if (!from_pool) {
      KVSWEEP_ASSIGN(pool, read_published(data_dir, "train"));
    }
    KVSWEEP_TRY(check_shots(protocol, pool->size()));
    shots = draw_shots(problems->size(), pool->size(), protocol.shots, from_pool);
  }
  return std::unique_ptr<Task>(
      std::make_unique<MathTask>(MathTaskParts{protocol, problems, pool, std::move(shots)}));
}

}  // namespace kvsweep::task
