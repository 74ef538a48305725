#include "cli/progress.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "core/json.hpp"
#include "core/log.hpp"

namespace kvsweep::cli {
namespace {

coordinator::StudyProgress sample() {
  coordinator::StudyProgress p;
  p.study = "smollm2";
  p.phase = "searching";
  p.trials_done = 37;
  p.trials_budget = 60;
  p.trials_reused = 12;
  p.examples_done = 96;
  p.workers_live = 2;
  p.workers_busy = 1;
  p.trials_per_minute = 4.23;
  p.eta_seconds = 330;
  store::TrialRow best;
  best.number = 17;
  best.effective_bits = 5.307;
  best.loss = 0.0123;
  p.best = best;
  return p;
}

// Collects what a printer writes to a pipe-like file.
class Written {
 public:
  Written() : file_(std::tmpfile()) {}
  ~Written() { std::fclose(file_); }
  std::FILE* file() const { return file_; }
  std::string text() const {
    std::fflush(file_);
    std::rewind(file_);
    std::string all;
    char block[256];
    while (const size_t n = std::fread(block, 1, sizeof block, file_)) all.append(block, n);
    return all;
  }

 private:
  std::FILE* file_;
};

TEST(ProgressText, SaysRateEtaBestAndWorkers) {
  EXPECT_EQ(progress_text(sample()),
            "smollm2: searching  37/60 trials (12 reused)  96 examples  4.2/min  ETA 5 m 30 s  "
            "workers 1/2 busy  best #17: 5.31 bits, loss 0.0123");
  coordinator::StudyProgress early;
  early.study = "s";
  early.phase = "waiting for a worker";
  EXPECT_EQ(progress_text(early), "s: waiting for a worker  workers 0/0 busy");
}

TEST(ProgressText, JsonHoldsTheSame) {
  const auto json = parse_json(progress_json(sample()), "progress");
  ASSERT_TRUE(json.ok());
  EXPECT_EQ(json->at("trials_done"), 37);
  EXPECT_EQ(json->at("best").at("number"), 17);
  coordinator::StudyProgress early;
  EXPECT_TRUE(parse_json(progress_json(early), "progress")->at("eta_seconds").is_null());
}

TEST(ProgressBar, FillsByShare) {
  EXPECT_EQ(progress_bar(0, 60), "[..........]");
  EXPECT_EQ(progress_bar(37, 60), "[######....]");  // 6.2 tenths
  EXPECT_EQ(progress_bar(60, 60), "[##########]");
  EXPECT_EQ(progress_bar(99, 60), "[##########]");
  EXPECT_EQ(progress_bar(1, 0), "[..........]");
}

TEST(ProgressPrinter, PlainLinesAreRareButNewPhasesAreShownAtOnce) {
  const Written written;
  const Terminal terminal(written.file());
  ManualClock clock;
  {
    ProgressPrinter printer(terminal, clock, false);
    coordinator::StudyProgress p = sample();
    printer.show(p);  // line 1
    for (int i = 0; i < 10; ++i) {
      clock.advance(900);
      printer.show(p);  // 9 s in all: nothing
    }
    clock.advance(1000);
    printer.show(p);  // line 2: 10 s later
    p.phase = "reporting";
    printer.show(p);  // line 3
  }
  const std::string text = written.text();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3) << text;
  EXPECT_EQ(text.find('\r'), std::string::npos);
}

// A terminal of 60 columns, and what was written to it.
class PseudoTerminal {
 public:
  PseudoTerminal() : master_(::posix_openpt(O_RDWR | O_NOCTTY)) {
    if (master_ < 0 || ::grantpt(master_) != 0 || ::unlockpt(master_) != 0) return;
    file_ = std::fopen(::ptsname(master_), "w");
    if (file_ == nullptr) return;
    const winsize size{24, 60, 0, 0};
    ::ioctl(master_, TIOCSWINSZ, &size);
    ::setenv("TERM", "xterm", 1);
  }
  ~PseudoTerminal() {
    if (file_ != nullptr) std::fclose(file_);
    if (master_ >= 0) ::close(master_);
  }
  std::FILE* file() const { return file_; }
  // What was written since the last call. The kernel hands it over in pieces and in its own time,
  // so a mark is sent behind it and waited for.
  std::string text() const {
    constexpr char kMark = '\x1e';
    std::fputc(kMark, file_);
    std::fflush(file_);
    std::string all;
    char byte = 0;
    while (::read(master_, &byte, 1) == 1 && byte != kMark) all += byte;
    return all;
  }

 private:
  int master_;
  std::FILE* file_ = nullptr;
};

TEST(ProgressPrinter, OneLineThatIsRewrittenOnATerminal) {
  const PseudoTerminal pty;
  if (pty.file() == nullptr) GTEST_SKIP() << "no pseudo-terminals here";
  const Terminal terminal(pty.file());
  ASSERT_TRUE(terminal.interactive());
  EXPECT_EQ(terminal.width(), 60);
  ManualClock clock;
  ProgressPrinter printer(terminal, clock, false);
  printer.show(sample());
  const std::string first = pty.text();
  EXPECT_EQ(first.substr(0, 4), "\r\033[K");
  EXPECT_EQ(first.find('\n'), std::string::npos);
  EXPECT_EQ(display_width(first.substr(4)), 59u);  // cut, so that it never wraps
  EXPECT_EQ(first.substr(4, 22), "[######....] smollm2: ");
  // A log line does not stick to it: the live line is cleared first.
  log::warn("test", "something happened");
  EXPECT_EQ(pty.text(), "\r\033[K");
  printer.show(sample());
  pty.text();
  printer.line("a line of its own");
  EXPECT_EQ(pty.text(), "\r\033[Ka line of its own\r\n");
  printer.show(sample());
  pty.text();
  printer.end();
  EXPECT_EQ(pty.text(), "\r\n");
}

TEST(Terminal, ColoursOnATerminalUnlessNoColor) {
  const PseudoTerminal pty;
  if (pty.file() == nullptr) GTEST_SKIP() << "no pseudo-terminals here";
  ::unsetenv("NO_COLOR");
  EXPECT_EQ(Terminal(pty.file()).bold("x"), "\033[1mx\033[0m");
  ::setenv("NO_COLOR", "1", 1);
  EXPECT_EQ(Terminal(pty.file()).bold("x"), "x");
  EXPECT_TRUE(Terminal(pty.file()).interactive());
  ::unsetenv("NO_COLOR");
  const Written file;
  EXPECT_EQ(Terminal(file.file()).bold("x"), "x");
}

}  // namespace
}  // namespace kvsweep::cli
