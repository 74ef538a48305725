#include "coordinator/evaluation.hpp"

namespace kvsweep::coordinator {

Evaluation::Evaluation(EvaluationRequest request, store::MeasurementScope scope)
    : request_(std::move(request)), scope_(std::move(scope)) {}

std::vector<std::string> Evaluation::example_hashes() const {
  const auto& all = request_.task->example_hashes;
  return {all.begin(), all.begin() + request_.examples};
}

bool Evaluation::add(const Measurement& measurement) {
  if (measurement.example < 0 || measurement.example >= request_.examples) return false;
  return measured_.emplace(measurement.example, measurement).second;
}

std::vector<int64_t> Evaluation::missing() const {
  std::vector<int64_t> missing;
  for (int64_t example = 0; example < request_.examples; ++example) {
    if (!has(example)) missing.push_back(example);
  }
  return missing;
}

std::vector<Measurement> Evaluation::measurements() const {
  std::vector<Measurement> all;
  all.reserve(measured_.size());
  for (const auto& [example, measurement] : measured_) all.push_back(measurement);
  return all;
}

void Evaluation::fail(Error error) {
  if (!failure_) failure_ = std::move(error);
}

Evaluation::Fate Evaluation::fate() const {
  if (failure_) return Fate::failed;
  return static_cast<int64_t>(measured_.size()) == request_.examples ? Fate::complete
                                                                     : Fate::running;
}

std::shared_ptr<const References> references_from(const std::vector<Measurement>& baseline) {
  auto references = std::make_shared<References>();
  for (const Measurement& m : baseline) (*references)[m.example] = {.tokens = m.tokens};
  return references;
}

}  // namespace kvsweep::coordinator
