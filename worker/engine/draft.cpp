#include "worker/engine/draft.hpp"

#include <algorithm>
#include <cstdlib>

namespace kvsweep::engine {
namespace {

constexpr int64_t kNear = 2;       // places
constexpr int64_t kEqualNear = 2;  // tokens
constexpr int64_t kEqualElsewhere = 4;

}  // namespace

std::span<const int32_t> DraftCursor::next(int64_t most) const {
  const int64_t count = together_ ? std::min(most, size() - 1 - at_) : 0;
  if (count <= 0) return {};
  return {draft_.data() + at_, static_cast<size_t>(count)};
}

bool DraftCursor::chose(int32_t token) {
  const bool predicted = predicts();
  const bool right = predicted && draft_[static_cast<size_t>(at_)] == token;
  text_.push_back(token);
  ++at_;
  if (right) return true;
  const auto index = static_cast<int64_t>(text_.size()) - 1;
  if (use.first_difference < 0 && index < size()) use.first_difference = index;
  together_ = false;
  if (!predicted) find_way_back();
  return false;
}

// Whether the text's last `tokens` tokens stand in the draft just before `place`.
bool DraftCursor::stands_before(int64_t place, int64_t tokens) const {
  if (tokens > place || tokens > static_cast<int64_t>(text_.size())) return false;
  return std::equal(text_.end() - tokens, text_.end(), draft_.begin() + (place - tokens));
}

void DraftCursor::find_way_back() {
  int64_t best = -1;
  for (int64_t place = 1; place < size(); ++place) {
    const int64_t shift = std::abs(place - at_);
    if (best >= 0 && shift >= std::abs(best - at_)) continue;
    if (stands_before(place, shift <= kNear ? kEqualNear : kEqualElsewhere)) best = place;
  }
  if (best < 0) return;
  at_ = best;
  together_ = true;
  ++use.realigned;
}

}  // namespace kvsweep::engine
