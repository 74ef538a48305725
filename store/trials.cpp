// Trials and the front.
#include <charconv>
#include <cmath>

#include "store/state.hpp"

namespace kvsweep::store {

namespace {

#define KVSWEEP_TRIAL_COLUMNS                                                              \
  "t.study_id, t.number, t.genome, t.parents, t.origin, m.map_id, t.state, t.tell_order, " \
  "t.tells_before, t.bytes, t.effective_bits, t.metric, t.loss, t.examples, t.reused, "    \
  "t.failure, t.asked_utc_ms, t.finished_utc_ms "

// Integer lists are JSON arrays, "[0,1,2]", written and read without a JSON library: a study has
// a hundred thousand of them.
template <typename Int>
std::string list_json(const std::vector<Int>& values) {
  std::string text = "[";
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) text += ',';
    text += std::to_string(values[i]);
  }
  return text + ']';
}

template <typename Int>
Result<std::vector<Int>> list_from_json(const std::string& text) {
  std::vector<Int> values;
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  while (at < end) {
    if (*at == '[' || *at == ',' || *at == ' ' || *at == ']') {
      ++at;
      continue;
    }
    Int value = 0;
    const auto [next, error] = std::from_chars(at, end, value);
    if (error != std::errc()) {
      return bad_input("the database holds \"" + text + "\" where a list of integers should be");
    }
    values.push_back(value);
    at = next;
  }
  return values;
}

Result<TrialRow> read_trial(const Query& row) {
  TrialRow trial;
  trial.study_id = row.integer(0);
  trial.number = row.integer(1);
  KVSWEEP_ASSIGN(trial.genome, list_from_json<int>(row.text(2)));
  KVSWEEP_ASSIGN(trial.parents, list_from_json<int64_t>(row.text(3)));
  trial.origin = row.text(4);
  trial.map_id = row.text(5);
  KVSWEEP_ASSIGN(trial.state, trial_state_from(row.text(6)));
  trial.tell_order = row.integer(7);
  trial.tells_before = row.integer(8);
  trial.bytes = row.real(9);
  trial.effective_bits = row.real(10);
  trial.metric = row.maybe_real(11);
  trial.loss = row.maybe_real(12);
  trial.examples = row.integer(13);
  trial.reused = row.integer(14) != 0;
  trial.failure = row.text(15);
  trial.asked_utc_ms = row.integer(16);
  trial.finished_utc_ms = row.integer(17);
  return trial;
}

std::string label(const TrialRow& trial) {
  return trial.number < 0 ? "the baseline of study " + std::to_string(trial.study_id)
                          : "trial " + std::to_string(trial.number) + " of study " +
                                std::to_string(trial.study_id);
}

Status check_numbers(const TrialRow& trial) {
  const std::pair<const char*, double> fields[] = {{"bytes", trial.bytes},
                                                   {"effective_bits", trial.effective_bits},
                                                   {"metric", trial.metric.value_or(0)},
                                                   {"loss", trial.loss.value_or(0)}};
  for (const auto& [name, value] : fields) {
    if (std::isfinite(value)) continue;
    return Error{ErrorCode::numerics,
                 label(trial) + " has " + name + " = " + std::to_string(value) +
                     ", which is not a finite number; it must end as failed (numerics) instead"};
  }
  if (trial.state == TrialState::complete && trial.number >= 0 && (!trial.metric || !trial.loss)) {
    return Error{ErrorCode::internal, label(trial) + " is complete without metric and loss"};
  }
  return {};
}

// The unique index would refuse it too; this says which trial has the map.
Status check_distinct(Connection& connection, const TrialRow& trial, int64_t map) {
  if (trial.number < 0) return {};
  Query row = connection.query(
      "SELECT number FROM trials WHERE study_id = ? AND map = ? AND number >= 0 AND number <> ?");
  row.with(trial.study_id, map, trial.number);
  if (!row.step()) return {};
  return Error{ErrorCode::conflict, label(trial) + " has the same map as trial " +
                                        std::to_string(row.integer(0)) +
                                        "; a study evaluates every map once"};
}

Result<std::vector<TrialRow>> read_all(Query row, int64_t study_id) {
  std::vector<TrialRow> all;
  row.with(study_id);
  while (row.step()) {
    KVSWEEP_ASSIGN(TrialRow trial, read_trial(row));
    all.push_back(std::move(trial));
  }
  return all;
}

}  // namespace

Status Store::put_trial(const TrialRow& trial) {
  KVSWEEP_TRY(check_numbers(trial));
  return state_->write([&]() -> Status {
    Connection& connection = state_->connection();
    KVSWEEP_ASSIGN(const int64_t map, state_->map_row(trial.map_id));
    KVSWEEP_TRY(check_distinct(connection, trial, map));
    connection
        .query(
            "INSERT INTO trials (study_id, number, genome, parents, origin, map, state, "
            "tell_order, tells_before, bytes, effective_bits, metric, loss, examples, reused, "
            "failure, asked_utc_ms, finished_utc_ms) "
            "VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?) "
            "ON CONFLICT (study_id, number) DO UPDATE SET genome = excluded.genome, "
            "parents = excluded.parents, origin = excluded.origin, map = excluded.map, "
            "state = excluded.state, tell_order = excluded.tell_order, "
            "tells_before = excluded.tells_before, bytes = excluded.bytes, "
            "effective_bits = excluded.effective_bits, metric = excluded.metric, "
            "loss = excluded.loss, examples = excluded.examples, reused = excluded.reused, "
            "failure = excluded.failure, asked_utc_ms = excluded.asked_utc_ms, "
            "finished_utc_ms = excluded.finished_utc_ms")
        .with(trial.study_id, trial.number, list_json(trial.genome), list_json(trial.parents),
              trial.origin, map, to_string(trial.state), trial.tell_order, trial.tells_before,
              trial.bytes, trial.effective_bits, trial.metric, trial.loss, trial.examples,
              trial.reused, trial.failure, trial.asked_utc_ms, trial.finished_utc_ms)
        .run();
    return {};
  });
}

Result<std::vector<TrialRow>> Store::trials(int64_t study_id) const {
  return state_->read([&] {
    return read_all(
        state_->connection().query("SELECT " KVSWEEP_TRIAL_COLUMNS
                                   "FROM trials t JOIN maps m ON m.id = t.map WHERE t.study_id = ? "
                                   "ORDER BY t.number"),
        study_id);
  });
}

// The sweep of Kung, Luccio and Preparata (JACM 22, 1975) for two objectives: O(n log n) to sort
// by (bytes, loss, number), O(n) to keep every trial whose loss is below all before it. Example:
// (10, .3) (10, .2) (20, .2) (30, .1) keeps (10, .2) and (30, .1). Equal vectors keep the first
// number. The view does it in SQL, so that a shell sees the same front.
Result<std::vector<TrialRow>> Store::front(int64_t study_id) const {
  return state_->read([&] {
    return read_all(
        state_->connection().query("SELECT " KVSWEEP_TRIAL_COLUMNS
                                   "FROM v_front f JOIN trials t ON t.study_id = f.study_id AND "
                                   "t.number = f.number JOIN maps m ON m.id = t.map "
                                   "WHERE f.study_id = ? ORDER BY t.bytes, t.number"),
        study_id);
  });
}

}  // namespace kvsweep::store
