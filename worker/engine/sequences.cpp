#include "worker/engine/sequences.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/text.hpp"
#include "core/window.hpp"

namespace kvsweep::engine {
namespace {

// Bytes of the pages of a prompt of `tokens` tokens that no side writes to any more, so that those
// who start from it share them for good.
int64_t settled_bytes(const CacheLayout& layout, int64_t tokens) {
  int64_t coded = std::max<int64_t>(0, tokens - layout.sinks);
  for (const auto* layers : {&layout.keys, &layout.values}) {
    for (const std::vector<SideLayout>& runs : *layers) {
      for (const SideLayout& side : runs) {
        if (!side.format.quantized()) continue;
        coded = std::min(coded, coded_tokens(side.window, tokens - layout.sinks - 1));
      }
    }
  }
  return coded / layout.page_tokens * layout.block_bytes;
}

Error too_large(int64_t job, int64_t tokens, int64_t bytes, int64_t budget) {
  return {ErrorCode::oom,
          fmt::format("sequence {} needs {} of KV cache for {} tokens, more than the budget of {}; "
                      "raise the cache budget or shorten the sequence",
                      job, human_bytes(static_cast<double>(bytes)), tokens,
                      human_bytes(static_cast<double>(budget)))};
}

}  // namespace

Sequences::Sequences(const std::vector<Job>& jobs, bool share, const LengthsAgree& agree,
                     cache::Pool& pool)
    : jobs_(jobs), pool_(pool) {
  PromptTree tree;
  tree.start.assign(jobs.size(), -1);
  if (share) tree = plan_prompts(jobs, agree);
  build(tree);
  unshare_what_is_too_large(tree);
  build(tree);
}

// Sequences in the order in which they may start: parents before their children.
void Sequences::build(const PromptTree& tree) {
  sequences_.clear();
  waiting_.clear();
  place_.assign(tree.prompts.size(), -1);
  const auto placed = [&](int64_t prompt) {
    return prompt < 0 ? -1 : place_[static_cast<size_t>(prompt)];
  };
  for (const int64_t entry : tree.order()) {
    const int64_t index = static_cast<int64_t>(sequences_.size());
    Sequence& s = sequences_.emplace_back();
    if (entry >= 0) {
      s.job = entry;
      s.layout = jobs_[static_cast<size_t>(entry)].layout;
      s.parent = placed(tree.start[static_cast<size_t>(entry)]);
    } else {
      const SharedPrompt& prompt = tree.prompts[static_cast<size_t>(~entry)];
      s.shared = true;
      s.job = prompt.job;
      s.layout = prompt.layout;
      s.end = prompt.tokens;
      s.parent = placed(prompt.parent);
      place_[static_cast<size_t>(~entry)] = index;
    }
    if (s.parent >= 0) {
      Sequence& parent = at(s.parent);
      parent.children.push_back(index);
      ++parent.open;
      parent.logits |= !s.shared && jobs_[static_cast<size_t>(s.job)].first_logit < parent.end;
    }
    waiting_.push_back(index);
  }
  for (auto s = sequences_.rbegin(); s != sequences_.rend(); ++s) {
    s->bytes = need(*s);
    if (s->parent < 0) continue;
    int64_t& slot = at(s->parent).slot_bytes;
    slot = std::max(slot, s->bytes + s->slot_bytes);
  }
}

int64_t Sequences::need(const Sequence& s) const {
  const Job& job = jobs_[static_cast<size_t>(s.job)];
  const int64_t all = s.shared ? s.layout->allocated_bytes(s.end)
                               : s.layout->allocated_bytes(job.most_tokens, job.prompt_tokens);
  if (s.parent < 0 || at(s.parent).layout != s.layout) return all;
  return all - settled_bytes(*s.layout, at(s.parent).end);
}

// The children of a prompt whose caches do not fit together run alone.
void Sequences::unshare_what_is_too_large(PromptTree& tree) const {
  std::vector<SharedPrompt> kept;
  std::vector<int64_t> number(tree.prompts.size(), -1);
  const auto renumbered = [&](int64_t p) { return p < 0 ? -1 : number[static_cast<size_t>(p)]; };
  for (size_t p = 0; p < tree.prompts.size(); ++p) {
    SharedPrompt prompt = tree.prompts[p];
    const Sequence& s = at(place_[p]);
    const bool fits = s.bytes + s.slot_bytes <= pool_.budget_bytes();
    if (prompt.parent < 0 ? !fits : renumbered(prompt.parent) < 0) continue;
    prompt.parent = renumbered(prompt.parent);
    number[p] = static_cast<int64_t>(kept.size());
    kept.push_back(prompt);
  }
  for (int64_t& start : tree.start) start = renumbered(start);
  tree.prompts = std::move(kept);
}

bool Sequences::reserve(Sequence& s) {
  if (s.parent >= 0 && !at(s.parent).slot_taken) {
    at(s.parent).slot_taken = s.in_slot = true;
    return true;
  }
  if (reserved_ + s.bytes + s.slot_bytes > pool_.budget_bytes()) return false;
  reserved_ += s.bytes + s.slot_bytes;
  return true;
}

Status Sequences::open_cache(Sequence& s) {
  const int64_t prompt = jobs_[static_cast<size_t>(s.job)].prompt_tokens;
  if (s.parent < 0) {
    s.cache.emplace(*s.layout, prompt, pool_);
    return {};
  }
  const Sequence& parent = at(s.parent);
  if (parent.layout == s.layout) {
    KVSWEEP_ASSIGN(s.cache, parent.cache->fork(prompt));
  } else {
    s.cache.emplace(*s.layout, prompt, pool_);
    KVSWEEP_TRY(s.cache->adopt(*parent.cache));
  }
  s.fed = parent.end;
  s.stats.prefill_ms = parent.stats.prefill_ms / static_cast<double>(parent.children.size());
  return {};
}

Status Sequences::start(int most) {
  for (size_t i = 0; i < waiting_.size() && static_cast<int>(running_.size()) < most;) {
    const int64_t index = waiting_[i];
    Sequence& s = at(index);
    if (s.parent < 0 && s.bytes > pool_.budget_bytes()) {
      const int64_t tokens = jobs_[static_cast<size_t>(s.job)].most_tokens;
      return too_large(s.job, tokens, s.bytes, pool_.budget_bytes());
    }
    if ((s.parent >= 0 && !at(s.parent).ready) || !reserve(s)) {
      ++i;
      continue;
    }
    KVSWEEP_TRY(open_cache(s));
    waiting_.erase(waiting_.begin() + static_cast<ptrdiff_t>(i));
    running_.push_back(index);
  }
  return {};
}

int64_t Sequences::pending(const Sequence& s) const {
  const auto known = static_cast<int64_t>(jobs_[static_cast<size_t>(s.job)].tokens.size());
  return (s.shared ? s.end : known) - s.fed;
}

bool Sequences::wants_logits(const Sequence& s, int64_t position) const {
  if (s.shared) return s.logits && position == s.end - 1;
  return position >= jobs_[static_cast<size_t>(s.job)].first_logit;
}

void Sequences::prompt_ready(int64_t index) {
  at(index).ready = true;
  running_.erase(std::find(running_.begin(), running_.end(), index));
}

void Sequences::end(int64_t index) {
  running_.erase(std::find(running_.begin(), running_.end(), index));
  release(index);
}

void Sequences::release(int64_t index) {
  Sequence& s = at(index);
  s.cache.reset();
  if (s.in_slot) {
    at(s.parent).slot_taken = false;
  } else {
    reserved_ -= s.bytes + s.slot_bytes;
  }
  if (s.parent >= 0 && --at(s.parent).open == 0) release(s.parent);
}

}  // namespace kvsweep::engine
