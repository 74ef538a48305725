#include "worker/service/stop_strings.hpp"

#include <algorithm>

namespace kvsweep::service {

namespace {

constexpr size_t kSlackTokens = 8;

bool contains_any(const std::string& text, const std::vector<std::string>& stops) {
  return std::any_of(stops.begin(), stops.end(), [&](const std::string& stop) {
    return !stop.empty() && text.find(stop) != std::string::npos;
  });
}

}  // namespace

bool ends_with_stop(const text::Tokenizer& tokenizer, const std::vector<int32_t>& tokens,
                    const std::vector<std::string>& stops) {
  size_t longest = 0;
  for (const std::string& stop : stops) longest = std::max(longest, stop.size());
  if (longest == 0) return false;
  const size_t window = std::min(tokens.size(), longest + kSlackTokens);
  const std::vector<int32_t> tail(tokens.end() - static_cast<std::ptrdiff_t>(window), tokens.end());
  const Result<std::string> near_end = tokenizer.decode(tail, true);
  if (!near_end.ok() || !contains_any(*near_end, stops)) return false;
  const Result<std::string> whole = tokenizer.decode(tokens, true);
  return whole.ok() && contains_any(*whole, stops);
}

}  // namespace kvsweep::service
