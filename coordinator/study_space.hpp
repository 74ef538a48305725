// StudySpace: what a study may choose from and what a choice costs: groups and candidates, exact
// cache bytes, the hard limit. No torch: bytes come from core/catalog/page_layout.
#pragma once

#include <string>
#include <vector>

#include "core/geometry.hpp"
#include "core/precision_map.hpp"
#include "core/result.hpp"
#include "core/study_spec.hpp"
#include "search/algorithms/algorithm.hpp"
#include "search/space/space.hpp"

namespace kvsweep::coordinator {

struct MapCost {
  double bytes = 0;           // of `at.batch` sequences of `at.context` tokens
  double effective_bits = 0;  // per element
};

class StudySpace {
 public:
  // bad_input when the scheme, the groups or a candidate do not fit the model, or no map of the
  // space fits limits.max_bits.
  static Result<StudySpace> make(const StudySpec& spec, const ModelGeometry& geometry);

  const search::Space& space() const { return space_; }
  const Scheme& scheme() const { return scheme_; }
  PrecisionMap decode(const search::Genome& genome) const { return space_.decode(genome, scheme_); }
  PrecisionMap baseline() const { return baseline_map(scheme_, geometry_.num_layers()); }
  MapCost cost(const PrecisionMap& map) const;

  // limits.max_bits; empty when there is none.
  search::HardLimit hard_limit() const;
  // Every uniform map of the space, lightest first: anchors of the first population.
  std::vector<search::Genome> uniform_genomes() const;
  // Effective bits of the lightest map.
  double least_bits() const;

 private:
  Scheme scheme_;
  search::Space space_;
  ModelGeometry geometry_;
  BaseType base_ = BaseType::fp16;
  AtSpec at_;
  LimitsSpec limits_;
};

}  // namespace kvsweep::coordinator
