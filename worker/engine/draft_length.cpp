#include "worker/engine/draft_length.hpp"

#include <algorithm>

namespace kvsweep::engine {
namespace {

// Of SmolLM2-135M on two processors: 1 to 8 rows take 60 ms, each further one about 3.3.
constexpr double kUsualSlope = 0.055;
constexpr double kLeastSlope = 0.005;
constexpr double kMostSlope = 1.0;
constexpr double kForget = 0.97;      // of the older steps, at each new one
constexpr double kUsualWeight = 1.0;  // steps that the usual slope stands for, at 1 and 32 rows
constexpr double kOutlier = 2.0;      // times what is expected: another process ran
constexpr double kLeastGain = 1.15;   // of a row's tokens per cost over those of the step

double usual(double rows) {
  return 1 + kUsualSlope * rows;
}

}  // namespace

// Errors are in proportion to the time, hence the weights.
void StepCost::observe(int64_t count, double ms) {
  if (count < 1 || !(ms > 0)) return;
  const auto rows = static_cast<double>(count);
  if (seen_ > 3) ms = std::min(ms, kOutlier * usual_ / seen_ * usual(rows));
  const double weight = 1 / (usual(rows) * usual(rows));
  for (double* sum : {&weight_, &rows_, &squares_, &times_, &products_, &usual_, &seen_}) {
    *sum *= kForget;
  }
  weight_ += weight;
  rows_ += weight * rows;
  squares_ += weight * rows * rows;
  times_ += weight * ms;
  products_ += weight * rows * ms;
  usual_ += ms / usual(rows);
  seen_ += 1;
}

double StepCost::slope() const {
  if (seen_ == 0) return kUsualSlope;
  double n = weight_, x = rows_, xx = squares_, y = times_, xy = products_;
  for (const double rows : {1.0, 32.0}) {
    const double weight = kUsualWeight / (usual(rows) * usual(rows));
    const double ms = usual_ / seen_ * usual(rows);
    n += weight;
    x += weight * rows;
    xx += weight * rows * rows;
    y += weight * ms;
    xy += weight * rows * ms;
  }
  const double row = n * xy - x * y;  // both times the same positive determinant
  const double step = xx * y - x * xy;
  if (row <= 0) return kLeastSlope;
  if (step * kMostSlope <= row) return kMostSlope;
  return std::max(kLeastSlope, row / step);
}

void choose_lengths(double slope, int64_t decoding, int64_t room, std::vector<Offer>& offers) {
  std::vector<double> gains;
  for (Offer& offer : offers) {
    offer.count = 0;
    gains.push_back(offer.chance);
  }
  auto tokens = static_cast<double>(decoding);
  double cost = 1 + slope * tokens;
  for (; room > 0; --room) {
    size_t best = offers.size();
    for (size_t i = 0; i < offers.size(); ++i) {
      if (offers[i].count == offers[i].most) continue;
      if (best == offers.size() || gains[i] > gains[best]) best = i;
    }
    if (best == offers.size() || gains[best] * cost <= kLeastGain * slope * tokens) return;
    ++offers[best].count;
    tokens += gains[best];
    cost += slope;
    gains[best] *= offers[best].chance;
  }
}

}  // namespace kvsweep::engine
