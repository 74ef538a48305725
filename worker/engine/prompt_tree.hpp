// Which prompts, or beginnings of prompts, are computed once for several jobs (design §4.6).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "worker/engine/job.hpp"

namespace kvsweep::engine {

// Tokens that several sequences begin with.
struct SharedPrompt {
  const CacheLayout* layout = nullptr;
  int64_t job = 0;  // it is the first `tokens` tokens of this job
  int64_t tokens = 0;
  int64_t parent = -1;  // the shared prompt that itself begins with; -1: none
};

struct PromptTree {
  std::vector<SharedPrompt> prompts;  // parents before their children
  std::vector<int64_t> start;         // per job: the shared prompt that it starts from; -1: none

  // All sequences, depth first, so that those which share are close: a job as its index, a shared
  // prompt p as ~p.
  std::vector<int64_t> order() const;
};

// Whether sequences of these lengths have equal keys (model::Model::lengths_agree).
using LengthsAgree = std::function<bool(int64_t, int64_t)>;

// A job starts from a beginning of its prompt in its own layout, or, where it has `originals` and
// wants no logits before its prompt's last, from the whole prompt in that layout, whose last logits
// are then its first. Beginnings are shared from
// kLeastShared tokens on. O(n log n) comparisons of prompts.
inline constexpr int64_t kLeastShared = 16;
PromptTree plan_prompts(const std::vector<Job>& jobs, const LengthsAgree& agree);

}  // namespace kvsweep::engine
