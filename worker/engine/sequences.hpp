// Sequences: what a batch runner runs: jobs, and the prompts that several of them start from. It
// decides when each may start, so that the caches never exceed the pool's budget.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/result.hpp"
#include "worker/cache/kv_cache.hpp"
#include "worker/engine/job.hpp"
#include "worker/engine/prompt_tree.hpp"

namespace kvsweep::engine {

// A job or a shared prompt. A shared prompt keeps its cache until all that start from it have
// ended.
struct Sequence {
  bool shared = false;
  int64_t job = 0;  // for a shared prompt the job that gives its tokens
  const CacheLayout* layout = nullptr;
  int64_t parent = -1;            // index of a sequence; -1: none
  std::vector<int64_t> children;  // of a shared prompt
  std::optional<cache::KvCache> cache;
  int64_t fed = 0;  // tokens
  JobStats stats;

 private:
  friend class Sequences;
  int64_t end = 0;         // tokens of a shared prompt
  int64_t bytes = 0;       // of its cache beyond the pages it shares with its parent
  int64_t slot_bytes = 0;  // set aside so that one child can always run
  bool slot_taken = false;
  bool in_slot = false;  // runs on what its parent has set aside
  bool ready = false;    // children may start
  bool logits = false;   // a job starts with the logits of its last token
  int64_t open = 0;      // children that have not ended
};

// Memory. Each sequence reserves what its cache may take in the end, and a shared prompt also the
// most that one of its children may take. A child runs on that, or, while there is room, on a
// reservation of its own. So whatever was started can be finished, and nothing is ever evicted.
class Sequences {
 public:
  // Everything passed outlives this. Prompts that would not fit the pool together with one of
  // those who start from them are not shared.
  Sequences(const std::vector<Job>& jobs, bool share, const LengthsAgree& agree, cache::Pool& pool);

  // Starts what may start, in order, until `most` run. oom names a job that cannot fit alone.
  Status start(int most);
  const std::vector<int64_t>& running() const { return running_; }
  Sequence& at(int64_t index) { return sequences_[static_cast<size_t>(index)]; }
  const Sequence& at(int64_t index) const { return sequences_[static_cast<size_t>(index)]; }
  bool done() const { return running_.empty() && waiting_.empty(); }

  // Tokens that are known but not fed.
  int64_t pending(const Sequence& sequence) const;
  bool wants_logits(const Sequence& sequence, int64_t position) const;
  // A shared prompt that is fed: its children may start. It runs no longer.
  void prompt_ready(int64_t index);
  // A job that has ended; its cache goes.
  void end(int64_t index);

 private:
  void build(const PromptTree& tree);
  void unshare_what_is_too_large(PromptTree& tree) const;
  int64_t need(const Sequence& sequence) const;
  bool reserve(Sequence& sequence);
  Status open_cache(Sequence& sequence);
  void release(int64_t index);

  const std::vector<Job>& jobs_;
  cache::Pool& pool_;
  std::vector<Sequence> sequences_;
  std::vector<int64_t> place_;    // of shared prompts among them
  std::vector<int64_t> waiting_;  // in order
  std::vector<int64_t> running_;
  int64_t reserved_ = 0;  // bytes
};

}  // namespace kvsweep::engine
