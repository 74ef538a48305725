// Attention of a run of queries over one KV head of one layer, page by page.
#pragma once

#include <cstdint>
#include <vector>

#include "worker/cache/kv_cache.hpp"
#include "worker/cache/side.hpp"

namespace kvsweep::cache {

// Online-softmax attention (Milakov, Gimelshein, arXiv 1805.02867; tiles as in FlashAttention,
// arXiv 2205.14135): for every page-sized tile of tokens, in order,
//     s = scale * q K^T,  m' = max(m, max s),  p = exp(s - m'),
//     l = l exp(m - m') + sum p,  acc = acc exp(m - m') + p V;   out = acc / l.
// O(tokens * head_dim) per query; a page is decoded once per block of queries, into one tile.
//
// Deviation: K and V of one tile may each come from two sources. Query p sees the tokens below
// view(p) as the page decodes them and the others exact, so a tile that some query of the block
// splits is built twice (decoded, exact) and each query takes its columns from either. Example:
// pages of 64, KIVI with residual 32: the query at 100 sees keys 0-95 decoded and 96-100 exact;
// tile 64-127 is built twice, columns 0-31 of its scores come from the decoded keys and 32-36 from
// the exact ones; 37-63 are masked.
//
// A sliding window (`queries.window`) hides the tokens before the last `window` ones: tiles that no
// query of the block sees are left out, and a query takes only its columns of the others.
//
// Tile borders lie at multiples of the page, never relative to a query, and all work on a query is
// one chain of operations that depends on its position, its view and the instruction set alone.
//
// Positions first .. first + count - 1; `queries.q` and `queries.out` belong to position first.
// Working memory is per thread; calls may run in parallel.
void attend_run(const Side& keys, const Side& values, int head, int64_t first, int64_t count,
                const KvCache::Queries& queries);

}  // namespace kvsweep::cache
