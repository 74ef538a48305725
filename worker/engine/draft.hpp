// DraftCursor: follows the text of one sequence in a draft of it, which says what comes next.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/measurement.hpp"

namespace kvsweep::engine {

// A draft is the text that another map gave for the same prompt. While the text goes the draft's
// way, the next tokens are known in advance, probably. Where they part, the text may come back,
// with a token replaced, or some more or fewer: once its newest tokens stand in the draft, the
// draft counts again from behind them. It takes two equal tokens within two places of where a
// replacement would lead, four elsewhere; the longest way back is taken that has the smallest
// shift. O(draft) per token while apart.
class DraftCursor {
 public:
  // `draft`: up to its end-of-sequence token, if it has one.
  explicit DraftCursor(std::vector<int32_t> draft) : draft_(std::move(draft)) {}

  // What comes next according to the draft, at most `most` tokens; nothing while apart. Never the
  // draft's last token: nothing was fed behind it there.
  std::span<const int32_t> next(int64_t most) const;

  // Whether the draft has an opinion on the next token.
  bool predicts() const { return together_ && at_ < size(); }
  // The token that decoding chose. True: the draft predicted it.
  bool chose(int32_t token);
  // It predicts no longer.
  void give_up() { draft_.clear(); }

  // Counted by `chose` (first_difference, realigned) and by who verifies (the others).
  DraftUse use;

 private:
  int64_t size() const { return static_cast<int64_t>(draft_.size()); }
  void find_way_back();
  bool stands_before(int64_t place, int64_t tokens) const;

  std::vector<int32_t> draft_;
  std::vector<int32_t> text_;
  int64_t at_ = 0;  // of the next token in the draft; while apart: if a token had been replaced
  bool together_ = true;
};

}  // namespace kvsweep::engine
