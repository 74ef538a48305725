#include "worker/kernels/int4_self_check.hpp"

#include <cuda_runtime_api.h>

#include <cmath>

#include "worker/kernels/int4_page.cuh"

namespace kvsweep::kernels {
namespace {

// Device memory that frees itself. `error()` is the first failure of allocation or copy.
class DeviceBuffer {
 public:
  explicit DeviceBuffer(size_t bytes) { error_ = cudaMalloc(&memory_, bytes > 0 ? bytes : 1); }
  DeviceBuffer(const void* host, size_t bytes) : DeviceBuffer(bytes) {
    if (error_ == cudaSuccess) error_ = cudaMemcpy(memory_, host, bytes, cudaMemcpyHostToDevice);
  }
  DeviceBuffer(DeviceBuffer&& other) noexcept : memory_(other.memory_), error_(other.error_) {
    other.memory_ = nullptr;
  }
  DeviceBuffer& operator=(DeviceBuffer&&) = delete;
  ~DeviceBuffer() { cudaFree(memory_); }

  cudaError_t error() const { return error_; }
  template <typename T>
  T* as() const {
    return static_cast<T*>(memory_);
  }

 private:
  void* memory_ = nullptr;
  cudaError_t error_ = cudaSuccess;
};

std::string failed(const char* what, cudaError_t error) {
  return std::string("INT4 scores: ") + what + " failed: " + cudaGetErrorString(error) + ".";
}

// Codes, scales and minima that differ in every place, without a random generator.
std::vector<uint8_t> known_page(const Int4PageShape& shape, int seed) {
  std::vector<uint8_t> page(static_cast<size_t>(shape.page_bytes()));
  for (int64_t i = 0; i < shape.params_offset; ++i) {
    page[i] = static_cast<uint8_t>(i * 37 + seed * 101 + i / 7);
  }
  for (int64_t i = shape.params_offset; i < shape.page_bytes(); i += 4) {
    const auto place = static_cast<uint16_t>(i / 4);
    const uint16_t pair[2] = {static_cast<uint16_t>(0x2c00 + place % 512),   // scale
                              static_cast<uint16_t>(0xb800 + place % 700)};  // min
    std::memcpy(&page[i], pair, sizeof pair);
  }
  return page;
}

}  // namespace

std::string int4_scores_from_host(Int4Scores args, const std::vector<float>& queries,
                                  const std::vector<std::vector<uint8_t>>& pages,
                                  std::vector<float>& scores) {
  if (std::string wrong = check_int4_scores(args); !wrong.empty()) return wrong;
  scores.assign(static_cast<size_t>(args.tokens) * args.shape.kv_heads * args.query_group, 0.0f);
  std::vector<DeviceBuffer> device_pages;
  std::vector<const uint8_t*> addresses;
  for (const std::vector<uint8_t>& page : pages) {
    device_pages.emplace_back(page.data(), page.size());
    if (device_pages.back().error() != cudaSuccess) {
      return failed("copying a page to the device", device_pages.back().error());
    }
    addresses.push_back(device_pages.back().as<const uint8_t>());
  }
  const DeviceBuffer table(addresses.data(), addresses.size() * sizeof(uint8_t*));
  const DeviceBuffer device_queries(queries.data(), queries.size() * sizeof(float));
  const DeviceBuffer device_scores(scores.size() * sizeof(float));
  for (const DeviceBuffer* buffer : {&table, &device_queries, &device_scores}) {
    if (buffer->error() != cudaSuccess) return failed("copying to the device", buffer->error());
  }
  args.pages = table.as<const uint8_t*>();
  args.queries = device_queries.as<const float>();
  args.scores = device_scores.as<float>();
  if (std::string wrong = launch_int4_scores(args, nullptr); !wrong.empty()) return wrong;
  const cudaError_t copied =
      cudaMemcpy(scores.data(), args.scores, scores.size() * sizeof(float), cudaMemcpyDeviceToHost);
  return copied == cudaSuccess ? "" : failed("running the kernel", copied);
}

std::string int4_self_check() {
  Int4Scores args;
  args.shape = {.kv_heads = 2,
                .page_tokens = 32,
                .head_dim = 64,
                .param_group = 32,
                .params_offset = 2 * 32 * 32};
  args.query_group = 3;
  args.tokens = 45;
  args.scale = 0.125f;
  const std::vector<std::vector<uint8_t>> pages = {known_page(args.shape, 1),
                                                   known_page(args.shape, 2)};
  std::vector<float> queries(6 * 64);
  for (size_t i = 0; i < queries.size(); ++i) {
    queries[i] = static_cast<float>(static_cast<int>(i * 29 % 201) - 100) / 64.0f;
  }
  std::vector<float> scores;
  if (std::string wrong = int4_scores_from_host(args, queries, pages, scores); !wrong.empty()) {
    return wrong;
  }
  // |query| <= 1.5625; scales lie in [0.0625, 0.094] and minima in [-0.85, -0.5], so |key| < 1: a
  // score sums 64 products of magnitude below 1.6, times 1/8, below 13 in all. Two orders of
  // summing differ by at most 64 * 2^-24 * 13 = 5e-5; one wrong code moves a score by up to 0.01 a
  // step.
  constexpr float kTolerance = 2e-4f;
  for (int head = 0; head < 6; ++head) {
    for (int token = 0; token < args.tokens; ++token) {
      const float expected = team_score(args.shape, pages[token / 32].data(), head / 3, token % 32,
                                        &queries[head * 64], args.scale);
      const float got = scores[head * args.tokens + token];
      if (!(std::fabs(got - expected) <= kTolerance)) {
        return "head " + std::to_string(head) + ", token " + std::to_string(token) + ": " +
               std::to_string(got) + " on the device, " + std::to_string(expected) + " on the CPU.";
      }
    }
  }
  return "";
}

}  // namespace kvsweep::kernels
