#include "worker/cache/pool.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

namespace kvsweep::cache {
namespace {

constexpr int64_t kAlignment = 64;

int64_t aligned(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

// Counts the bytes asked for, as the catalog does. Freed memory is kept for reuse by size, and
// given back to the system when a request of another size would exceed the budget with it.
struct Pool::State {
  std::mutex mutex;
  int64_t budget = 0;
  int64_t used = 0;
  int64_t peak = 0;
  int64_t spare = 0;                           // bytes in `free`
  std::map<int64_t, std::vector<void*>> free;  // by size

  void drop_spare() {
    for (auto& [bytes, list] : free) {
      for (void* memory : list) std::free(memory);
    }
    free.clear();
    spare = 0;
  }

  void* take_spare(int64_t bytes) {
    const auto found = free.find(bytes);
    if (found == free.end() || found->second.empty()) return nullptr;
    void* memory = found->second.back();
    found->second.pop_back();
    spare -= bytes;
    return memory;
  }
};

Pool::Pool(int64_t budget_bytes) : state_(std::make_unique<State>()) {
  state_->budget = budget_bytes;
}

Pool::~Pool() {
  state_->drop_spare();
}

int64_t Pool::budget_bytes() const {
  return state_->budget;
}

int64_t Pool::used_bytes() const {
  const std::lock_guard lock(state_->mutex);
  return state_->used;
}

int64_t Pool::peak_bytes() const {
  const std::lock_guard lock(state_->mutex);
  return state_->peak;
}

void* Pool::allocate(int64_t bytes) {
  if (bytes <= 0) return nullptr;
  void* memory = nullptr;
  {
    const std::lock_guard lock(state_->mutex);
    if (bytes > state_->budget - state_->used) return nullptr;
    memory = state_->take_spare(bytes);
    if (memory == nullptr) {
      if (bytes > state_->budget - state_->used - state_->spare) state_->drop_spare();
      memory = std::aligned_alloc(kAlignment, static_cast<size_t>(aligned(bytes)));
    }
    if (memory == nullptr) return nullptr;
    state_->used += bytes;
    state_->peak = std::max(state_->peak, state_->used);
  }
  std::memset(memory, 0, static_cast<size_t>(bytes));
  return memory;
}

void Pool::release(void* memory, int64_t bytes) {
  if (memory == nullptr) return;
  const std::lock_guard lock(state_->mutex);
  state_->free[bytes].push_back(memory);
  state_->spare += bytes;
  state_->used -= bytes;
}

Block allocate_block(Pool& pool, int64_t bytes) {
  auto* memory = static_cast<uint8_t*>(pool.allocate(bytes));
  if (memory == nullptr) return {};
  return Block(memory, [&pool, bytes](uint8_t* block) { pool.release(block, bytes); });
}

bool sole_owner(const Block& block) {
  if (block.use_count() != 1) return false;
  std::atomic_thread_fence(std::memory_order_acquire);
  return true;
}

}  // namespace kvsweep::cache
