// Job: one sequence to be fed through the model, and who receives what comes out.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/catalog/page_layout.hpp"
#include "core/measurement.hpp"
#include "core/result.hpp"

namespace kvsweep::engine {

struct Job {
  const CacheLayout* layout = nullptr;  // of its cache; outlives the run
  // Where the prompt's queries see originals: the layout of these (plain_layout), or `layout`
  // itself if that is one. Jobs that agree in it share the prefill of equal prompts, whatever their
  // maps. nullptr: the prompt is seen coded.
  const CacheLayout* originals = nullptr;
  std::vector<int32_t> tokens;  // to feed; the handler may extend them (JobHandler::advance)
  int64_t prompt_tokens = 0;    // the first tokens, which are the prompt for the scheme's view
  int64_t first_logit = 0;      // position from which logits are wanted
  int64_t most_tokens = 0;      // tokens it may be fed in the end: what its cache must hold
  int64_t length = 0;           // tokens as the request allows, for model::Batch; 0: most_tokens
  std::vector<int32_t> draft;   // what may follow the prompt (draft.hpp); of the model's vocabulary

  int64_t rope_length() const { return length > 0 ? length : most_tokens; }
};

struct JobStats {
  int64_t cache_bytes = 0;  // of its cache at its end, shared pages included
  // Its share, by rows, of the wall time of the steps it took part in. The time of a shared prompt
  // is shared by those who start from it.
  double prefill_ms = 0;
  double decode_ms = 0;
  std::optional<DraftUse> draft;  // of a job that has one
};

class JobHandler {
 public:
  virtual ~JobHandler() = default;
  // One row of logits [vocab]. Rows of one step arrive from several threads; a position's may come
  // again, in a later step, where it followed a draft that `advance` did not confirm. An error
  // there makes the step be made again without drafts.
  virtual Status row(int64_t job, int64_t position, const float* logits) = 0;
  // The row of the newest token is there: the next token, or nothing when the job is finished.
  // Called in the order of the positions, once for each.
  virtual std::optional<int32_t> advance(int64_t job) = 0;
  virtual void finished(int64_t job, const JobStats& stats) = 0;
};

}  // namespace kvsweep::engine
