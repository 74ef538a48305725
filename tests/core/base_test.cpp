// result, clock, ids, hash, text, file: the small tools.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "core/clock.hpp"
#include "core/file.hpp"
#include "core/hash.hpp"
#include "core/ids.hpp"
#include "core/result.hpp"
#include "core/text.hpp"
#include "tests/support/temp_dir.hpp"

namespace kvsweep {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(Result, NamesOfEveryCodeReadBack) {
  for (int i = 0; i <= static_cast<int>(ErrorCode::conflict); ++i) {
    const auto code = static_cast<ErrorCode>(i);
    EXPECT_EQ(error_code_from(to_string(code)), code);
  }
  EXPECT_EQ(error_code_from("worker_lost"), ErrorCode::worker_lost);
  EXPECT_FALSE(error_code_from("OOM").has_value());
}

Result<int> half(int n) {
  if (n % 2 != 0) return bad_input("odd");
  return n / 2;
}

Result<int> quarter(int n) {
  KVSWEEP_ASSIGN(const int once, half(n));
  KVSWEEP_ASSIGN(const int twice, half(once));
  return twice;
}

TEST(Result, MacrosPassValuesAndErrors) {
  EXPECT_EQ(*quarter(12), 3);
  ASSERT_FALSE(quarter(6).ok());
  EXPECT_EQ(quarter(6).error().message, "odd");
}

TEST(Clock, FormatsUtc) {
  EXPECT_EQ(format_utc(0), "1970-01-01T00:00:00.000Z");
  // `date -u -d @1796070231` prints 2026-11-30T20:23:51.
  EXPECT_EQ(format_utc(1796070231042), "2026-11-30T20:23:51.042Z");
  // 2000-02-29 exists: 951782400 s = 11016 days.
  EXPECT_EQ(format_utc(951782400000), "2000-02-29T00:00:00.000Z");
  EXPECT_EQ(format_utc(-1), "1969-12-31T23:59:59.999Z");
}

TEST(Clock, ManualClockMovesOnlyByAdvance) {
  ManualClock clock(1000);
  clock.advance(250);
  EXPECT_EQ(clock.utc_ms(), 1250);
  EXPECT_EQ(clock.steady_ms(), 250);
}

TEST(Ids, UuidV7HoldsTimeVersionAndVariant) {
  // RFC 9562 §5.7: 48 bits of milliseconds first, version 7, variant 10.
  const std::string id = uuid_v7(0x0192f3c4a5b6);
  ASSERT_EQ(id.size(), 36u);
  EXPECT_THAT(id, StartsWith("0192f3c4-a5b6-7"));
  EXPECT_NE(std::string("89ab").find(id[19]), std::string::npos);
  EXPECT_NE(id, uuid_v7(0x0192f3c4a5b6));
  EXPECT_LT(uuid_v7(1000), uuid_v7(1001));
}

TEST(Hash, KnownVectorsOfFips180) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  // One million times "a", fed in pieces that do not divide the block of 64 bytes.
  Sha256 hash;
  const std::string piece(997, 'a');
  for (int i = 0; i < 1003; ++i) hash.update(piece);
  hash.update(std::string(1000000 - 997 * 1003, 'a'));
  EXPECT_EQ(hash.hex(), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Hash, FileEqualsItsBytes) {
  const test::TempDir dir;
  const std::string bytes(3 * 1024 * 1024 + 17, 'x');
  EXPECT_EQ(*sha256_file(dir.write("big", bytes)), sha256_hex(bytes));
  const auto missing = sha256_file(dir.file("missing"));
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, ErrorCode::not_found);
  EXPECT_THAT(missing.error().message, HasSubstr(dir.file("missing")));
  EXPECT_FALSE(sha256_file(dir.path().string()).ok());  // a folder
}

TEST(Text, NearestWord) {
  const std::vector<std::string> keys = {"trials", "population", "seed", "groups"};
  EXPECT_EQ(nearest_word("trails", keys), "trials");         // two replacements
  EXPECT_EQ(nearest_word("Populaton", keys), "population");  // case and one missing letter
  EXPECT_EQ(nearest_word("colour", keys), "");  // further than half the word from all of them
  EXPECT_EQ(nearest_word("", keys), "");
  EXPECT_EQ(nearest_word("x", {"ab", "a"}), "a");  // distance 1 beats distance 2
}

TEST(Text, SplitAndJoinAreInverse) {
  EXPECT_EQ(split("a,,b", ','), (std::vector<std::string>{"a", "", "b"}));
  EXPECT_EQ(split("", ','), (std::vector<std::string>{""}));
  EXPECT_EQ(join(split("x/y/", '/'), "/"), "x/y/");
}

TEST(Text, HumanBytes) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(1023), "1023 B");
  EXPECT_EQ(human_bytes(1024), "1.00 KiB");
  EXPECT_EQ(human_bytes(1234567), "1.18 MiB");  // 1234567 / 1048576 = 1.1774
  EXPECT_EQ(human_bytes(1048575), "1.00 MiB");  // not "1024.00 KiB"
}

TEST(Text, HumanSeconds) {
  EXPECT_EQ(human_seconds(0.25), "0.2 s");
  EXPECT_EQ(human_seconds(75.4), "1 m 15 s");
  EXPECT_EQ(human_seconds(59.6), "1 m 00 s");
  EXPECT_EQ(human_seconds(3 * 3600 + 5 * 60), "3 h 05 m");
  EXPECT_EQ(human_seconds(90000), "1 d 01 h");
  EXPECT_EQ(human_seconds(-1), "?");
}

TEST(Text, Utf8AsRfc3629SaysIt) {
  EXPECT_TRUE(valid_utf8("a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"));  // a é € 😀
  EXPECT_TRUE(valid_utf8("\xf4\x8f\xbf\xbf"));                       // U+10FFFF, the last one
  for (const char* bad : {"\x80", "\xc0\xaf", "\xc3", "\xe0\x80\x80", "\xed\xa0\x80", "\xe2\x82",
                          "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80", "\xff"}) {
    EXPECT_FALSE(valid_utf8(bad));
  }
  EXPECT_EQ(replace_invalid_utf8("a\xff\xc3\xa9\xe2\x82"),
            "a\xef\xbf\xbd\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd");
}

TEST(File, WritesReadBackAndReplace) {
  const test::TempDir dir;
  const std::string path = dir.file("out.json");
  ASSERT_TRUE(write_file_atomic(path, "first").ok());
  const std::string bytes("second\0with zero", 16);
  ASSERT_TRUE(write_file_atomic(path, bytes).ok());
  EXPECT_EQ(*read_file(path), bytes);
  // Nothing is left beside the file.
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir.path()), {}), 1);
}

TEST(File, ErrorsNameThePathAndTheReason) {
  const test::TempDir dir;
  const auto missing = read_file(dir.file("none"));
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, ErrorCode::not_found);
  EXPECT_THAT(missing.error().message, HasSubstr(dir.file("none")));
  EXPECT_EQ(read_file(dir.path().string()).error().code, ErrorCode::bad_input);

  const Status nowhere = write_file_atomic(dir.file("no/such/folder/x"), "x");
  ASSERT_FALSE(nowhere.ok());
  EXPECT_THAT(nowhere.error().message, HasSubstr("no/such/folder/x: No such file"));
}

TEST(File, APipeIsReadAndOneWithoutAWriterDoesNotHang) {
  test::TempDir dir;
  const std::string pipe = dir.file("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(read_file(pipe).value(), "");
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  std::thread writer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_EQ(::write(ends[1], "late", 4), 4);
    ::close(ends[1]);
  });
  EXPECT_EQ(read_file("/dev/fd/" + std::to_string(ends[0])).value(), "late");
  writer.join();
  ::close(ends[0]);
}

TEST(File, FailedWriteLeavesTheOldFileAndNoOther) {
  const test::TempDir dir;
  const std::string path = dir.file("keep");
  ASSERT_TRUE(write_file_atomic(path, "old").ok());
  // A folder of that name makes the rename fail.
  std::filesystem::create_directories(dir.path() / "taken" / "inside");
  const Status status = write_file_atomic(dir.file("taken"), "new");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(*read_file(path), "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir.path()), {}), 2);
}

TEST(File, LinksAndDevicesStayWhatTheyAre) {
  const test::TempDir dir;
  const std::string target = dir.write("real", "old");
  std::filesystem::create_symlink("real", dir.path() / "link");
  ASSERT_TRUE(write_file_atomic(dir.file("link"), "new").ok());
  EXPECT_TRUE(std::filesystem::is_symlink(dir.path() / "link"));
  EXPECT_EQ(*read_file(target), "new");

  ASSERT_TRUE(write_file_atomic("/dev/null", "x").ok());
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  // A full device is an error, and stays a device.
  if (std::filesystem::exists("/dev/full")) {
    const Status full = write_file_atomic("/dev/full", "x");
    ASSERT_FALSE(full.ok());
    EXPECT_EQ(full.error().code, ErrorCode::io);
    EXPECT_THAT(full.error().message, HasSubstr("No space left"));
    EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
  }
}

}  // namespace
}  // namespace kvsweep
