#include "worker/service/worker_options.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace kvsweep::service {
namespace {

std::string message(const std::vector<std::string>& arguments) {
  const auto options = parse_worker_options(arguments);
  return options.ok() ? "" : options.error().message;
}

TEST(WorkerOptions, BothFormsOfAValue) {
  const auto options =
      parse_worker_options({"--connect", "tcp://h:1", "--threads=3", "--cache-budget", "1048576",
                            "--worker-id=w", "--once", "--exit-with-parent", "77",
                            "--idle-timeout=9", "--data-dir", "/d", "--log-level=warn"});
  ASSERT_TRUE(options.ok()) << options.error().message;
  EXPECT_EQ(options->action, WorkerOptions::Action::serve);
  EXPECT_EQ(options->endpoint, "tcp://h:1");
  EXPECT_EQ(options->threads, 3);
  EXPECT_EQ(options->cache_budget_bytes, 1048576);
  EXPECT_EQ(options->worker_id, "w");
  EXPECT_EQ(options->parent, 77);
  EXPECT_EQ(options->idle_timeout_s, 9);
  EXPECT_EQ(options->data_dir, "/d");
  EXPECT_TRUE(options->once);
  EXPECT_EQ(options->log_level, "warn");
}

TEST(WorkerOptions, DataFolderComesFromTheEnvironmentToo) {
  setenv("KVSWEEP_DATA_DIR", "/from/env", 1);
  EXPECT_EQ(parse_worker_options({"--connect", "x"})->data_dir, "/from/env");
  EXPECT_EQ(parse_worker_options({"--connect", "x", "--data-dir", "/given"})->data_dir, "/given");
  unsetenv("KVSWEEP_DATA_DIR");
}

TEST(WorkerOptions, InspectTakesAModelAndNeedsNoCoordinator) {
  const auto options = parse_worker_options({"--inspect=/models/a=b"});
  ASSERT_TRUE(options.ok()) << options.error().message;
  EXPECT_EQ(options->action, WorkerOptions::Action::inspect);
  EXPECT_EQ(options->model, "/models/a=b");
}

TEST(WorkerOptions, ErrorsNameTheOptionAndWhatItGot) {
  EXPECT_NE(message({}).find("--connect"), std::string::npos);
  EXPECT_NE(message({"--conect", "x"}).find("did you mean --connect?"), std::string::npos);
  EXPECT_NE(message({"--connect"}).find("needs a value"), std::string::npos);
  EXPECT_NE(message({"--connect", "x", "--threads", "two"}).find("'two'"), std::string::npos);
  EXPECT_NE(message({"--connect", "x", "--threads", "0"}).find("from 1"), std::string::npos);
  EXPECT_NE(message({"--connect", "x", "--once=yes"}).find("takes no value"), std::string::npos);
  EXPECT_NE(message({"--connect", "x", "--log-level", "loud"}).find("'loud'"), std::string::npos);
}

TEST(WorkerOptions, ActionsNeedNoEndpoint) {
  EXPECT_EQ(parse_worker_options({"--version"})->action, WorkerOptions::Action::version);
  EXPECT_EQ(parse_worker_options({"--probe", "--threads", "2"})->action,
            WorkerOptions::Action::probe);
  const auto corpus =
      parse_worker_options({"--corpus", "recall", "--count", "5", "--seed=9", "--length", "64"});
  ASSERT_TRUE(corpus.ok()) << corpus.error().message;
  EXPECT_EQ(corpus->action, WorkerOptions::Action::corpus);
  EXPECT_EQ(corpus->text_kind, "recall");
  EXPECT_EQ(corpus->text_count, 5);
  EXPECT_EQ(corpus->text_seed, 9);
  EXPECT_EQ(corpus->text_length, 64);
  const auto examples =
      parse_worker_options({"--examples", "gsm8k", "--shots=4", "--split", "train"});
  ASSERT_TRUE(examples.ok()) << examples.error().message;
  EXPECT_EQ(examples->action, WorkerOptions::Action::examples);
  EXPECT_EQ(examples->text_shots, 4);
  EXPECT_EQ(examples->text_split, "train");
  EXPECT_FALSE(examples->text_seed.has_value());
  EXPECT_NE(worker_usage().find("--exit-with-parent PID"), std::string::npos);
}

}  // namespace
}  // namespace kvsweep::service
