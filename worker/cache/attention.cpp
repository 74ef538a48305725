#include "worker/cache/attention.hpp"

#include <algorithm>

#include "worker/cache/aligned_floats.hpp"
#include "worker/codec/hadamard.hpp"
#include "worker/kernels/cpu_ops.hpp"

namespace kvsweep::cache {
namespace {

constexpr int64_t kRowsPerBlock = 256;  // query rows per decoded page: decoding is then noise

struct Workspace {
  AlignedFloats q;            // [rows][head_dim], scaled
  AlignedFloats rotated_q;    // the same through the Hadamard transform, for rotated codes of keys
  AlignedFloats acc;          // [rows][padded_dim]
  AlignedFloats rotated_acc;  // what rotated codes of values gave, to be transformed back
  AlignedFloats scores;       // [rows][tokens], then weights
  AlignedFloats other;        // [group][tokens], scores against exact keys
  std::vector<kernels::RowState> states;
  AlignedFloats page_tile;   // decoded, plain or codes of a page, keys then values
  AlignedFloats exact_tile;  // the same tokens, exact
  AlignedFloats bias_rows;   // [tokens][head_dim], what keys of the tile lack
  std::vector<uint8_t> rows;
  std::vector<int64_t> key_views;  // per query of the block
  std::vector<int64_t> value_views;
};

// Where the rows of one tile come from.
struct Sources {
  bool page = false;   // some query reads a token of it from the page
  bool exact = false;  // some query reads a token of it exact
  bool mixed() const { return page && exact; }
};

// A tile and the positions of the block whose queries see something of it.
struct Span {
  int64_t start = 0;  // first token of the tile
  int tokens = 0;     // its columns in use: a page, or the sinks
  bool sinks = false;
  int64_t from = 0;
  int64_t to = 0;
};

class QueryBlock {
 public:
  QueryBlock(const Side& keys, const Side& values, int head, int head_dim, int tile_tokens,
             const KvCache::Queries& queries, Workspace& work)
      : keys_(keys),
        values_(values),
        head_(head),
        head_dim_(head_dim),
        tokens_(tile_tokens),
        padded_(kernels::padded_dim(head_dim)),
        queries_(queries),
        group_(queries.group),
        fold_keys_(keys.folds() && queries.key_bias.bias == nullptr),
        fold_values_(values.folds()),
        ops_(kernels::cpu_ops()),
        work_(work) {}

  // `offset`: of the block's first query within `queries`.
  void run(int64_t first, int64_t count, int64_t offset) {
    first_ = first;
    end_ = first + count;
    offset_ = offset;
    load();
    const int64_t sinks = keys_.sinks();
    const int64_t oldest_seen = oldest(first);
    if (oldest_seen < sinks) tile({0, static_cast<int>(sinks), true});
    const int64_t skipped = std::max<int64_t>(0, oldest_seen - sinks) / tokens_;
    for (int64_t start = sinks + skipped * tokens_; start < end_; start += tokens_) {
      tile({start, tokens_, false});
    }
    write();
  }

 private:
  int64_t row_of(int64_t position) const { return (position - first_) * group_; }
  float* scores_of(int64_t position) { return work_.scores.data() + row_of(position) * tokens_; }
  float* acc_of(int64_t position, bool paged) {
    AlignedFloats& acc = paged && values_.hadamard() ? work_.rotated_acc : work_.acc;
    return acc.data() + row_of(position) * padded_;
  }

  // The first token that the query sees.
  int64_t oldest(int64_t position) const {
    return queries_.window > 0 ? std::max<int64_t>(0, position + 1 - queries_.window) : 0;
  }
  // Columns of the tile that the query sees.
  kernels::Columns visible(int64_t position, const Span& span) const {
    return {static_cast<int>(std::max<int64_t>(oldest(position) - span.start, 0)),
            static_cast<int>(std::min<int64_t>(position + 1 - span.start, span.tokens))};
  }
  bool sees_all(int64_t position, const Span& span) const {
    const kernels::Columns seen = visible(position, span);
    return seen.first == 0 && seen.last == tokens_;
  }
  // The first of them that it does not take from the page.
  int from_page(int64_t view, int64_t position, const Span& span) const {
    const kernels::Columns seen = visible(position, span);
    if (span.sinks) return seen.first;
    return static_cast<int>(std::clamp<int64_t>(view - span.start, seen.first, seen.last));
  }

  void load();
  void tile(Span span);
  Sources sources(const std::vector<int64_t>& views, const Span& span) const;
  void build(const Side& side, const Sources& sources, const Span& span, int64_t view);
  void take_codes(const Side& side, const Span& span);
  void add_key_bias(const Sources& sources, const Span& span);
  void score_rows(int64_t position, int64_t queries, bool paged, float* scores);
  void score(const Span& span);
  void score_mixed(int64_t position, const Span& span);
  const float* queries_of(int64_t position, bool paged) const;
  void soften(const Span& span);
  void accumulate(const Span& span);
  void accumulate_rows(int64_t position, int64_t queries, kernels::Columns columns, bool paged);
  void join_rotated(float* acc, float* rotated) const;
  void write();

  const Side& keys_;
  const Side& values_;
  int head_;
  int head_dim_;
  int tokens_;
  int padded_;
  const KvCache::Queries& queries_;
  int group_;
  bool fold_keys_;  // pages are read as codes
  bool fold_values_;
  const kernels::CpuOps& ops_;
  Workspace& work_;
  int64_t first_ = 0;
  int64_t end_ = 0;
  int64_t offset_ = 0;
  // The page of the tile, where it is read as codes.
  kernels::PackedTile packed_;
  const float* codes_ = nullptr;
};

void QueryBlock::load() {
  const int64_t count = end_ - first_;
  const auto rows = static_cast<size_t>(count * group_);
  work_.q.resize(rows * head_dim_);
  work_.acc.resize(rows * padded_);
  std::fill_n(work_.acc.data(), rows * padded_, 0.0f);
  work_.scores.resize(rows * tokens_);
  work_.other.resize(static_cast<size_t>(group_) * tokens_);
  work_.states.assign(rows, {});
  work_.page_tile.resize(static_cast<size_t>(padded_) * tokens_);
  work_.exact_tile.resize(static_cast<size_t>(padded_) * tokens_);
  work_.key_views.resize(static_cast<size_t>(count));
  work_.value_views.resize(static_cast<size_t>(count));
  float* to = work_.q.data();
  for (int64_t i = 0; i < count; ++i) {
    work_.key_views[i] = keys_.view(first_ + i);
    work_.value_views[i] = values_.view(first_ + i);
    for (int h = 0; h < group_; ++h) {
      const float* from =
          queries_.q + (offset_ + i) * queries_.token_stride + h * queries_.head_stride;
      for (int d = 0; d < head_dim_; ++d) *to++ = from[d] * queries_.scale;
    }
  }
  if (keys_.hadamard()) {
    work_.rotated_q.resize(rows * head_dim_);
    std::copy_n(work_.q.data(), rows * head_dim_, work_.rotated_q.data());
    codec::hadamard(work_.rotated_q.data(), static_cast<int64_t>(rows), head_dim_);
  }
  if (values_.hadamard()) {
    work_.rotated_acc.resize(rows * padded_);
    std::fill_n(work_.rotated_acc.data(), rows * padded_, 0.0f);
  }
}

void QueryBlock::tile(Span span) {
  // Earlier queries come before the tile; the windows of later ones begin beyond it.
  span.from = std::max(first_, span.start);
  span.to = end_;
  if (queries_.window > 0) {
    span.to = std::min(end_, span.start + span.tokens - 1 + queries_.window);
  }
  const Sources key_sources = sources(work_.key_views, span);
  build(keys_, key_sources, span, work_.key_views[span.from - first_]);
  if (queries_.key_bias.bias != nullptr) add_key_bias(key_sources, span);
  score(span);
  soften(span);
  const Sources value_sources = sources(work_.value_views, span);
  build(values_, value_sources, span, work_.value_views[span.from - first_]);
  accumulate(span);
}

Sources QueryBlock::sources(const std::vector<int64_t>& views, const Span& span) const {
  Sources found;
  for (int64_t p = span.from; p < span.to; ++p) {
    const kernels::Columns seen = visible(p, span);
    const int page = from_page(views[p - first_], p, span);
    found.page |= page > seen.first;
    found.exact |= page < seen.last;
  }
  return found;
}

// `view`: the lowest of the queries, that of the first; no query reads exact tokens below it.
void QueryBlock::build(const Side& side, const Sources& sources, const Span& span, int64_t view) {
  if (sources.page) {
    if (&side == &keys_ ? fold_keys_ : fold_values_) {
      take_codes(side, span);
    } else {
      side.page_tile(span.start, head_, work_.page_tile.data());
    }
  }
  if (!sources.exact) return;
  const int64_t begin = std::max({span.start, span.sinks ? 0 : view, oldest(span.from)});
  const int64_t end = std::min(span.start + span.tokens, end_);
  side.exact_tile({span.start, begin, end}, head_, &work_.rows, work_.exact_tile.data());
}

// A few rows unpack the codes on their way.
void QueryBlock::take_codes(const Side& side, const Span& span) {
  packed_ = side.packed_tile(span.start, head_);
  codes_ = nullptr;
  if ((span.to - span.from) * group_ < kernels::kCodeTileRows) return;
  float* codes = work_.page_tile.data();
  &side == &keys_ ? ops_.code_keys(packed_, codes) : ops_.code_values(packed_, codes);
  codes_ = codes;
}

// Both tiles: the exact tokens lack the bias too. Columns beyond the newest token stay as they are.
void QueryBlock::add_key_bias(const Sources& sources, const Span& span) {
  const auto count = static_cast<int>(std::min<int64_t>(span.tokens, end_ - span.start));
  work_.bias_rows.resize(static_cast<size_t>(tokens_) * head_dim_);
  float* rows = work_.bias_rows.data();
  KeyTile tile{work_.exact_tile.data(), head_dim_, tokens_, span.start, count};
  key_bias_rows(queries_.key_bias, tile, false, rows);
  if (sources.exact) add_rows(rows, tile);
  if (!sources.page) return;
  if (keys_.hadamard()) key_bias_rows(queries_.key_bias, tile, true, rows);
  tile.data = work_.page_tile.data();
  add_rows(rows, tile);
}

void QueryBlock::score(const Span& span) {
  const Sources key_sources = sources(work_.key_views, span);
  if (key_sources.mixed()) {
    for (int64_t p = span.from; p < span.to; ++p) score_mixed(p, span);
    return;
  }
  score_rows(span.from, span.to - span.from, key_sources.page, scores_of(span.from));
}

// Of the queries from `position` on, against the tile's keys of one source.
void QueryBlock::score_rows(int64_t position, int64_t queries, bool paged, float* scores) {
  const float* q = queries_of(position, paged);
  const int rows = static_cast<int>(queries * group_);
  if (paged && fold_keys_) return ops_.score_packed({packed_, codes_, q, rows, scores});
  AlignedFloats& tile = paged ? work_.page_tile : work_.exact_tile;
  ops_.score({q, rows, tile.data(), head_dim_, tokens_, scores});
}

// As the keys of that source need them.
const float* QueryBlock::queries_of(int64_t position, bool paged) const {
  AlignedFloats& q = paged && keys_.hadamard() ? work_.rotated_q : work_.q;
  return q.data() + row_of(position) * head_dim_;
}

void QueryBlock::score_mixed(int64_t position, const Span& span) {
  float* scores = scores_of(position);
  const kernels::Columns seen = visible(position, span);
  const int page = from_page(work_.key_views[position - first_], position, span);
  const bool some_paged = page > seen.first;
  if (some_paged) score_rows(position, 1, true, scores);
  if (page == seen.last) return;
  float* exact = some_paged ? work_.other.data() : scores;
  score_rows(position, 1, false, exact);
  if (!some_paged) return;
  for (int h = 0; h < group_; ++h) {
    const int64_t row = int64_t{h} * tokens_;
    std::copy(exact + row + page, exact + row + tokens_, scores + row + page);
  }
}

void QueryBlock::soften(const Span& span) {
  const int64_t count = (span.to - span.from) * group_ * tokens_;
  if (queries_.softcap > 0) ops_.softcap(queries_.softcap, count, scores_of(span.from));
  for (int64_t p = span.from; p < span.to; ++p) {
    for (int h = 0; h < group_; ++h) {
      kernels::RowState& state = work_.states[row_of(p) + h];
      const float factor =
          ops_.softmax(scores_of(p) + h * tokens_, tokens_, visible(p, span), &state);
      if (factor == 1.0f) continue;
      ops_.rescale(factor, head_dim_, acc_of(p, false) + h * padded_);
      if (values_.hadamard()) ops_.rescale(factor, head_dim_, acc_of(p, true) + h * padded_);
    }
  }
}

// Queries that see the whole tile from one source go together; the others one by one, over the
// columns they see. Codes are finite whatever they are, and a column that a query does not see
// weighs nothing, so with them all go together where nobody reads exact values.
void QueryBlock::accumulate(const Span& span) {
  const Sources value_sources = sources(work_.value_views, span);
  if (fold_values_ && !value_sources.exact) {
    const kernels::Columns columns = {visible(span.from, span).first,
                                      visible(span.to - 1, span).last};
    return accumulate_rows(span.from, span.to - span.from, columns, true);
  }
  int64_t p = span.from;
  while (p < span.to) {
    int64_t whole = p;
    while (!value_sources.mixed() && whole < span.to && sees_all(whole, span)) ++whole;
    accumulate_rows(p, whole - p, {0, tokens_}, value_sources.page);
    p = whole;
    if (p == span.to) break;
    const kernels::Columns seen = visible(p, span);
    const int page = from_page(work_.value_views[p - first_], p, span);
    accumulate_rows(p, 1, {seen.first, page}, true);
    accumulate_rows(p, 1, {page, seen.last}, false);
    ++p;
  }
}

void QueryBlock::accumulate_rows(int64_t position, int64_t queries, kernels::Columns columns,
                                 bool paged) {
  if (queries == 0 || columns.first == columns.last) return;
  const int rows = static_cast<int>(queries * group_);
  if (paged && fold_values_) {
    return ops_.accumulate_packed({packed_, codes_, scores_of(position), rows, columns.first,
                                   columns.last, acc_of(position, true)});
  }
  kernels::AccumulateArgs args;
  args.p = scores_of(position);
  args.rows = rows;
  args.tokens = tokens_;
  args.values = paged ? work_.page_tile.data() : work_.exact_tile.data();
  args.head_dim = head_dim_;
  args.first = columns.first;
  args.last = columns.last;
  args.acc = acc_of(position, paged);
  ops_.accumulate(args);
}

// The sums over rotated codes are turned back and join the others.
void QueryBlock::join_rotated(float* acc, float* rotated) const {
  codec::hadamard(rotated, 1, head_dim_);
  for (int d = 0; d < head_dim_; ++d) acc[d] += rotated[d];
}

void QueryBlock::write() {
  for (int64_t p = first_; p < end_; ++p) {
    for (int h = 0; h < group_; ++h) {
      float* acc = acc_of(p, false) + h * padded_;
      if (values_.hadamard()) join_rotated(acc, acc_of(p, true) + h * padded_);
      const float sum = work_.states[row_of(p) + h].sum;
      float* out =
          queries_.out + (offset_ + p - first_) * queries_.token_stride + h * queries_.head_stride;
      for (int d = 0; d < head_dim_; ++d) out[d] = acc[d] / sum;
    }
  }
}

}  // namespace

void attend_run(const Side& keys, const Side& values, int head, int64_t first, int64_t count,
                const KvCache::Queries& queries) {
  static thread_local Workspace work;
  QueryBlock block(keys, values, head, keys.head_dim(), keys.page_tokens(), queries, work);
  const int64_t step = std::max<int64_t>(1, kRowsPerBlock / std::max(1, queries.group));
  for (int64_t done = 0; done < count; done += step) {
    block.run(first + done, std::min(step, count - done), done);
  }
}

}  // namespace kvsweep::cache
