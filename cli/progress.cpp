#include "cli/progress.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/trial_view.hpp"
#include "core/json.hpp"
#include "core/log.hpp"
#include "core/text.hpp"

namespace kvsweep::cli {
namespace {

constexpr int64_t kPlainEveryMs = 10000;
constexpr int64_t kBarColumns = 10;

}  // namespace

std::string progress_bar(int64_t done, int64_t budget) {
  const int64_t filled =
      budget > 0 ? std::clamp<int64_t>(done * kBarColumns / budget, 0, kBarColumns) : 0;
  return "[" + std::string(static_cast<size_t>(filled), '#') +
         std::string(static_cast<size_t>(kBarColumns - filled), '.') + "]";
}

std::string progress_text(const coordinator::StudyProgress& p, const std::string& what) {
  std::string text = fmt::format("{}: {}", p.study.empty() ? "evaluation" : p.study, p.phase);
  if (p.trials_budget > 0) text += fmt::format("  {}/{} {}", p.trials_done, p.trials_budget, what);
  std::vector<std::string> notes;
  if (p.trials_reused > 0) notes.push_back(fmt::format("{} reused", p.trials_reused));
  if (p.trials_failed > 0) notes.push_back(fmt::format("{} failed", p.trials_failed));
  if (!notes.empty()) text += " (" + join(notes, ", ") + ")";
  if (p.examples_done > 0) text += fmt::format("  {} examples", p.examples_done);
  if (p.trials_per_minute > 0) text += fmt::format("  {:.1f}/min", p.trials_per_minute);
  if (p.eta_seconds >= 0) text += "  ETA " + human_seconds(p.eta_seconds);
  text += fmt::format("  workers {}/{} busy", p.workers_busy, p.workers_live);
  if (p.best) {
    text += fmt::format("  best #{}: {:.2f} bits", p.best->number, p.best->effective_bits);
    if (p.best->loss) text += ", loss " + decimal(*p.best->loss);
  }
  return text;
}

std::string progress_json(const coordinator::StudyProgress& p) {
  Json json = {{"study", p.study},
               {"phase", p.phase},
               {"trials_done", p.trials_done},
               {"trials_budget", p.trials_budget},
               {"trials_reused", p.trials_reused},
               {"trials_failed", p.trials_failed},
               {"examples_done", p.examples_done},
               {"workers_live", p.workers_live},
               {"workers_busy", p.workers_busy},
               {"trials_per_minute", p.trials_per_minute},
               {"hypervolume", p.hypervolume}};
  json["eta_seconds"] = p.eta_seconds >= 0 ? Json(p.eta_seconds) : Json();
  json["best"] = Json();
  if (p.best) {
    json["best"] = {{"number", p.best->number},
                    {"bytes", p.best->bytes},
                    {"effective_bits", p.best->effective_bits}};
    if (p.best->loss) json["best"]["loss"] = *p.best->loss;
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

ProgressPrinter::ProgressPrinter(const Terminal& terminal, const Clock& clock, bool json,
                                 std::string what)
    : terminal_(terminal), clock_(clock), json_(json), what_(std::move(what)) {
  // A log line must not be glued to the live one.
  log::before_write([this] {
    const std::lock_guard lock(mutex_);
    clear();
  });
}

ProgressPrinter::~ProgressPrinter() {
  log::before_write({});
  end();
}

void ProgressPrinter::clear() {
  if (live_) terminal_.print("\r\033[K");
  live_ = false;
}

void ProgressPrinter::show(const coordinator::StudyProgress& progress) {
  const std::lock_guard lock(mutex_);
  if (terminal_.interactive() && !json_) {
    const std::string bar = progress.trials_budget > 0
                                ? progress_bar(progress.trials_done, progress.trials_budget) + " "
                                : "";
    const auto width = static_cast<size_t>(std::max(20, terminal_.width() - 1));
    terminal_.print("\r\033[K" + shortened(bar + progress_text(progress, what_), width));
    live_ = true;
    return;
  }
  const int64_t now = clock_.steady_ms();
  const bool news = progress.phase != last_phase_ || progress.study != last_study_;
  if (!news && last_ms_ != INT64_MIN && now - last_ms_ < kPlainEveryMs) return;
  last_ms_ = now;
  last_phase_ = progress.phase;
  last_study_ = progress.study;
  terminal_.print((json_ ? progress_json(progress) : progress_text(progress, what_)) + "\n");
}

void ProgressPrinter::line(const std::string& text) {
  const std::lock_guard lock(mutex_);
  clear();
  terminal_.print(text + "\n");
}

void ProgressPrinter::end() {
  const std::lock_guard lock(mutex_);
  if (live_) terminal_.print("\n");
  live_ = false;
}

}  // namespace kvsweep::cli
