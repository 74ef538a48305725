// Working memory for tiles: 64-byte aligned, because a full-width vector load that crosses a cache
// line costs two.
#pragma once

#include <cstddef>
#include <memory>
#include <new>

namespace kvsweep::cache {

class AlignedFloats {
 public:
  // Room for `count` floats; contents are lost when it grows. Never shrinks.
  void resize(size_t count) {
    if (count <= capacity_) return;
    memory_.reset(new (kAlignment) float[count]);
    capacity_ = count;
  }
  float* data() { return memory_.get(); }

 private:
  static constexpr std::align_val_t kAlignment{64};
  struct Free {
    void operator()(float* memory) const { ::operator delete[](memory, kAlignment); }
  };
  std::unique_ptr<float[], Free> memory_;
  size_t capacity_ = 0;
};

}  // namespace kvsweep::cache
