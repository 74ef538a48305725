#include "worker/engine/prompt_tree.hpp"

#include <algorithm>

namespace kvsweep::engine {
namespace {

// Jobs whose prompts may be shared with each other.
struct Group {
  const CacheLayout* layout = nullptr;
  int64_t length = 0;
  std::vector<int64_t> jobs;
};

// It starts behind its whole prompt, with logits that were computed there.
bool whole(const Job& job) {
  return job.originals != nullptr && job.first_logit >= job.prompt_tokens - 1;
}

// nullptr: it shares nothing, since its prompt sees originals that are gone when others start.
const CacheLayout* shared_layout(const Job& job) {
  if (whole(job)) return job.originals;
  return job.layout->prefill == Prefill::exact ? nullptr : job.layout;
}

std::vector<Group> groups_of(const std::vector<Job>& jobs, const LengthsAgree& agree) {
  std::vector<Group> groups;
  for (size_t i = 0; i < jobs.size(); ++i) {
    const CacheLayout* layout = shared_layout(jobs[i]);
    if (layout == nullptr) continue;
    const int64_t length = jobs[i].rope_length();
    auto group = std::find_if(groups.begin(), groups.end(), [&](const Group& g) {
      return g.layout == layout && agree(g.length, length);
    });
    if (group == groups.end()) group = groups.insert(groups.end(), {layout, length, {}});
    group->jobs.push_back(static_cast<int64_t>(i));
  }
  return groups;
}

// Builds the tree of one group from its jobs in the order of their prompts: those that agree in
// their first tokens are then neighbours.
class Builder {
 public:
  Builder(const std::vector<Job>& jobs, const Group& group, PromptTree& tree)
      : jobs_(jobs), layout_(group.layout), order_(group.jobs), tree_(tree) {}

  void build() {
    std::stable_sort(order_.begin(), order_.end(), [&](int64_t a, int64_t b) {
      const auto& x = job(a).tokens;
      const auto& y = job(b).tokens;
      return std::lexicographical_compare(x.begin(), x.begin() + shareable(a), y.begin(),
                                          y.begin() + shareable(b));
    });
    range({0, order_.size()}, -1, 0);
  }

 private:
  struct Range {
    size_t first = 0;
    size_t last = 0;
    size_t size() const { return last - first; }
  };

  const Job& job(int64_t index) const { return jobs_[static_cast<size_t>(index)]; }
  // A job that takes no logits from its start must have a token left to feed.
  int64_t shareable(int64_t index) const {
    const Job& j = job(index);
    return whole(j) ? j.prompt_tokens : std::min(j.prompt_tokens, j.first_logit);
  }

  // Tokens that the first and the last of a range, hence all of it, begin with.
  int64_t common(const Range& range) const {
    const int64_t a = order_[range.first];
    const int64_t b = order_[range.last - 1];
    const int64_t most = std::min(shareable(a), shareable(b));
    int64_t count = 0;
    while (count < most &&
           job(a).tokens[static_cast<size_t>(count)] == job(b).tokens[static_cast<size_t>(count)]) {
      ++count;
    }
    return count;
  }

  int64_t add(int64_t from, int64_t tokens, int64_t parent) {
    tree_.prompts.push_back({layout_, from, tokens, parent});
    return static_cast<int64_t>(tree_.prompts.size()) - 1;
  }

  // `done`: tokens of `parent`.
  void range(const Range& r, int64_t parent, int64_t done) {
    if (r.size() == 1) {
      end({r.first, r.last}, parent, done);
      return;
    }
    const int64_t depth = common(r);
    if (depth - done >= kLeastShared) {
      parent = add(order_[r.first], depth, parent);
      done = depth;
    }
    Range ended{r.first, r.first};
    while (ended.last < r.last && shareable(order_[ended.last]) == depth) ++ended.last;
    if (ended.size() > 0) end(ended, parent, done);
    Range next{ended.last, ended.last};
    while (next.first < r.last) {
      while (next.last < r.last && token(next.last, depth) == token(next.first, depth)) {
        ++next.last;
      }
      range(next, parent, done);
      next.first = next.last;
    }
  }

  int32_t token(size_t place, int64_t position) const {
    return job(order_[place]).tokens[static_cast<size_t>(position)];
  }

  // Jobs with equal shareable tokens, of which `done` are in `parent`.
  void end(const Range& r, int64_t parent, int64_t done) {
    int64_t own = -1;  // the whole prompt, for those that start behind it
    for (size_t i = r.first; i < r.last; ++i) {
      const int64_t index = order_[i];
      int64_t& start = tree_.start[static_cast<size_t>(index)];
      const int64_t tokens = shareable(index);
      if (!whole(job(index)) || (parent >= 0 && tokens == done)) {
        start = parent;
      } else if (r.size() > 1 || parent >= 0) {
        if (own < 0) own = add(index, tokens, parent);
        start = own;
      }
    }
  }

  const std::vector<Job>& jobs_;
  const CacheLayout* layout_;
  std::vector<int64_t> order_;
  PromptTree& tree_;
};

}  // namespace

std::vector<int64_t> PromptTree::order() const {
  const int64_t roots = static_cast<int64_t>(prompts.size());
  std::vector<std::vector<int64_t>> children(prompts.size() + 1);  // the last: of no prompt
  const auto under = [&](int64_t parent) -> std::vector<int64_t>& {
    return children[static_cast<size_t>(parent < 0 ? roots : parent)];
  };
  for (size_t job = 0; job < start.size(); ++job) {
    under(start[job]).push_back(static_cast<int64_t>(job));
  }
  for (int64_t p = 0; p < roots; ++p) under(prompts[static_cast<size_t>(p)].parent).push_back(~p);
  std::vector<int64_t> out;
  std::vector<int64_t> open(under(-1).rbegin(), under(-1).rend());
  while (!open.empty()) {
    const int64_t next = open.back();
    open.pop_back();
    out.push_back(next);
    if (next >= 0) continue;
    const std::vector<int64_t>& below = under(~next);
    open.insert(open.end(), below.rbegin(), below.rend());
  }
  return out;
}

PromptTree plan_prompts(const std::vector<Job>& jobs, const LengthsAgree& agree) {
  PromptTree tree;
  tree.start.assign(jobs.size(), -1);
  for (const Group& group : groups_of(jobs, agree)) Builder(jobs, group, tree).build();
  return tree;
}

}  // namespace kvsweep::engine
