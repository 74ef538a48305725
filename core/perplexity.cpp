#include "core/perplexity.hpp"

#include <cmath>

namespace kvsweep {

std::optional<Perplexity> perplexity(const std::vector<Measurement>& measurements) {
  double log_likelihood = 0;
  double tokens = 0;
  double words = 0;
  for (const Measurement& m : measurements) {
    const Json figures = Json::parse(m.text, nullptr, false);
    const bool whole = figures.is_object() && figures.contains("log_likelihood") &&
                       figures["log_likelihood"].is_number() && figures.contains("tokens") &&
                       figures["tokens"].is_number();
    if (!whole) return std::nullopt;
    log_likelihood += figures["log_likelihood"].get<double>();
    tokens += figures["tokens"].get<double>();
    const auto counted = figures.find("words");
    if (counted != figures.end() && counted->is_number()) words += counted->get<double>();
  }
  const double count = words > 0 ? words : tokens;
  if (count <= 0) return std::nullopt;
  return Perplexity{std::exp(-log_likelihood / count), words > 0 ? "word" : "token"};
}

}  // namespace kvsweep
