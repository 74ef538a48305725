#include "core/log.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/file.hpp"
#include "tests/support/temp_dir.hpp"

namespace kvsweep {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

class Log : public ::testing::Test {
 protected:
  ~Log() override {
    log::before_write({});
    log::init(log::Level::info);
  }
  test::TempDir dir_;
};

TEST_F(Log, OneLineWithUtcTimeLevelPartAndMessage) {
  log::init(log::Level::info, dir_.file("log"));
  log::info("store", "100 % of {} written");  // braces and percents are only text
  log::debug("store", "too detailed");
  const std::string text = *read_file(dir_.file("log"));
  EXPECT_THAT(text, MatchesRegex("[0-9]+-[0-9]+-[0-9]+T[0-9]+:[0-9]+:[0-9]+\\.[0-9]+Z info +"
                                 "store: 100 % of .. written\n"));
  EXPECT_THAT(text, Not(HasSubstr("too detailed")));
}

TEST_F(Log, HookRunsBeforeLinesThatAreWritten) {
  log::init(log::Level::warn, dir_.file("log"));
  int calls = 0;
  log::before_write([&] { ++calls; });
  log::info("a", "filtered");
  EXPECT_EQ(calls, 0);
  log::error("a", "written");
  EXPECT_EQ(calls, 1);
}

TEST_F(Log, FileThatCannotBeWrittenFallsBackToStandardError) {
  ::testing::internal::CaptureStderr();
  log::init(log::Level::warn, "/proc/no/such/log");
  log::error("a", "still heard");
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, HasSubstr("standard error instead"));
  EXPECT_THAT(text, HasSubstr("still heard"));
}

TEST(LogLevel, Names) {
  EXPECT_EQ(log::level_from("warn"), log::Level::warn);
  EXPECT_FALSE(log::level_from("WARN").has_value());
}

}  // namespace
}  // namespace kvsweep
