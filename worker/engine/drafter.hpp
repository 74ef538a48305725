// Drafter: the drafts of all jobs of a run, and how much of each the next step verifies
// (docs/decisions/0012-draft-and-verify.md).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "worker/engine/draft.hpp"
#include "worker/engine/draft_length.hpp"
#include "worker/engine/job.hpp"

namespace kvsweep::engine {

inline constexpr int64_t kMostDraft = 63;  // tokens of one sequence and step

class Drafter {
 public:
  // `allowed`: false where rows depend on each other, so that drafts would change results. `fixed`:
  // the tokens that each verifies, instead of what pays.
  Drafter(const std::vector<Job>& jobs, bool allowed, std::optional<int64_t> fixed);

  // Of a job that decodes: how many tokens it could be fed beside the next.
  struct Question {
    int64_t job = 0;
    int64_t room = 0;
  };
  // What each verifies in the next step, of at most `room` tokens in all; empty where nothing pays.
  // Valid until `chose` or `give_up`.
  std::vector<std::span<const int32_t>> plan(const std::vector<Question>& decoding, int64_t room);

  // Decoding chose the job's next token.
  void chose(int64_t job, int32_t token);
  // Of `proposed` tokens in one step, `accepted` were chosen.
  void verified(int64_t job, int64_t proposed, int64_t accepted);
  // The job decodes without a draft from now on.
  void give_up(int64_t job);
  // A step of rows that decode took `ms`.
  void step(int64_t rows, double ms) { cost_.observe(rows, ms); }

  std::optional<DraftUse> use(int64_t job) const;

 private:
  // How often a draft had an opinion on a token, and was right.
  struct Tally {
    double tries = 0;
    double right = 0;
  };
  struct Entry {
    DraftCursor cursor;
    Tally own;
    Tally* all = nullptr;  // of all jobs of its layout
  };
  Entry* entry(int64_t job);
  static double chance(const Entry& entry);

  std::unordered_map<int64_t, Entry> entries_;  // by job
  std::unordered_map<const CacheLayout*, Tally> tallies_;
  std::optional<int64_t> fixed_;
  StepCost cost_;
};

}  // namespace kvsweep::engine
