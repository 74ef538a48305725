#include "worker/task/ruler/generator.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace kvsweep::task::ruler {
namespace {

constexpr int kDrawBits = 32;  // far more draws than a row takes

}  // namespace

Generator::Generator(const GeneratorOptions& options, const Material& material,
                     TokenCounter counter, std::unique_ptr<Subtask> subtask)
    : options_(options),
      material_(&material),
      counter_(std::move(counter)),
      subtask_(std::move(subtask)) {
  if (!options_.accept) options_.accept = [](const std::string& /*facts*/) { return true; };
}

Result<Generator> Generator::open(const GeneratorOptions& options, const Material& material,
                                  TokenCounter counter) {
  KVSWEEP_ASSIGN(std::unique_ptr<Subtask> subtask, make_subtask(options.subtask, options.length));
  Generator generator(options, material, std::move(counter), std::move(subtask));
  KVSWEEP_TRY(generator.find_units());
  return generator;
}

Result<Row> Generator::make(int64_t index, int64_t units) const {
  Rng rng(static_cast<uint64_t>(options_.seed), "ruler/" + options_.subtask + "/" + options_.stream,
          static_cast<uint64_t>(index) << kDrawBits);
  Text text = subtask_->text(*material_, units, options_.accept, rng);
  Row row;
  row.index = index;
  KVSWEEP_ASSIGN(const int64_t tokens, counter_(text.input + text.answer_prefix));
  row.length = tokens + subtask_->answer_tokens();
  row.input = std::move(text.input);
  row.answer_prefix = std::move(text.answer_prefix);
  row.outputs = std::move(text.outputs);
  return row;
}

// Two short rows give the tokens of a unit, and so a first guess, which a row of that size
// corrects; from there the bracket [fits, too_long) is found by doubled steps and halved. Only a
// few long rows are counted.
Status Generator::find_units() {
  const int64_t least = subtask_->min_units();
  const int64_t most = subtask_->max_units(*material_, options_.length);
  KVSWEEP_ASSIGN(const Row shortest, make(0, least));
  if (shortest.length > options_.length) {
    return bad_input("ruler/" + options_.subtask + ": length is " +
                     std::to_string(options_.length) + " tokens, but its shortest prompt and " +
                     "answer take " + std::to_string(shortest.length) +
                     " with this tokenizer; give a greater length");
  }
  units_ = least;
  if (most == least) return {};
  int64_t guess = std::min(most, 4 * least + 16);
  for (int i = 0; i < 2; ++i) {
    KVSWEEP_ASSIGN(const Row longer, make(0, guess));
    tokens_per_unit_ = std::max(0.1, static_cast<double>(longer.length - shortest.length) /
                                         static_cast<double>(guess - least));
    around_ = static_cast<double>(shortest.length) - tokens_per_unit_ * static_cast<double>(least);
    const double room = static_cast<double>(options_.length - shortest.length) / tokens_per_unit_;
    guess = std::clamp(least + static_cast<int64_t>(room), least + 1, most);
  }
  int64_t too_long = most + 1;
  for (int64_t step = 1; units_ + 1 < too_long; step *= 2) {
    guess = std::clamp(guess, units_ + 1, too_long - 1);
    KVSWEEP_ASSIGN(const Row row, make(0, guess));
    const bool fitting = row.length <= options_.length;
    (fitting ? units_ : too_long) = guess;
    const bool bracketed = units_ > least && too_long <= most;
    guess = bracketed ? (units_ + too_long) / 2 : guess + (fitting ? step : -step);
  }
  return allow_for_spread();
}

// Rows of one size differ by what they ask for. What a few differ by is left free, so that most
// rows are counted once.
Status Generator::allow_for_spread() {
  constexpr int64_t kProbes = 4;
  int64_t shortest = options_.length;
  int64_t longest = 0;
  for (int64_t i = 0; i < kProbes; ++i) {
    KVSWEEP_ASSIGN(const Row row, make(i, units_));
    shortest = std::min(shortest, row.length);
    longest = std::max(longest, row.length);
  }
  const int64_t wanted = longest + (longest - shortest) / 2 - options_.length;
  const auto excess = static_cast<double>(std::min(wanted, slack()));
  if (excess > 0) units_ -= static_cast<int64_t>(std::ceil(excess / tokens_per_unit_));
  units_ = std::max(units_, subtask_->min_units());
  return {};
}

// A row that is much too short (its words may take fewer tokens than those of the first rows) grows
// once; one that is too long shrinks until it fits.
Result<Row> Generator::row(int64_t index) const {
  int64_t units = units_;
  for (int step = 0;; ++step) {
    KVSWEEP_ASSIGN(Row row, make(index, units));
    const int64_t free = options_.length - row.length;
    const int64_t most = subtask_->max_units(*material_, options_.length);
    const double per_unit =
        std::max(0.1, (static_cast<double>(row.length) - around_) / static_cast<double>(units));
    const auto room =
        std::min(static_cast<int64_t>(static_cast<double>(free) / per_unit), most - units);
    if (free >= 0 && (step > 0 || room < 1 || free <= slack())) return row;
    if (free > 0) {
      units += room;
      continue;
    }
    if (units == subtask_->min_units()) {
      return bad_input("ruler/" + options_.subtask + ": row " + std::to_string(index) + " takes " +
                       std::to_string(row.length) + " tokens, but length is " +
                       std::to_string(options_.length) + "; give a greater length");
    }
    const double excess = static_cast<double>(-free) / per_unit;
    units = std::max(units - std::max<int64_t>(1, static_cast<int64_t>(std::ceil(excess))),
                     subtask_->min_units());
  }
}

}  // namespace kvsweep::task::ruler
