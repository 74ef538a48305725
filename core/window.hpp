// Window: when the tokens of one side of one layer turn into codes.
#pragma once

#include <cstdint>
#include <string_view>

namespace kvsweep {

// tokens        a fixed number of newest tokens stays exact (KIVI)
// window_share  a share of the tokens that were exact so far stays exact (KVmix RPC, its code)
// total_share   a share of the whole sequence stays exact (KVmix RPC, its paper)
// recode        all tokens are coded together, the coded ones a second time, whenever `block` new
//               ones have come after the prompt (KVTuner)
enum class WindowRule : uint8_t { tokens, window_share, total_share, recode };

// The query at position p (0-based, sinks not counted) sees the tokens j < coded(p) coded,
// and those from there to p, itself included, exact. `share` is in tenths, floors are of integers:
//     tokens        coded(p) = floor(max(0, p + 1 - keep) / block) * block
//     total_share   coded(p) = floor((p + 1 - floor(share (p + 1) / 10)) / block) * block
//     window_share  a recurrence: with F = p + 1 - coded(p - 1) exact tokens,
//                   coded(p) = coded(p - 1) + floor((F - floor(share F / 10)) / block) * block.
//                   It starts with the prompt as a whole: coded(p) = 0 before its last token.
//     recode        coded(p) = 0 before the prompt's last token, `prompt` at it, and after it
//                   prompt + floor((p - prompt) / block) * block: a query never sees its own step's
//                   flush.
// Worked examples: keep 1, block 32 (KIVI keys, residual 32): p = 31 -> 0, p = 32 -> 32, p = 63 ->
// 32, p = 64 -> 64. keep 33, block 1 (KIVI values): p = 32 -> 0, p = 33 -> 1. keep 0, block 1
// (per-token): p -> p + 1, even the query's own token is coded. window_share 2, block 32, a prompt
// of 1000: p = 999 -> 800, p = 1000 -> 960 (201 exact, 40 of them to stay), so the share is of a
// window that shrinks; total_share 2: p = 1000 -> 800.
// Source: LfLab-AI/KVmix, models/modeling_llama_KVmix.py (arXiv 2506.08018), which codes before it
// attends; integer floors equal its floating ones for the shares it uses.
struct Window {
  int keep = 0;   // rule tokens
  int block = 1;  // tokens that are coded together
  WindowRule rule = WindowRule::tokens;
  int share = 0;  // the other rules, tenths

  friend bool operator==(const Window&, const Window&) = default;
};

// `prompt`: its length in tokens where it decides (window_share under Prefill::exact, recode),
// else 0.
// O(1), but O(position) for window_share: `CodedTokens` counts along.
int64_t coded_tokens(const Window& window, int64_t position, int64_t prompt = 0);

// coded_tokens of ascending positions, O(1) each.
class CodedTokens {
 public:
  CodedTokens(const Window& window, int64_t prompt) : window_(window), prompt_(prompt) {}
  int64_t next();  // of positions 0, 1, 2 ...

 private:
  Window window_;
  int64_t prompt_;
  int64_t position_ = 0;
  int64_t coded_ = 0;
};

// The most tokens that are exact at once, after any position below `tokens` was coded: the room
// that a sequence of `tokens` tokens needs. Constant for WindowRule::tokens.
int64_t most_exact(const Window& window, int64_t tokens, int64_t prompt = 0);

}  // namespace kvsweep
