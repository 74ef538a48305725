// Measurements: content-addressed, written once, never changed.
#include <cmath>
#include <nlohmann/json.hpp>

#include "store/state.hpp"
#include "store/token_blob.hpp"

namespace kvsweep::store {

namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

Result<std::vector<uint8_t>> hash_blob(const std::string& hex) {
  std::vector<uint8_t> blob;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    const int high = hex_digit(hex[i]);
    const int low = hex_digit(hex[i + 1]);
    if (high < 0 || low < 0) break;
    blob.push_back(static_cast<uint8_t>(high * 16 + low));
  }
  if (hex.size() != 64 || blob.size() != 32) {
    return bad_input("the example hash \"" + hex +
                     "\" is not a SHA-256 of 64 lower-case hexadecimal digits");
  }
  return blob;
}

Error bad_measurement(ErrorCode code, const Measurement& m, const std::string& what) {
  return {code, "the measurement of example " + std::to_string(m.example) + " has " + what};
}

// NaN would be stored as NULL, that is, as "not measured": refused before SQLite sees it.
Status check(const Measurement& m) {
  struct Field {
    const char* name;
    std::optional<double> value;
    double low;
    double high;
  };
  const Field fields[] = {
      {"exact_match", m.exact_match, 0, 1},
      {"strict_match", m.strict_match, 0, 1},
      {"token_agreement", m.token_agreement, 0, 1},
      {"kl", m.kl, -HUGE_VAL, HUGE_VAL},
      {"nll", m.nll, -HUGE_VAL, HUGE_VAL},
      {"prefill_ms", m.timings.prefill_ms, 0, HUGE_VAL},
      {"decode_ms", m.timings.decode_ms, 0, HUGE_VAL},
  };
  for (const Field& field : fields) {
    if (!field.value) continue;
    const std::string shown = std::string(field.name) + " = " + std::to_string(*field.value);
    if (!std::isfinite(*field.value)) {
      return bad_measurement(ErrorCode::numerics, m, shown + ", which is not a finite number");
    }
    if (*field.value < field.low || *field.value > field.high) {
      return bad_measurement(ErrorCode::bad_input, m, shown + ", which is out of range");
    }
  }
  if (m.example < 0 || m.prompt_tokens < 0 || m.output_tokens < 0 || m.cache_bytes < 0) {
    return bad_measurement(ErrorCode::bad_input, m, "a negative count");
  }
  for (const int32_t token : m.tokens) {
    if (token < 0) {
      return bad_measurement(ErrorCode::bad_input, m,
                             "the negative token id " + std::to_string(token));
    }
  }
  return {};
}

// What two runs of one key must agree on. Timings differ from run to run, and one example may
// stand at two places of a split.
std::vector<std::string> differing_fields(const Measurement& a, const Measurement& b) {
  std::vector<std::string> fields;
  const auto compare = [&](const char* name, bool equal) {
    if (!equal) fields.emplace_back(name);
  };
  compare("text", a.text == b.text);
  compare("tokens", a.tokens == b.tokens);
  compare("answer", a.answer == b.answer);
  compare("exact_match", a.exact_match == b.exact_match);
  compare("strict_match", a.strict_match == b.strict_match);
  compare("token_agreement", a.token_agreement == b.token_agreement);
  compare("kl", a.kl == b.kl);
  compare("nll", a.nll == b.nll);
  compare("prompt_tokens", a.prompt_tokens == b.prompt_tokens);
  compare("output_tokens", a.output_tokens == b.output_tokens);
  compare("cache_bytes", a.cache_bytes == b.cache_bytes);
  return fields;
}

struct ScopeRows {
  int64_t map = 0;
  int64_t task = 0;
  int64_t model = 0;
};

// 0 = nothing was measured there yet.
int64_t scope_row(Connection& connection, const ScopeRows& rows, const MeasurementScope& scope) {
  Query row = connection.query(
      "SELECT id FROM scopes WHERE map=? AND task=? AND model=? AND base=? AND numerics_class=?");
  row.with(rows.map, rows.task, rows.model, to_string(scope.base), scope.numerics_class);
  return row.step() ? row.integer(0) : 0;
}

int64_t make_scope(Connection& connection, const ScopeRows& rows, const MeasurementScope& scope) {
  if (const int64_t known = scope_row(connection, rows, scope); known != 0) return known;
  connection.query("INSERT INTO scopes (map, task, model, base, numerics_class) VALUES (?,?,?,?,?)")
      .with(rows.map, rows.task, rows.model, to_string(scope.base), scope.numerics_class)
      .run();
  return connection.database().getLastInsertRowid();
}

int64_t example_row(Connection& connection, const std::vector<uint8_t>& hash, bool create) {
  {
    Query row = connection.query("SELECT id FROM examples WHERE hash = ?");
    row.with(hash);
    if (row.step()) return row.integer(0);
  }
  if (!create) return 0;
  connection.query("INSERT INTO examples (hash) VALUES (?)").with(hash).run();
  return connection.database().getLastInsertRowid();
}

// nullopt = not measured.
Result<std::optional<Measurement>> find(Connection& connection, int64_t scope, int64_t example) {
  Query row = connection.query(
      "SELECT number, text, tokens, answer, exact_match, strict_match, token_agreement, kl, nll, "
      "prompt_tokens, output_tokens, cache_bytes, prefill_ms, decode_ms "
      "FROM measurements WHERE scope = ? AND example = ?");
  row.with(scope, example);
  if (!row.step()) return std::optional<Measurement>();
  Measurement m;
  m.example = row.integer(0);
  m.text = row.text(1);
  KVSWEEP_ASSIGN(m.tokens, unpack_tokens(row.bytes(2)));
  m.answer = row.text(3);
  m.exact_match = row.maybe_real(4);
  m.strict_match = row.maybe_real(5);
  m.token_agreement = row.maybe_real(6);
  m.kl = row.maybe_real(7);
  m.nll = row.maybe_real(8);
  m.prompt_tokens = row.integer(9);
  m.output_tokens = row.integer(10);
  m.cache_bytes = row.integer(11);
  m.timings = {row.real(12), row.real(13)};
  return std::optional<Measurement>(std::move(m));
}

struct Origin {
  std::optional<int64_t> worker;
  std::string worker_id;
  bool batch_invariant = true;
  int64_t utc_ms = 0;
};

void insert(Connection& connection, int64_t scope, int64_t example, const Measurement& m,
            const Origin& origin) {
  std::optional<std::vector<uint8_t>> tokens;
  if (!m.tokens.empty()) tokens = pack_tokens(m.tokens);
  connection
      .query(
          "INSERT INTO measurements (scope, example, number, text, tokens, answer, exact_match, "
          "strict_match, token_agreement, kl, nll, prompt_tokens, output_tokens, cache_bytes, "
          "prefill_ms, decode_ms, worker, batch_invariant, utc_ms) "
          "VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)")
      .with(scope, example, m.example, m.text, tokens, m.answer, m.exact_match, m.strict_match,
            m.token_agreement, m.kl, m.nll, m.prompt_tokens, m.output_tokens, m.cache_bytes,
            m.timings.prefill_ms, m.timings.decode_ms, origin.worker, origin.batch_invariant,
            origin.utc_ms)
      .run();
}

// The first value stays: trials rest on it. That two runs of one key differ is worth knowing.
Status record_conflict(Connection& connection, const MeasurementScope& scope, const Measurement& m,
                       const std::vector<std::string>& fields, const Origin& origin) {
  const Json detail = {{"model", scope.model_hash},
                       {"map", scope.map_id},
                       {"protocol", scope.protocol_hash},
                       {"numerics_class", scope.numerics_class},
                       {"base", std::string(to_string(scope.base))},
                       {"example", m.example},
                       {"example_hash", m.example_hash},
                       {"differs", fields},
                       {"worker", origin.worker_id}};
  // A model may emit bytes that are no UTF-8, but none of these fields comes from a model.
  return write_event(connection, 0, "measurement_conflict",
                     detail.dump(-1, ' ', false, Json::error_handler_t::replace), origin.utc_ms);
}

}  // namespace

Result<int64_t> Store::put_measurements(const MeasurementScope& scope,
                                        const std::vector<Measurement>& measurements,
                                        const std::string& worker_id, bool batch_invariant,
                                        int64_t utc_ms) {
  std::vector<std::vector<uint8_t>> hashes;
  for (const Measurement& m : measurements) {
    KVSWEEP_TRY(check(m));
    KVSWEEP_ASSIGN(std::vector<uint8_t> hash, hash_blob(m.example_hash));
    hashes.push_back(std::move(hash));
  }
  return state_->write([&]() -> Result<int64_t> {
    Connection& connection = state_->connection();
    ScopeRows rows;
    KVSWEEP_ASSIGN(rows.map, state_->map_row(scope.map_id));
    KVSWEEP_ASSIGN(rows.task, state_->task_row(scope.protocol_hash));
    KVSWEEP_ASSIGN(rows.model, state_->model_row(scope.model_hash));
    Origin origin{std::nullopt, worker_id, batch_invariant, utc_ms};
    KVSWEEP_ASSIGN(origin.worker, worker_row(connection, worker_id, utc_ms));
    const int64_t scope_id = make_scope(connection, rows, scope);
    int64_t added = 0;
    for (size_t i = 0; i < measurements.size(); ++i) {
      const Measurement& m = measurements[i];
      const int64_t example = example_row(connection, hashes[i], true);
      KVSWEEP_ASSIGN(const auto known, find(connection, scope_id, example));
      if (!known) {
        insert(connection, scope_id, example, m, origin);
        ++added;
      } else if (const auto fields = differing_fields(*known, m); !fields.empty()) {
        KVSWEEP_TRY(record_conflict(connection, scope, m, fields, origin));
      }
    }
    return added;
  });
}

Result<std::map<std::string, Measurement>> Store::measurements(
    const MeasurementScope& scope, const std::vector<std::string>& example_hashes) const {
  using Found = std::map<std::string, Measurement>;
  std::vector<std::vector<uint8_t>> hashes;
  for (const std::string& hex : example_hashes) {
    KVSWEEP_ASSIGN(std::vector<uint8_t> hash, hash_blob(hex));
    hashes.push_back(std::move(hash));
  }
  return state_->read([&]() -> Result<Found> {
    Connection& connection = state_->connection();
    Found found;
    const auto map = state_->map_row(scope.map_id);
    const auto task = state_->task_row(scope.protocol_hash);
    const auto model = state_->model_row(scope.model_hash);
    if (!map.ok() || !task.ok() || !model.ok()) return found;  // so nothing was measured
    const int64_t scope_id = scope_row(connection, {*map, *task, *model}, scope);
    if (scope_id == 0) return found;
    for (size_t i = 0; i < hashes.size(); ++i) {
      const int64_t example = example_row(connection, hashes[i], false);
      if (example == 0) continue;
      KVSWEEP_ASSIGN(auto known, find(connection, scope_id, example));
      if (!known) continue;
      known->example_hash = example_hashes[i];
      found.emplace(example_hashes[i], std::move(*known));
    }
    return found;
  });
}

}  // namespace kvsweep::store
