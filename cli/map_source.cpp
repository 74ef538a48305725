#include "cli/map_source.hpp"

#include <algorithm>
#include <charconv>

#include "core/text.hpp"

namespace kvsweep::cli {
namespace {

constexpr std::string_view kBaseline = "baseline";
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

Status parse_tokens(const std::string& option, const std::string& text, std::optional<int>& place) {
  int value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || value < 0) {
    return bad_input(option + " is \"" + text + "\"; it must be a whole number of tokens");
  }
  place = value;
  return {};
}

// "0.2" -> 2 tenths.
Status parse_share(const std::string& text, std::optional<int>& place) {
  if (text.size() == 3 && text.starts_with("0.") && text[2] >= '1' && text[2] <= '9') {
    place = text[2] - '0';
    return {};
  }
  return bad_input("--share is \"" + text + "\"; it must be 0.1, 0.2 ... or 0.9");
}

Result<int> parse_number(const std::string& text, const std::string& what,
                         const std::string& source) {
  int number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && stop == text.data() + text.size() && !text.empty()) return number;
  return bad_input(source + ": \"" + text + "\" is not the number of a " + what);
}

struct Range {
  int first = 0;
  int last = 0;
};

// "5" or "4-7", of `count` layers or KV heads.
struct Counted {
  std::string what;  // "layer"
  std::string of;    // "this model"
  int count = 0;
};
Result<Range> parse_range(const std::string& text, const Counted& all, const std::string& source) {
  const std::vector<std::string> ends = split(text, '-');
  Range range;
  KVSWEEP_ASSIGN(range.first, parse_number(ends.front(), all.what, source));
  KVSWEEP_ASSIGN(range.last, parse_number(ends.back(), all.what, source));
  if (ends.size() > 2 || range.first > range.last || range.last >= all.count) {
    return bad_input(source + ": \"" + text + "\" names no " + all.what + "s of " + all.of +
                     "; they are 0 to " + std::to_string(all.count - 1));
  }
  return range;
}

// Gives the heads of `range` this pair and leaves the others theirs.
LayerPairs with_heads(const LayerPairs& layer, int kv_heads, Range range, Pair pair) {
  std::vector<Pair> pairs;
  for (int head = 0; head < kv_heads; ++head) {
    pairs.push_back(head >= range.first && head <= range.last ? pair : layer.of(head));
  }
  return LayerPairs::of_heads(std::move(pairs));
}

// "0" or "0-1" of "5.0-1=K8V4".
struct HeadException {
  Range layers;
  std::string heads;
  Pair pair;
};
Status apply_to_heads(const HeadException& exception, const std::string& source,
                      const ModelGeometry& geometry, PrecisionMap& map) {
  for (int layer = exception.layers.first; layer <= exception.layers.last; ++layer) {
    const int kv_heads = geometry.layers[static_cast<size_t>(layer)].kv_heads;
    const Counted all{"KV head", "layer " + std::to_string(layer), kv_heads};
    KVSWEEP_ASSIGN(const Range range, parse_range(exception.heads, all, source));
    LayerPairs& pairs = map.layers[static_cast<size_t>(layer)];
    // A list of another length is what check_map refuses.
    if (pairs.per_head() && static_cast<int>(pairs.pairs().size()) != kv_heads) continue;
    pairs = with_heads(pairs, kv_heads, range, exception.pair);
  }
  return {};
}

// "5=K8V4", "4-7=K8V4" or "5=K8V4|K4V2" for layers; "5.0=K8V4", "4-7.0-1=K8V4" for KV heads.
Status apply_exception(const std::string& exception, const std::string& source,
                       const ModelGeometry& geometry, PrecisionMap& map) {
  const std::vector<std::string> sides = split(exception, '=');
  const std::vector<std::string> places = split(sides[0], '.');
  if (sides.size() != 2 || places.size() > 2) {
    return bad_input(source + ": \"" + exception +
                     "\" is not LAYER=PAIR, FIRST-LAST=PAIR or LAYER.HEAD=PAIR, such as 5=K8V4 or "
                     "5.0=K8V4");
  }
  KVSWEEP_ASSIGN(const Range layers,
                 parse_range(places[0], {"layer", "this model", map.num_layers()}, source));
  if (places.size() == 2) {
    KVSWEEP_ASSIGN(const Pair pair, pair_from(sides[1]));
    return apply_to_heads({layers, places[1], pair}, source, geometry, map);
  }
  KVSWEEP_ASSIGN(const LayerPairs pairs, layer_pairs_from(sides[1]));
  std::fill(map.layers.begin() + layers.first, map.layers.begin() + layers.last + 1, pairs);
  return {};
}

// "baseline" or "uniform:K4V2", with exceptions after commas.
Result<PrecisionMap> spelled_map(const std::string& source, const Scheme& scheme,
                                 const ModelGeometry& geometry) {
  const std::vector<std::string> parts = split(source, ',');
  const std::string& all = parts.front();
  const std::string pair = all == kBaseline ? all : all.substr(kUniform.size());
  KVSWEEP_ASSIGN(const Pair parsed, pair_from(pair));
  PrecisionMap map = uniform_map(scheme, geometry.num_layers(), parsed);
  std::vector<std::string> places;
  for (size_t i = 1; i < parts.size(); ++i) {
    places.push_back(split(parts[i], '=').front());
    if (std::count(places.begin(), places.end(), places.back()) > 1) {
      return bad_input(source + ": \"" + places.back() + "\" is given twice; give it one pair");
    }
    KVSWEEP_TRY(apply_exception(parts[i], source, geometry, map));
  }
  return map;
}

int longest_head(const ModelGeometry& geometry) {
  int longest = 0;
  for (const LayerGeometry& layer : geometry.layers) longest = std::max(longest, layer.head_dim);
  return longest;
}

}  // namespace

void SchemeFlags::declare(Options& options) {
  options.text("--scheme", "NAME", name, "scheme; see `kvsweep list schemes` (default per-token)");
  options.value("--group", "N", "32, 64, 128 or head (default: of the scheme)",
                [this](const std::string& text) { return parse_group(text, group); });
  options.value(
      "--residual", "TOKENS", "newest tokens that stay exact (default: of the scheme)",
      [this](const std::string& text) { return parse_tokens("--residual", text, residual); });
  options.value("--share", "0.1-0.9", "share of the tokens that stays exact (kvmix, kvmix-total)",
                [this](const std::string& text) { return parse_share(text, share); });
  options.value("--sinks", "TOKENS", "first tokens that stay exact (default 0)",
                [this](const std::string& text) { return parse_tokens("--sinks", text, sinks); });
  options.flag("--symmetric", symmetric, "integer codes without an offset");
  options.value("--hadamard", "SIDES", "rotate keys, values or both before they are coded",
                [this](const std::string& text) -> Status {
                  KVSWEEP_ASSIGN(hadamard, hadamard_from(text));
                  return {};
                });
  options.value("--key-bias", "MODE", "none, or factored: codes of keys without their bias",
                [this](const std::string& text) -> Status {
                  KVSWEEP_ASSIGN(key_bias, key_bias_from(text));
                  return {};
                });
  options.value("--ranges", "FILE", "of `kvsweep calibrate`: calibrated constants for fp8, nvfp4",
                [this](const std::string& text) -> Status {
                  KVSWEEP_ASSIGN(ranges, read_ranges_file(text));
                  return {};
                });
  options.value("--prefill", "MODE", "stepwise or exact (default: of the scheme)",
                [this](const std::string& text) -> Status {
                  KVSWEEP_ASSIGN(prefill, prefill_from(text));
                  return {};
                });
}

Result<SchemeOptions> SchemeFlags::options() const {
  SchemeOptions made;
  if (name) made.name = *name;
  made.group = group;
  made.residual = residual;
  made.share = share;
  made.sinks = sinks;
  made.prefill = prefill;
  if (symmetric) made.symmetric = true;
  made.hadamard = hadamard;
  made.key_bias = key_bias;
  if (ranges) KVSWEEP_TRY(set_ranges(*ranges, made));
  return made;
}

Status check_imported(const std::string& file, const store::ImportedMap& imported,
                      const ModelGeometry& geometry) {
  const Status fits = check_map(imported.map, geometry);
  if (!fits.ok()) return Error{fits.error().code, file + ": " + fits.error().message};
  if (!imported.geometry) return {};
  for (size_t i = 0; i < geometry.layers.size(); ++i) {
    const LayerGeometry& stated = imported.geometry->layers.at(i);
    const LayerGeometry& found = geometry.layers[i];
    if (stated == found) continue;
    return bad_input(file + ": layer " + std::to_string(i) + " has " +
                     std::to_string(stated.kv_heads) + " KV heads of " +
                     std::to_string(stated.head_dim) + " by the file, but " +
                     std::to_string(found.kv_heads) + " of " + std::to_string(found.head_dim) +
                     " in the model; the map was made for another model");
  }
  return {};
}

std::string other_model_note(const std::string& file) {
  return "kvsweep: note: " + file + " was made for another model (its hash differs)";
}

Result<NamedMap> load_map(const std::string& source, const SchemeFlags& scheme,
                          const ModelGeometry& geometry) {
  NamedMap named;
  if (split(source, ',').front() == kBaseline || source.starts_with(kUniform)) {
    KVSWEEP_ASSIGN(const SchemeOptions options, scheme.options());
    KVSWEEP_ASSIGN(const Scheme made, make_scheme(options));
    KVSWEEP_ASSIGN(named.map, spelled_map(source, made, geometry));
    std::vector<Pair> pairs;
    for (const LayerPairs& layer : named.map.layers) {
      pairs.insert(pairs.end(), layer.pairs().begin(), layer.pairs().end());
    }
    if (!named.map.is_baseline())
      KVSWEEP_TRY(check_options_matter(options, pairs, longest_head(geometry)));
  } else {
    std::optional<SchemeOptions> options;
    if (scheme.any()) {
      KVSWEEP_ASSIGN(options, scheme.options());
    }
    KVSWEEP_ASSIGN(store::ImportedMap imported, store::import_map(source, "", options));
    KVSWEEP_TRY(check_imported(source, imported, geometry));
    named.map = std::move(imported.map);
    named.base = imported.base;
    named.model_hash = std::move(imported.model_hash);
  }
  const Status fits = check_map(named.map, geometry);
  if (!fits.ok()) return Error{fits.error().code, source + ": " + fits.error().message};
  return named;
}

}  // namespace kvsweep::cli
