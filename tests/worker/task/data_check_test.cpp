#include "worker/task/data_check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/hash.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/worker/task/task_testing.hpp"

namespace kvsweep::task {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(DataCheck, FoundBrokenAndMissing) {
  const test::TempDir dir;
  testing::write_tiny_gsm8k(dir.path(), 7, 3);
  const std::string row = Json{{"input", "i"},
                               {"context", "c"},
                               {"answers", {"a"}},
                               {"all_classes", nullptr},
                               {"length", 2}}
                              .dump() +
                          "\n";
  std::filesystem::create_directories(dir.path() / "longbench/full");
  std::ofstream(dir.path() / "longbench/qasper.jsonl") << row << row;
  std::ofstream(dir.path() / "longbench/full/lcc.jsonl") << row;
  std::ostringstream out;
  const std::string folder = dir.path().string();
  ASSERT_TRUE(check_data(folder, out).ok());
  EXPECT_THAT(out.str(), HasSubstr("gsm8k/train.jsonl                                  7  "));
  EXPECT_THAT(out.str(), HasSubstr("longbench/qasper.jsonl                             2  " +
                                   sha256_hex(row + row)));
  EXPECT_THAT(out.str(), HasSubstr("longbench/full/lcc.jsonl                           1  "));
  EXPECT_THAT(out.str(), HasSubstr("missing; THUDM/LongBench publishes:\n"));
  EXPECT_THAT(out.str(), HasSubstr("  longbench/qasper_e.jsonl\n"));
  EXPECT_THAT(out.str(), Not(HasSubstr("  longbench/qasper.jsonl\n")));

  std::ofstream(dir.path() / "longbench/qasper.jsonl") << row << "{\"input\": 1}\n";
  std::ostringstream again;
  const Status broken = check_data(folder, again);
  ASSERT_FALSE(broken.ok());
  EXPECT_THAT(broken.error().message, HasSubstr("longbench/qasper.jsonl:2: "));
  EXPECT_THAT(again.str(), HasSubstr("longbench/full/lcc.jsonl"));  // the list goes on
  EXPECT_FALSE(check_data(folder + "/none", again).ok());
}

TEST(DataCheck, TheSharedFolderIsWhole) {
  const auto dir = testing::data_dir();
  if (!dir) GTEST_SKIP() << testing::kNoData;
  std::ostringstream out;
  const Status status = check_data(*dir, out);
  EXPECT_TRUE(status.ok()) << status.error().message;
  EXPECT_THAT(out.str(), HasSubstr("gsm8k/test.jsonl"));
}

}  // namespace
}  // namespace kvsweep::task
