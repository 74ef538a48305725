#include <string>

#include "core/text.hpp"
#include "search/algorithms/algorithm.hpp"

namespace kvsweep::search {

#define KVSWEEP_ALGORITHM(id, name, summary) \
  Result<std::unique_ptr<Algorithm>> make_##id(const Space& space, const AlgorithmOptions& options);
#include "search/algorithms/algorithms.def"
#undef KVSWEEP_ALGORITHM

namespace {

Status check_options(const Space& space, const AlgorithmOptions& options) {
  if (space.groups.empty()) return bad_input("the search space has no layer groups");
  for (size_t i = 0; i < space.groups.size(); ++i) {
    if (space.groups[i].candidates.empty()) {
      return bad_input("layer group " + std::to_string(i) + " has no candidate pairs");
    }
  }
  if (options.population < 2) {
    return bad_input("search.population is " + std::to_string(options.population) +
                     "; it must be at least 2");
  }
  for (size_t i = 0; i < options.initial.size(); ++i) {
    if (!space.contains(options.initial[i])) {
      return bad_input("initial genome " + std::to_string(i) +
                       " lies outside the search space; its genes must be candidate indices, one " +
                       "for each of the " + std::to_string(space.groups.size()) + " groups");
    }
  }
  return {};
}

}  // namespace

const std::vector<AlgorithmInfo>& algorithms() {
  static const std::vector<AlgorithmInfo> table = {
#define KVSWEEP_ALGORITHM(id, name, summary) {name, summary},
#include "search/algorithms/algorithms.def"
#undef KVSWEEP_ALGORITHM
  };
  return table;
}

Result<std::unique_ptr<Algorithm>> make_algorithm(const std::string& name, const Space& space,
                                                  const AlgorithmOptions& options) {
  KVSWEEP_TRY(check_options(space, options));
#define KVSWEEP_ALGORITHM(id, public_name, summary) \
  if (name == public_name) return make_##id(space, options);
#include "search/algorithms/algorithms.def"
#undef KVSWEEP_ALGORITHM
  std::vector<std::string> known;
  for (const AlgorithmInfo& algorithm : algorithms()) known.emplace_back(algorithm.name);
  const std::string nearest = nearest_word(name, known);
  return not_found("there is no search algorithm \"" + name + "\"" +
                   (nearest.empty() ? "" : "; did you mean \"" + nearest + "\"?") +
                   " (known: " + join(known, ", ") + ")");
}

}  // namespace kvsweep::search
