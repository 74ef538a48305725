// What survives: SIGKILL at any moment, a full disk, a reader during ingestion.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <random>
#include <thread>

#include "tests/store/child.hpp"
#include "tests/store/samples.hpp"
#include "tests/support/temp_dir.hpp"

namespace kvsweep::store {
namespace {

using test::must;
using test::TempDir;

std::vector<Measurement> batch_of(int64_t first, int64_t count) {
  std::vector<Measurement> batch;
  for (int64_t i = 0; i < count; ++i) batch.push_back(test::sample_measurement(first + i));
  return batch;
}

int64_t stored(const std::string& path) {
  return must(test::open_reader(path).info()).rows.at("measurements");
}

TEST(Durability, KilledInsideATransaction) {
  TempDir dir;
  const std::string path = dir.file("a.db");
  const test::ChildEnd end = test::end_of(test::start_child([&](int) {
    Store store = test::open_writer(path);
    const MeasurementScope scope = test::sample_scope(store);
    must(store.put_measurements(scope, batch_of(0, 10), "w", true, 1));
    (void)store.transaction([&]() -> Status {
      must(store.put_measurements(scope, batch_of(10, 5), "w", true, 1));
      ::kill(::getpid(), SIGKILL);
      return {};
    });
  }));
  ASSERT_EQ(end.signal, SIGKILL);
  EXPECT_EQ(stored(path), 10);
  Store store = test::open_writer(path);
  EXPECT_EQ(must(store.put_measurements(test::sample_scope(store), batch_of(8, 4), "w", true, 1)),
            2)
      << "8 and 9 were committed, 10 and 11 were not";
}

// The child tells each commit after it returned; whatever was told must be there, and batches are
// whole.
TEST(Durability, KilledAtRandomMoments) {
  constexpr int kBatch = 7;
  std::mt19937 random(2);
  for (int round = 0; round < 8; ++round) {
    TempDir dir;
    const std::string path = dir.file("a.db");
    const test::Child child = test::start_child([&](int to_parent) {
      Store store = test::open_writer(path);
      const MeasurementScope scope = test::sample_scope(store);
      test::write_all(to_parent, "r");
      for (int64_t i = 0;; ++i) {
        must(store.put_measurements(scope, batch_of(i * kBatch, kBatch), "w", true, 1));
        test::write_all(to_parent, ".");
      }
    });
    char ready = 0;
    ASSERT_EQ(::read(child.from_child, &ready, 1), 1);
    std::this_thread::sleep_for(std::chrono::microseconds(2000 + random() % 60000));
    ::kill(child.pid, SIGKILL);
    const auto told = static_cast<int64_t>(test::end_of(child).said.size());
    const int64_t rows = stored(path);
    EXPECT_EQ(rows % kBatch, 0);
    EXPECT_GE(rows / kBatch, told);
    EXPECT_LE(rows / kBatch, told + 1);
  }
}

// A tmpfs of its own fills up: the writer gets io, what was committed stays, and writing goes on
// once there is room.
TEST(Durability, FullDisk) {
  TempDir dir;
  std::filesystem::create_directory(dir.path() / "m");
  const std::string path = dir.file("m/a.db");
  const test::ChildEnd end = test::run_child([&]() -> std::string {
    if (!test::mount_tmpfs(dir.file("m"), "size=1m")) return "skip";
    Store store = test::open_writer(path);
    const MeasurementScope scope = test::sample_scope(store);
    int64_t committed = 0;
    Error error;
    for (int64_t i = 0; i < 2000 && error.message.empty(); ++i) {
      std::vector<Measurement> batch = batch_of(i * 5, 5);
      for (Measurement& m : batch) m.text.assign(2000, 'x');
      const auto put = store.put_measurements(scope, batch, "w", true, 1);
      if (put.ok()) committed += *put;
      if (!put.ok()) error = put.error();
    }
    if (error.code != ErrorCode::io) return "code " + std::string(to_string(error.code));
    if (error.message.find(path) == std::string::npos) return error.message;
    if (error.message.find("full") == std::string::npos) return error.message;
    if (committed == 0) return "nothing fitted";
    if (stored(path) != committed) return "committed rows are missing after the failure";
    if (::mount("tmpfs", dir.file("m").c_str(), "tmpfs", MS_REMOUNT, "size=8m") != 0) return "skip";
    const auto more = store.put_measurements(scope, batch_of(1000000, 5), "w", true, 1);
    if (!more.ok()) return "with room again: " + more.error().message;
    return stored(path) == committed + 5 ? "ok" : "rows are missing at the end";
  });
  if (end.said == "skip") GTEST_SKIP() << "this system does not allow a mount in a test";
  EXPECT_EQ(end.said, "ok");
}

TEST(Durability, FullDiskAtCreation) {
  TempDir dir;
  std::filesystem::create_directory(dir.path() / "m");
  const test::ChildEnd end = test::run_child([&]() -> std::string {
    if (!test::mount_tmpfs(dir.file("m"), "size=32k")) return "skip";
    const auto opened = Store::open(dir.file("m/a.db"), {OpenMode::read_write});
    if (opened.ok()) return "it opened";
    return opened.error().code == ErrorCode::io ? "ok" : opened.error().message;
  });
  if (end.said == "skip") GTEST_SKIP() << "this system does not allow a mount in a test";
  EXPECT_EQ(end.said, "ok");
}

TEST(Durability, ReaderDuringIngestion) {
  constexpr int64_t kMeasurements = 20000;
  constexpr int64_t kBatch = 100;
  TempDir dir;
  const std::string path = dir.file("a.db");
  Store writer = test::open_writer(path);
  const MeasurementScope scope = test::sample_scope(writer);
  const StudyRow study = test::make_study(writer);
  std::atomic<bool> done{false};
  std::string reader_error;
  int64_t reads = 0;
  std::thread reader([&] {
    try {
      Store store = test::open_reader(path);
      int64_t last = 0;
      while (!done.load()) {
        const int64_t rows = must(store.info()).rows.at("measurements");
        must(store.front(study.id));
        must(store.trials(study.id));
        must(store.measurements(scope, {test::sample_measurement(rows / 2).example_hash}));
        if (rows < last || rows % kBatch != 0) throw std::runtime_error("half a batch was seen");
        last = rows;
        ++reads;
      }
    } catch (const std::exception& exception) {
      reader_error = exception.what();
    }
  });
  std::string writer_error;
  const auto start = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < kMeasurements / kBatch && writer_error.empty(); ++i) {
    const Status status = writer.transaction([&]() -> Status {
      KVSWEEP_TRY(writer.put_trial(test::make_trial(writer, study.id, i, 100 + i, 1.0 / (i + 1))));
      const auto put = writer.put_measurements(scope, batch_of(i * kBatch, kBatch), "w", true, 1);
      return put.ok() ? Status() : Status(put.error());
    });
    if (!status.ok()) writer_error = status.error().message;
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  done = true;
  reader.join();
  EXPECT_EQ(writer_error, "");
  EXPECT_EQ(reader_error, "");
  EXPECT_GT(reads, 0);
  EXPECT_EQ(stored(path), kMeasurements);
  std::printf("20000 measurements in 200 commits: %.0f per second beside %lld reads\n",
              kMeasurements / seconds, static_cast<long long>(reads));
}

}  // namespace
}  // namespace kvsweep::store
