// ProgressPrinter: what a run shows while it lasts, on standard error.
//   terminal   one line that is rewritten, with a bar
//   pipe       a plain line every few seconds, and whenever the phase changes
//   json       one JSON object per line, at the pace of the pipe
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include "cli/terminal.hpp"
#include "coordinator/coordinator.hpp"
#include "core/clock.hpp"

namespace kvsweep::cli {

// One line of plain text, without colours. `what` is counted: "trials".
std::string progress_text(const coordinator::StudyProgress& progress,
                          const std::string& what = "trials");
std::string progress_json(const coordinator::StudyProgress& progress);  // without line end
// "[####......]", 12 columns.
std::string progress_bar(int64_t done, int64_t budget);

// Thread-safe.
class ProgressPrinter {
 public:
  ProgressPrinter(const Terminal& terminal, const Clock& clock, bool json,
                  std::string what = "trials");
  ~ProgressPrinter();  // ends the live line
  ProgressPrinter(const ProgressPrinter&) = delete;
  ProgressPrinter& operator=(const ProgressPrinter&) = delete;

  void show(const coordinator::StudyProgress& progress);
  void line(const std::string& text);  // a line of its own, above the live one
  void end();

 private:
  void clear();  // the live line; the caller holds `mutex_`

  const Terminal& terminal_;
  const Clock& clock_;
  const bool json_;
  const std::string what_;
  std::mutex mutex_;
  bool live_ = false;
  int64_t last_ms_ = INT64_MIN;
  std::string last_phase_;
  std::string last_study_;
};

}  // namespace kvsweep::cli
