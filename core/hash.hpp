// SHA-256 for identities that are stored or shared (map_id, model hash, measurement key).
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/result.hpp"

namespace kvsweep {

// 64 lower-case hex digits.
std::string sha256_hex(std::string_view bytes);

// The same over a file, read in blocks. Error (io, not_found) names the path.
Result<std::string> sha256_file(const std::string& path);

// Incremental form. Not thread-safe.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;
  void update(std::string_view bytes);
  std::string hex();  // ends the computation

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kvsweep
