// Migrations: in order, each whole or not at all, after a copy of the file.
#include "store/migrate.hpp"

#include <SQLiteCpp/SQLiteCpp.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "core/json.hpp"
#include "store/database_file.hpp"
#include "tests/store/samples.hpp"
#include "tests/support/temp_dir.hpp"

namespace kvsweep::store {
namespace {

using test::must;
using ::testing::HasSubstr;

class MigrateTest : public ::testing::Test {
 protected:
  MigrateTest() {
    Store store = test::open_writer(path_);
    test::make_study(store);
  }
  int64_t ask(Connection& connection, const std::string& sql) {
    return connection.database().execAndGet(sql).getInt64();
  }
  // The real steps and one more of the test's own.
  std::vector<Migration> with(std::string_view sql) {
    std::vector<Migration> steps = migrations();
    steps.push_back({steps.back().version + 1, "test", sql});
    return steps;
  }

  test::TempDir dir_;
  std::string path_ = dir_.file("a.db");
  std::string backup_ = path_ + ".bak-v" + std::to_string(kSchemaVersion);
};

TEST(Migrations, AreNumberedFromOneToTheSchemaVersion) {
  int version = 0;
  for (const Migration& step : migrations()) EXPECT_EQ(step.version, ++version) << step.name;
  EXPECT_EQ(version, kSchemaVersion);
}

TEST_F(MigrateTest, CopiesThenMigrates) {
  DatabaseFile file = must(open_database(path_, {OpenMode::read_write}));
  Connection& connection = *file.connection;
  const FileIdentity identity = must(identify(connection));
  EXPECT_EQ(identity.kind, FileKind::ours);
  EXPECT_EQ(identity.version, kSchemaVersion);
  must(migrate(connection, identity,
               with("ALTER TABLE studies ADD COLUMN note TEXT;"
                    "UPDATE studies SET note = name;")));
  EXPECT_EQ(ask(connection, "PRAGMA user_version"), kSchemaVersion + 1);
  EXPECT_EQ(ask(connection, "SELECT count(*) FROM studies WHERE note = 'alpha'"), 1);
  EXPECT_EQ(ask(connection, "PRAGMA foreign_keys"), 1);
  // The copy is a whole database of the older version, which this program reads.
  EXPECT_EQ(must(test::open_reader(backup_).studies()).at(0).name, "alpha");
  EXPECT_FALSE(std::filesystem::exists(backup_ + ".part"));
}

// A file of version 1, as its own first step makes it (a released step is never edited): maps,
// tasks and measurements stay, and the view of layer bits says the same with a column more.
TEST(Migrations, FromVersionOneOn) {
  const test::TempDir dir;
  const std::string path = dir.file("old.db");
  const PrecisionMap map{test::sample_scheme(), {{Codec::int8, Codec::int4}, {}}};
  {
    SQLite::Database raw(path, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
    raw.exec(std::string(migrations().front().sql));
    raw.exec("PRAGMA user_version = 1");
    raw.exec("PRAGMA application_id = " + std::to_string(kApplicationId));
    const std::string options = must(canonical_json(to_json(options_of(map.scheme))));
    raw.exec("INSERT INTO schemes (name, options) VALUES ('per-token', '" + options + "')");
    raw.exec(
        "INSERT INTO tasks (id, protocol_hash, name, version, split, shots, seed, max_new_tokens, "
        "length, mode, examples) VALUES (7, 'hash', 'gsm8k', '3.0', 'test', 5, 0, 256, 0, "
        "'forced', 1319)");
    raw.exec("INSERT INTO maps (map_id, scheme_id, num_layers, layers, summary) VALUES ('" +
             map_id(map) + "', 1, 2, '[\"int8/int4\",\"base/base\"]', 'K8V4, K16V16')");
  }
  {
    Store store = test::open_writer(path);
    EXPECT_EQ(must(store.map_by_id(map_id(map))), map);
  }
  EXPECT_TRUE(std::filesystem::exists(path + ".bak-v1"));
  SQLite::Database after(path);
  EXPECT_EQ(after.execAndGet("PRAGMA user_version").getInt(), kSchemaVersion);
  EXPECT_EQ(after
                .execAndGet("SELECT group_concat(layer || ifnull(head, '-') || ifnull(k_bits, '-') "
                            "|| ifnull(v_bits, '-')) FROM v_layer_bits")
                .getString(),
            "0-84,1---");
  EXPECT_EQ(after
                .execAndGet("SELECT id || name || shots || mode || examples || form || context "
                            "|| rows FROM tasks")
                .getString(),
            "7gsm8k5forced1319text0");
}

TEST_F(MigrateTest, AFailingStepChangesNothing) {
  DatabaseFile file = must(open_database(path_, {OpenMode::read_write}));
  Connection& connection = *file.connection;
  const FileIdentity identity = must(identify(connection));
  EXPECT_FALSE(migrate(connection, identity,
                       with("ALTER TABLE studies ADD COLUMN note TEXT; SELECT no_such_function();"))
                   .ok());
  // Leaves studies without their model.
  const Status orphans = migrate(connection, identity, with("DELETE FROM models;"));
  ASSERT_FALSE(orphans.ok());
  EXPECT_THAT(orphans.error().message, HasSubstr("studies"));
  EXPECT_EQ(ask(connection, "PRAGMA user_version"), kSchemaVersion);
  EXPECT_EQ(ask(connection, "SELECT count(*) FROM models"), 1);
  EXPECT_EQ(ask(connection,
                "SELECT count(*) FROM pragma_table_info('studies') "
                "WHERE name = 'note'"),
            0);
  EXPECT_EQ(ask(connection, "PRAGMA foreign_keys"), 1);
}

TEST_F(MigrateTest, NothingToDoMakesNoCopy) {
  { test::open_writer(path_); }
  EXPECT_FALSE(std::filesystem::exists(backup_));
}

TEST_F(MigrateTest, FileIsMarkedAsOurs) {
  DatabaseFile file = must(open_database(path_, {OpenMode::read_write}));
  EXPECT_EQ(ask(*file.connection, "PRAGMA application_id"), kApplicationId);
  EXPECT_EQ(ask(*file.connection, "PRAGMA synchronous"), 2) << "FULL";
  EXPECT_EQ(file.connection->database().execAndGet("PRAGMA journal_mode").getString(), "wal");
  EXPECT_EQ(ask(*file.connection, "PRAGMA mmap_size"), 0);
  EXPECT_EQ(ask(*file.connection,
                "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND "
                "name NOT LIKE 'sqlite_%' AND sql NOT LIKE '%STRICT%'"),
            0)
      << "a table is not STRICT";
}

}  // namespace
}  // namespace kvsweep::store
