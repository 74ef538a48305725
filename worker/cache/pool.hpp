// Pool: the memory of all caches of a worker under one byte budget. Block: one page of every side,
// shared by the sequences that forked with it.
#pragma once

#include <cstdint>
#include <memory>

namespace kvsweep::cache {

// Hands out blocks and staging areas under one byte budget. Thread-safe.
class Pool {
 public:
  explicit Pool(int64_t budget_bytes);
  ~Pool();
  int64_t budget_bytes() const;
  int64_t used_bytes() const;
  int64_t peak_bytes() const;

  // 64-byte aligned, zeroed; nullptr when the budget would be exceeded. Freed blocks of the same
  // size are reused.
  void* allocate(int64_t bytes);
  void release(void* memory, int64_t bytes);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Memory of a pool that gives itself back when its last owner goes. The pool must outlive it.
// Owners may live in different threads; writing needs a sole owner.
using Block = std::shared_ptr<uint8_t>;
Block allocate_block(Pool& pool, int64_t bytes);  // empty when the budget would be exceeded
// Whether nobody else holds it; after true, what others read of it happened before.
bool sole_owner(const Block& block);

}  // namespace kvsweep::cache
