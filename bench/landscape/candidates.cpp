// kvsweep_bench_candidates: what a search loses when it is asked for several candidates before it
// is told of the first: maps until it has a share of the true front's hypervolume.
//   kvsweep_bench_candidates --table bench/landscape/reference.csv [--seeds N] [--population N]
// Every map of the space has been measured (bench/landscape/measure), so the truth is known. A row
// per number of candidates at once: median over the seeds of the maps asked for until the
// hypervolume of (bytes, KL) is 95 and 99 % of that of the whole table. The first population is
// asked for 16 at a time throughout, as the coordinator does under exact prefill.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "bench/must.hpp"
#include "core/scheme.hpp"
#include "search/algorithms/algorithm.hpp"
#include "search/pareto/hypervolume.hpp"

namespace kvsweep::bench {
namespace {

constexpr int64_t kFirst = 16;  // of the first population, at once

using search::Genome;
using search::Objectives;

struct Landscape {
  search::Space space;
  std::map<Genome, Objectives> table;
  Objectives reference;  // above all of the table
  double whole = 0;      // hypervolume of all of it
};

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields(1);
  for (const char c : line) {
    if (c == ',') {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  return fields;
}

double hypervolume_of(const std::map<Genome, Objectives>& points, const Objectives& reference) {
  std::vector<Objectives> list;
  for (const auto& [genome, point] : points) list.push_back(point);
  return search::hypervolume(list, reference);
}

// Candidates that the genes stand for do not matter to a search; there are as many as in the table.
Landscape read(const std::string& path) {
  std::ifstream file(path);
  Landscape landscape;
  int highest = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#' || line[0] == 'r') continue;
    const std::vector<std::string> fields = fields_of(line);
    if (fields.size() < 5) fail(path + ": a line without bytes and KL: " + line);
    Genome genome;
    for (const char gene : fields[1]) genome.push_back(gene - '0');
    highest = std::max(highest, *std::max_element(genome.begin(), genome.end()));
    const Objectives point{std::stod(fields[2]), std::stod(fields[4])};
    landscape.table[genome] = point;
    landscape.reference.bytes = std::max(landscape.reference.bytes, 1.01 * point.bytes);
    landscape.reference.loss = std::max(landscape.reference.loss, 1.01 * point.loss);
  }
  if (landscape.table.empty()) fail(path + " cannot be read, or holds no maps");
  const std::vector<Codec> codecs = {Codec::int2, Codec::int3, Codec::int4, Codec::int8,
                                     Codec::base};
  if (highest >= static_cast<int>(codecs.size())) fail(path + ": a gene above 4");
  const size_t groups = landscape.table.begin()->first.size();
  for (size_t group = 0; group < groups; ++group) {
    landscape.space.groups.push_back({.layers = {static_cast<int>(group)}});
    for (int gene = 0; gene <= highest; ++gene) {
      const Codec codec = codecs[static_cast<size_t>(gene)];
      landscape.space.groups.back().candidates.push_back({codec, codec});
    }
  }
  landscape.whole = hypervolume_of(landscape.table, landscape.reference);
  return landscape;
}

struct Cost {
  int64_t to_95 = -1;  // maps asked for
  int64_t to_99 = -1;
};

Cost search_once(const Landscape& landscape, int population, uint64_t seed, int64_t at_once) {
  const auto algorithm = must(
      search::make_algorithm("nsga2", landscape.space, {.population = population, .seed = seed}));
  std::map<Genome, Objectives> found;
  Cost cost;
  int64_t asked = 0;
  while (cost.to_99 < 0) {
    std::vector<search::Proposal> batch;
    const int64_t count = std::max(at_once, std::min(kFirst, population - asked));
    for (int64_t i = 0; i < count; ++i) {
      const auto proposal = algorithm->ask();
      if (!proposal) break;
      batch.push_back(*proposal);
      ++asked;
    }
    if (batch.empty()) fail("the space was exhausted below 99 %");
    for (const search::Proposal& proposal : batch) {
      const Objectives point = landscape.table.at(proposal.genome);
      found[proposal.genome] = point;
      algorithm->tell({.number = proposal.number, .genome = proposal.genome, .objectives = point});
    }
    const double share = hypervolume_of(found, landscape.reference) / landscape.whole;
    if (share >= 0.95 && cost.to_95 < 0) cost.to_95 = asked;
    if (share >= 0.99) cost.to_99 = asked;
  }
  return cost;
}

int64_t median(std::vector<int64_t> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void run(int count, char** arguments) {
  std::string table;
  int64_t seeds = 51;
  int64_t population = 24;
  each_option(count, arguments, [&](const std::string& name, const std::string& value) {
    if (name == "--table") {
      table = value;
    } else if (name == "--seeds") {
      seeds = number(value);
    } else if (name == "--population") {
      population = number(value, 2);
    } else {
      fail("unknown option " + name);
    }
  });
  if (table.empty()) fail("--table FILE is needed");
  const Landscape landscape = read(table);
  fmt::print("# {}: {} maps; median of {} seeds, population {}\n", table, landscape.table.size(),
             seeds, population);
  fmt::print("candidates,maps_to_95,maps_to_99,more_to_95,more_to_99\n");
  Cost one;
  for (const int64_t at_once : {1, 2, 4, 8, 12, 16, 24, 32}) {
    std::vector<int64_t> to_95;
    std::vector<int64_t> to_99;
    for (int64_t seed = 1; seed <= seeds; ++seed) {
      const Cost cost = search_once(landscape, static_cast<int>(population),
                                    static_cast<uint64_t>(seed), at_once);
      to_95.push_back(cost.to_95);
      to_99.push_back(cost.to_99);
    }
    const Cost cost{median(to_95), median(to_99)};
    if (at_once == 1) one = cost;
    const auto more = [](int64_t value, int64_t base) {
      return static_cast<double>(value) / static_cast<double>(base);
    };
    fmt::print("{},{},{},{:.2f},{:.2f}\n", at_once, cost.to_95, cost.to_99,
               more(cost.to_95, one.to_95), more(cost.to_99, one.to_99));
  }
}

}  // namespace
}  // namespace kvsweep::bench

int main(int count, char** arguments) {
  kvsweep::bench::run(count, arguments);
  return 0;
}
