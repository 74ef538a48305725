#include "cli/map_source.hpp"

#include <charconv>

#include "core/text.hpp"
#include "store/export/exporter.hpp"

namespace kvsweep::cli {
namespace {

constexpr std::string_view kUniform = "uniform:";

Status parse_group(const std::string& text, std::optional<int>& place) {
  if (text == "head") {
    place = 0;
    return {};
  }
  for (const int group : {32, 64, 128}) {
    if (text == std::to_string(group)) {
      place = group;
      return {};
    }
  }
  return bad_input("--group is \"" + text + "\"; allowed are 32, 64, 128 and head");
}

Status parse_residual(const std::string& text, std::optional<int>& place) {
  int value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || value < 0) {
    return bad_input("--residual is \"" + text + "\"; it must be a whole number of tokens");
  }
  place = value;
  return {};
}

}  // namespace

void SchemeFlags::declare(Options& options) {
  options.text("--scheme", "NAME", name, "scheme; see `kvsweep list schemes` (default per-token)");
  options.value("--group", "N", "32, 64, 128 or head (default: of the scheme)",
                [this](const std::string& text) { return parse_group(text, group); });
  options.value("--residual", "TOKENS", "newest tokens that stay exact (default: of the scheme)",
                [this](const std::string& text) { return parse_residual(text, residual); });
  options.value("--prefill", "MODE", "stepwise or exact (default: of the scheme)",
                [this](const std::string& text) -> Status {
                  KVSWEEP_ASSIGN(prefill, prefill_from(text));
                  return {};
                });
}

SchemeOptions SchemeFlags::options() const {
  SchemeOptions made;
  if (name) made.name = *name;
  made.group = group;
  made.residual = residual;
  made.prefill = prefill;
  return made;
}

Result<NamedMap> load_map(const std::string& source, const SchemeFlags& scheme,
                          const ModelGeometry& geometry) {
  NamedMap named;
  if (source == "baseline" || source.starts_with(kUniform)) {
    KVSWEEP_ASSIGN(const Scheme made, make_scheme(scheme.options()));
    const std::string pair = source == "baseline" ? source : source.substr(kUniform.size());
    KVSWEEP_ASSIGN(const Pair parsed, pair_from(pair));
    named.map = uniform_map(made, geometry.num_layers(), parsed);
  } else {
    const auto options = scheme.any() ? std::optional(scheme.options()) : std::nullopt;
    KVSWEEP_ASSIGN(store::ImportedMap imported, store::import_map(source, "", options));
    named.map = std::move(imported.map);
    named.base = imported.base;
    named.model_hash = std::move(imported.model_hash);
  }
  const Status fits = check_map(named.map, geometry);
  if (!fits.ok()) return Error{fits.error().code, source + ": " + fits.error().message};
  return named;
}

}  // namespace kvsweep::cli
