#include "core/result.hpp"

#include <array>
#include <utility>

namespace kvsweep {
namespace {

constexpr std::array<std::pair<ErrorCode, std::string_view>, 10> kNames = {{
    {ErrorCode::oom, "oom"},
    {ErrorCode::timeout, "timeout"},
    {ErrorCode::preempted, "preempted"},
    {ErrorCode::worker_lost, "worker_lost"},
    {ErrorCode::numerics, "numerics"},
    {ErrorCode::bad_input, "bad_input"},
    {ErrorCode::internal, "internal"},
    {ErrorCode::not_found, "not_found"},
    {ErrorCode::io, "io"},
    {ErrorCode::conflict, "conflict"},
}};

}  // namespace

std::string_view to_string(ErrorCode code) {
  for (const auto& [value, name] : kNames) {
    if (value == code) return name;
  }
  return "internal";
}

std::optional<ErrorCode> error_code_from(std::string_view name) {
  for (const auto& [value, known] : kNames) {
    if (known == name) return value;
  }
  return std::nullopt;
}

}  // namespace kvsweep
