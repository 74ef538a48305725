#include "worker/task/python_random.hpp"

#include <gtest/gtest.h>

#include "tests/worker/task/task_testing.hpp"

namespace kvsweep::task {
namespace {

// golden/random.json was written by CPython's own random module.
TEST(PythonRandom, WordsEqualPythons) {
  const Json golden = testing::golden("random.json");
  PythonRandom random(golden["seed"]);
  std::vector<uint32_t> words;
  for (int i = 0; i < golden["words"]; ++i) words.push_back(random.getrandbits(32));
  EXPECT_EQ(std::vector<uint32_t>(words.begin(), words.begin() + 4),
            golden["first"].get<std::vector<uint32_t>>());
  // After two twists of 624 words.
  EXPECT_EQ(std::vector<uint32_t>(words.end() - 4, words.end()),
            golden["last"].get<std::vector<uint32_t>>());
}

TEST(PythonRandom, SamplesEqualPythonsInBothWays) {
  const Json samples = testing::golden("random.json")["samples"];
  ASSERT_GE(samples.size(), 10u);
  for (const Json& row : samples) {
    PythonRandom random(row["seed"]);
    for (const char* which : {"first", "second"}) {
      EXPECT_EQ(random.sample(row["n"], row["count"]), row[which].get<std::vector<uint32_t>>())
          << row["count"] << " of " << row["n"];
    }
  }
}

}  // namespace
}  // namespace kvsweep::task
