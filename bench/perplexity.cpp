// kvsweep_bench_perplexity: what uniform maps do to the perplexity of a text, under every scheme,
// as a Markdown table.
//   kvsweep_bench_perplexity --model PATH --text FILE [--windows N] [--tokens N] [--threads N]
//                            [--schemes all|stored|reference]
// Reference schemes code again what was coded, token by token: they take many times longer.
// The text is cut into windows of --tokens tokens without overlap; of each all but the first are
// predicted, in the order of decoding through the packed cache, so that every token sees the codes
// of those before it (the prompt is one token, hence nothing is seen exact but what the scheme
// keeps). Beside perplexity: the share of positions whose most likely token is that of the
// unquantized cache, and the KL to it in nats per token. Rows of one run are comparable, not those
// of other windows.
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "bench/must.hpp"
#include "bench/text_windows.hpp"
#include "core/catalog/page_layout.hpp"
#include "core/precision_map.hpp"
#include "core/scheme.hpp"
#include "worker/engine/engine.hpp"
#include "worker/engine/environment.hpp"
#include "worker/text/tokenizer.hpp"

namespace kvsweep::bench {
namespace {

struct Options {
  std::string model;
  std::string text;
  int64_t windows = 8;
  int64_t tokens = 512;
  int64_t threads = 1;
  std::string schemes = "all";
};

Options parse(int count, char** arguments) {
  Options options;
  each_option(count, arguments, [&](const std::string& name, const std::string& value) {
    if (name == "--model") {
      options.model = value;
    } else if (name == "--text") {
      options.text = value;
    } else if (name == "--windows") {
      options.windows = number(value);
    } else if (name == "--tokens") {
      options.tokens = number(value, 2);
    } else if (name == "--threads") {
      options.threads = number(value);
    } else if (name == "--schemes") {
      if (value != "all" && value != "stored" && value != "reference") {
        fail("--schemes is " + value + "; allowed are all, stored and reference");
      }
      options.schemes = value;
    } else {
      fail("unknown option " + name);
    }
  });
  if (options.model.empty() || options.text.empty()) fail("--model PATH --text FILE are needed");
  return options;
}

std::vector<engine::SequenceRequest> windows(const Options& options) {
  std::vector<engine::SequenceRequest> list;
  for (const auto& window :
       text_windows(options.model, options.text, options.windows, options.tokens)) {
    engine::SequenceRequest& request = list.emplace_back();
    request.prompt = {window.front()};
    request.reference.assign(window.begin() + 1, window.end());
  }
  return list;
}

struct Row {
  std::string scheme;
  PrecisionMap map;
};

std::vector<Row> rows(int layers, const std::string& which) {
  std::vector<Row> list = {{"", baseline_map({}, layers)}};
  for (const SchemeInfo& info : schemes()) {
    if (which == (info.reference() ? "stored" : "reference")) continue;
    const Scheme scheme = must(make_scheme({.name = std::string(info.name)}));
    for (const char* name : {"K8V8", "K4V4", "K4V2", "K2V2", "Kfp8Vfp8"}) {
      const Pair pair = must(pair_from(name));
      if (!scheme.objection(pair).empty()) continue;
      list.push_back({std::string(info.name), uniform_map(scheme, layers, pair)});
    }
  }
  return list;
}

struct Sums {
  double nll = 0;
  double kl = 0;
  double agreement = 0;
};

// Means over the windows, which have equally many tokens.
Sums means(const std::vector<engine::SequenceOutput>& outputs) {
  Sums sums;
  const auto count = static_cast<double>(outputs.size());
  for (const engine::SequenceOutput& output : outputs) {
    sums.nll += output.nll / count;
    sums.kl += output.kl / count;
    sums.agreement += output.token_agreement / count;
  }
  return sums;
}

void run(const Options& options) {
  engine::EngineOptions settings;
  settings.threads = static_cast<int>(options.threads);
  settings.cache_budget_bytes = int64_t{4} << 30;
  engine::Engine engine = must(engine::Engine::load(options.model, settings));
  const auto list = rows(engine.geometry().num_layers(), options.schemes);
  const auto texts = windows(options);
  fmt::print("{}, {} windows of {} tokens of {}; {}\n\n", options.model, options.windows,
             options.tokens, options.text, engine::Engine::numerics_class());
  fmt::print("| scheme | map | effective bits | perplexity | token agreement | KL per token |\n");
  fmt::print("| --- | --- | --- | --- | --- | --- |\n");
  for (const Row& row : list) {
    const Sums sums = means(must(engine.run(row.map, texts, {})));
    const CacheLayout layout = cache_layout(row.map, engine.geometry(), BaseType::fp16);
    fmt::print("| {} | {} | {:.2f} | {:.3f} | {:.2f} % | {:.2g} |\n", row.scheme,
               row.scheme.empty() ? "K16V16" : summary(row.map),
               effective_bits(layout, engine.geometry(), options.tokens), std::exp(sums.nll),
               100 * sums.agreement, sums.kl);
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace kvsweep::bench

int main(int count, char** arguments) {
  kvsweep::engine::prepare_environment();
  kvsweep::bench::run(kvsweep::bench::parse(count, arguments));
  return 0;
}
