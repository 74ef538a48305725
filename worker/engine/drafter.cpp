#include "worker/engine/drafter.hpp"

#include <algorithm>

namespace kvsweep::engine {
namespace {

// A draft that nothing is known of: 4 of 5 tokens right.
constexpr double kUsualTries = 5;
constexpr double kUsualRight = 4;
// Of a draft's own tokens the newest count: behind a difference it is right less often.
constexpr double kForget = 0.9;  // of the older ones, at each new one
// What the other drafts under the same map say counts as this many of its own tokens.
constexpr double kOthersWeigh = 8;

bool recodes(const CacheLayout& layout) {
  for (const auto* layers : {&layout.keys, &layout.values}) {
    for (const std::vector<SideLayout>& runs : *layers) {
      for (const SideLayout& side : runs) {
        if (side.window.rule == WindowRule::recode) return true;
      }
    }
  }
  return false;
}

}  // namespace

// A step with a draft may have to be undone as a whole, which coding again what is coded forbids.
Drafter::Drafter(const std::vector<Job>& jobs, bool allowed, std::optional<int64_t> fixed)
    : fixed_(fixed) {
  const auto drafted = [](const Job& job) { return !job.draft.empty(); };
  if (!allowed || std::none_of(jobs.begin(), jobs.end(), drafted)) return;
  const CacheLayout* last = nullptr;
  for (const Job& job : jobs) {
    if (job.layout != last && recodes(*job.layout)) return;
    last = job.layout;
  }
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (jobs[i].draft.empty()) continue;
    Tally& all = tallies_[jobs[i].layout];
    entries_.emplace(static_cast<int64_t>(i), Entry{DraftCursor(jobs[i].draft), {}, &all});
  }
}

Drafter::Entry* Drafter::entry(int64_t job) {
  const auto found = entries_.find(job);
  return found == entries_.end() ? nullptr : &found->second;
}

double Drafter::chance(const Entry& entry) {
  const double all = (entry.all->right + kUsualRight) / (entry.all->tries + kUsualTries);
  return (entry.own.right + kOthersWeigh * all) / (entry.own.tries + kOthersWeigh);
}

std::vector<std::span<const int32_t>> Drafter::plan(const std::vector<Question>& decoding,
                                                    int64_t room) {
  std::vector<std::span<const int32_t>> drafts(decoding.size());
  if (entries_.empty()) return drafts;
  std::vector<Offer> offers(decoding.size());
  for (size_t i = 0; i < decoding.size(); ++i) {
    const Entry* e = entry(decoding[i].job);
    if (e == nullptr) continue;
    drafts[i] = e->cursor.next(std::min(decoding[i].room, fixed_.value_or(kMostDraft)));
    offers[i] = {static_cast<int64_t>(drafts[i].size()), chance(*e)};
  }
  if (fixed_) return drafts;
  choose_lengths(cost_.slope(), static_cast<int64_t>(decoding.size()), room, offers);
  for (size_t i = 0; i < drafts.size(); ++i) {
    drafts[i] = drafts[i].first(static_cast<size_t>(offers[i].count));
  }
  return drafts;
}

// Tokens that were chosen without a draft count too: so drafts that did not pay may do so again.
void Drafter::chose(int64_t job, int32_t token) {
  Entry* e = entry(job);
  if (e == nullptr) return;
  const bool predicted = e->cursor.predicts();
  const bool right = e->cursor.chose(token);
  if (!predicted) return;
  e->own.tries *= kForget;
  e->own.right *= kForget;
  for (Tally* tally : {&e->own, e->all}) {
    tally->tries += 1;
    tally->right += right ? 1 : 0;
  }
}

void Drafter::verified(int64_t job, int64_t proposed, int64_t accepted) {
  Entry* e = entry(job);
  if (e == nullptr) return;
  ++e->cursor.use.verifications;
  e->cursor.use.proposed += proposed;
  e->cursor.use.accepted += accepted;
}

void Drafter::give_up(int64_t job) {
  if (Entry* e = entry(job)) e->cursor.give_up();
}

std::optional<DraftUse> Drafter::use(int64_t job) const {
  const auto found = entries_.find(job);
  if (found == entries_.end()) return std::nullopt;
  return found->second.cursor.use;
}

}  // namespace kvsweep::engine
