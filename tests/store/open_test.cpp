// Which files open, which are refused, and what is said about it.
#include <SQLiteCpp/SQLiteCpp.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "store/store.hpp"
#include "tests/store/child.hpp"
#include "tests/store/samples.hpp"
#include "tests/support/temp_dir.hpp"

namespace kvsweep::store {
namespace {

namespace fs = std::filesystem;
using test::must;
using test::TempDir;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr OpenMode kBoth[] = {OpenMode::read_only, OpenMode::read_write};

Error refusal(const std::string& path, OpenMode mode) {
  const auto opened = Store::open(path, {mode});
  EXPECT_FALSE(opened.ok()) << path << " was opened";
  return opened.ok() ? Error{} : opened.error();
}

TEST(Open, CreatesAndReopens) {
  TempDir dir;
  const std::string path = dir.file("a.db");
  { test::make_study(*std::make_unique<Store>(test::open_writer(path))); }
  const DatabaseInfo info = must(test::open_reader(path).info());
  EXPECT_EQ(info.schema_version, kSchemaVersion);
  EXPECT_EQ(info.path, path);
  EXPECT_EQ(info.sqlite_version.substr(0, 2), "3.");
  EXPECT_GT(info.file_bytes, 0);
  EXPECT_EQ(info.rows.at("studies"), 1);
  EXPECT_EQ(info.rows.at("trials"), 0);
}

TEST(Open, EmptyFileBecomesTheNewestVersion) {
  TempDir dir;
  const std::string path = dir.write("empty.db", "");
  const Error reader = refusal(path, OpenMode::read_only);
  EXPECT_EQ(reader.code, ErrorCode::bad_input);
  EXPECT_THAT(reader.message, AllOf(HasSubstr(path), HasSubstr("empty")));
  EXPECT_EQ(must(test::open_writer(path).info()).schema_version, kSchemaVersion);
}

TEST(Open, AbsentFileAndFolder) {
  TempDir dir;
  const Error absent = refusal(dir.file("no.db"), OpenMode::read_only);
  EXPECT_EQ(absent.code, ErrorCode::not_found);
  EXPECT_THAT(absent.message, HasSubstr("no.db"));
  EXPECT_FALSE(fs::exists(dir.file("no.db"))) << "a reader created the file";
  const Error folder = refusal(dir.file("none/no.db"), OpenMode::read_write);
  EXPECT_EQ(folder.code, ErrorCode::not_found);
  EXPECT_THAT(folder.message, HasSubstr(dir.file("none")));
  for (const OpenMode mode : kBoth) {
    EXPECT_EQ(refusal(dir.path().string(), mode).code, ErrorCode::bad_input);
    EXPECT_EQ(refusal("", mode).code, ErrorCode::bad_input);
  }
}

TEST(Open, NotADatabase) {
  TempDir dir;
  std::string noise(20000, '\0');
  std::mt19937 random(3);
  for (char& c : noise) c = static_cast<char>(random());
  for (const std::string& text : {noise, std::string("name: study\n"), std::string("x")}) {
    const std::string path = dir.write("notes.db", text);
    for (const OpenMode mode : kBoth) {
      const Error error = refusal(path, mode);
      EXPECT_EQ(error.code, ErrorCode::bad_input) << error.message;
      EXPECT_THAT(error.message, AllOf(HasSubstr(path), HasSubstr("not an SQLite database")));
    }
    std::ifstream file(path, std::ios::binary);
    const std::string after((std::istreambuf_iterator<char>(file)), {});
    EXPECT_TRUE(after == text) << "the file was changed";
  }
}

TEST(Open, DatabaseOfAnotherProgram) {
  TempDir dir;
  const std::string path = dir.file("other.db");
  SQLite::Database(path, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE)
      .exec("CREATE TABLE photos (id INTEGER PRIMARY KEY)");  // user_version 0
  for (const OpenMode mode : kBoth) {
    const Error error = refusal(path, mode);
    EXPECT_EQ(error.code, ErrorCode::bad_input);
    EXPECT_THAT(error.message, AllOf(HasSubstr(path), HasSubstr("another program")));
  }
  SQLite::Database other(path, SQLite::OPEN_READWRITE);
  EXPECT_EQ(other.execAndGet("PRAGMA journal_mode").getString(), "delete") << "it was switched";
  EXPECT_EQ(other.execAndGet("SELECT count(*) FROM sqlite_schema").getInt(), 1);
  other.exec("PRAGMA user_version = " +
             std::to_string(kSchemaVersion));  // our version, but not our application id
  EXPECT_EQ(refusal(path, OpenMode::read_write).code, ErrorCode::bad_input);
}

TEST(Open, NewerVersionIsRefusedUntouched) {
  TempDir dir;
  const std::string path = dir.file("new.db");
  { test::open_writer(path); }
  { SQLite::Database(path, SQLite::OPEN_READWRITE).exec("PRAGMA user_version = 7"); }
  for (const OpenMode mode : kBoth) {
    const Error error = refusal(path, mode);
    EXPECT_EQ(error.code, ErrorCode::conflict);
    EXPECT_THAT(error.message, AllOf(HasSubstr(path), HasSubstr("version 7"),
                                     HasSubstr("to " + std::to_string(kSchemaVersion))));
  }
}

TEST(Open, TruncatedFile) {
  TempDir dir;
  const std::string path = dir.file("a.db");
  {
    Store store = test::open_writer(path);
    const StudyRow study = test::make_study(store);
    for (int i = 0; i < 200; ++i) must(store.put_trial(test::make_trial(store, study.id, i, i, 1)));
  }
  const auto size = fs::file_size(path);
  for (const auto keep : {size / 2, size - 4096, uintmax_t{700}}) {
    const std::string cut = dir.file("cut-" + std::to_string(keep) + ".db");
    fs::copy_file(path, cut);
    fs::resize_file(cut, keep);
    for (const OpenMode mode : kBoth) {
      const Error error = refusal(cut, mode);
      EXPECT_EQ(error.code, ErrorCode::bad_input) << error.message;
      EXPECT_THAT(error.message, HasSubstr(cut));
    }
  }
}

TEST(Open, SecondWriterIsToldWhoWrites) {
  TempDir dir;
  const std::string path = dir.file("a.db");
  auto first = std::make_unique<Store>(test::open_writer(path));
  fs::create_symlink(path, dir.file("alias.db"));
  for (const std::string& name : {path, dir.file("alias.db")}) {
    const Error error = refusal(name, OpenMode::read_write);
    EXPECT_EQ(error.code, ErrorCode::conflict);
    EXPECT_THAT(error.message,
                AllOf(HasSubstr(path), HasSubstr("pid " + std::to_string(::getpid()))));
  }
  EXPECT_TRUE(Store::open(path, {OpenMode::read_only}).ok());
  first.reset();
  EXPECT_TRUE(Store::open(path, {OpenMode::read_write}).ok());
}

TEST(Open, SaysWhetherSomeoneMayBeWriting) {
  test::TempDir dir;
  const std::string path = dir.file("t.db");
  const auto may_live = [&] { return must(must(Store::open(path, {})).info()).writer_may_live; };
  {
    const Store writer = must(Store::open(path, {OpenMode::read_write}));
    EXPECT_TRUE(may_live());
  }
  std::ofstream(path + ".lock") << "999999999 elsewhere\n";
  EXPECT_TRUE(may_live());  // on another host nobody can tell
  char host[256] = {};
  ASSERT_EQ(::gethostname(host, sizeof host - 1), 0);
  std::ofstream(path + ".lock") << "999999999 " << host << "\n";
  EXPECT_FALSE(may_live());
  std::filesystem::remove(path + ".lock");
  EXPECT_FALSE(may_live());
}

TEST(Open, LockOfAKilledWriterIsGone) {
  TempDir dir;
  const std::string path = dir.file("a.db");
  const test::Child child = test::start_child([&](int to_parent) {
    Store store = test::open_writer(path);
    test::write_all(to_parent, "open");
    ::pause();
  });
  char buffer[4];
  ASSERT_EQ(::read(child.from_child, buffer, 4), 4);
  const Error error = refusal(path, OpenMode::read_write);
  EXPECT_EQ(error.code, ErrorCode::conflict);
  EXPECT_THAT(error.message, HasSubstr("pid " + std::to_string(child.pid)));
  ::kill(child.pid, SIGKILL);
  EXPECT_EQ(test::end_of(child).signal, SIGKILL);
  EXPECT_TRUE(Store::open(path, {OpenMode::read_write}).ok());
}

// Root may write everywhere, so the test leaves root behind in a child.
TEST(Open, ReadOnlyFolder) {
  TempDir dir;
  fs::permissions(dir.path(), fs::perms(0755));
  fs::create_directory(dir.path() / "ro");
  const std::string path = dir.file("ro/a.db");
  { test::open_writer(path); }
  fs::permissions(path, fs::perms(0444));
  fs::permissions(dir.path() / "ro", fs::perms(0555));
  const test::ChildEnd end = test::run_child([&]() -> std::string {
    if (!test::drop_root()) return "skip";
    const Error fresh = refusal(dir.file("ro/b.db"), OpenMode::read_write);
    const Error known = refusal(path, OpenMode::read_write);
    const Error reader = refusal(path, OpenMode::read_only);
    if (fresh.code != ErrorCode::io || known.code != ErrorCode::io ||
        reader.code != ErrorCode::io) {
      return "not io: " + fresh.message + " | " + known.message + " | " + reader.message;
    }
    for (const Error* error : {&fresh, &known, &reader}) {
      if (error->message.find(dir.file("ro")) == std::string::npos) return error->message;
    }
    if (reader.message.find("copy the database") == std::string::npos) return reader.message;
    return "ok";
  });
  fs::permissions(dir.path() / "ro", fs::perms(0755));
  if (end.said == "skip") GTEST_SKIP() << "this user cannot become another one";
  EXPECT_EQ(end.said, "ok");
}

// A read-only file system cannot change under the reader: it is read in place.
TEST(Open, ReadOnlyFileSystem) {
  TempDir dir;
  const std::string path = dir.file("m/a.db");
  fs::create_directory(dir.path() / "m");
  const test::ChildEnd end = test::run_child([&]() -> std::string {
    if (!test::mount_tmpfs(dir.file("m"), "size=8m")) return "skip";
    {
      Store store = test::open_writer(path);
      test::make_study(store);
    }
    if (::mount("tmpfs", dir.file("m").c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, nullptr) != 0) {
      return "skip";
    }
    const Error writer = refusal(path, OpenMode::read_write);
    if (writer.code != ErrorCode::io) return writer.message;
    return must(test::open_reader(path).studies()).size() == 1 ? "ok" : "the study is missing";
  });
  if (end.said == "skip") GTEST_SKIP() << "this system does not allow a mount in a test";
  EXPECT_EQ(end.said, "ok");
}

TEST(Open, PathsWithCharactersOfUris) {
  TempDir dir;
  const std::string path = dir.file("50%?#a b.db");
  { test::make_study(*std::make_unique<Store>(test::open_writer(path))); }
  EXPECT_TRUE(fs::exists(path));
  EXPECT_EQ(must(test::open_reader(path).studies()).size(), 1u);
}

TEST(Open, ReaderCannotWrite) {
  TempDir dir;
  const std::string path = dir.file("a.db");
  { test::open_writer(path); }
  Store reader = test::open_reader(path);
  EXPECT_FALSE(reader.put_map(test::numbered_map(1)).ok());
  EXPECT_FALSE(reader.transaction([] { return Status(); }).ok());
}

}  // namespace
}  // namespace kvsweep::store
