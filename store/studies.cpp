// Sweeps, studies and their layer groups.
#include <nlohmann/json.hpp>

#include <algorithm>

#include "core/json.hpp"
#include "core/text.hpp"
#include "store/state.hpp"

namespace kvsweep::store {

namespace {

constexpr const char* kSelectStudy =
    "SELECT s.id, w.name, s.name, s.spec, m.hash, m.geometry, s.numerics_class, s.status, "
    "s.status_reason, s.reference_bytes, s.reference_loss, s.created_utc_ms, s.finished_utc_ms "
    "FROM studies s JOIN sweeps w ON w.id = s.sweep_id JOIN models m ON m.id = s.model_id "
    "WHERE ?1 = 0 OR s.id = ?1 ORDER BY s.id";

std::string full_name(const std::string& sweep, const std::string& name) {
  return sweep.empty() ? name : sweep + '/' + name;
}

Result<StudyRow> read_study(const Query& row) {
  StudyRow study;
  study.id = row.integer(0);
  study.sweep = row.text(1);
  study.name = row.text(2);
  const std::string where = "study " + full_name(study.sweep, study.name) + " in the database";
  KVSWEEP_ASSIGN(const Json spec, parse_json(row.text(3), where));
  KVSWEEP_ASSIGN(study.spec, study_spec_from_json(spec));
  study.model_hash = row.text(4);
  KVSWEEP_ASSIGN(const Json geometry, parse_json(row.text(5), where));
  KVSWEEP_ASSIGN(study.geometry, geometry_from_json(geometry));
  study.numerics_class = row.text(6);
  KVSWEEP_ASSIGN(study.status, study_status_from(row.text(7)));
  study.status_reason = row.text(8);
  study.reference_bytes = row.real(9);
  study.reference_loss = row.real(10);
  study.created_utc_ms = row.integer(11);
  study.finished_utc_ms = row.integer(12);
  return study;
}

Result<StudyRow> study_by_id(Connection& connection, int64_t id) {
  Query row = connection.query(kSelectStudy);
  row.with(id);
  if (!row.step()) return not_found("the database has no study with id " + std::to_string(id));
  return read_study(row);
}

Result<int64_t> sweep_row(Connection& connection, const std::string& sweep, int64_t utc_ms) {
  connection.query("INSERT OR IGNORE INTO sweeps (name, created_utc_ms) VALUES (?, ?)")
      .with(sweep, utc_ms)
      .run();
  Query row = connection.query("SELECT id FROM sweeps WHERE name = ?");
  row.with(sweep);
  if (!row.step()) return Error{ErrorCode::internal, "a sweep vanished while it was recorded"};
  return row.integer(0);
}

std::string shown(const Json& flat, const std::string& key) {
  return flat.contains(key) ? flat.at(key).dump() : "unset";
}

// "/search/seed" -> "search.seed", as a spec spells it.
std::string spelled(const std::string& pointer) {
  std::string key = pointer.substr(1);
  std::replace(key.begin(), key.end(), '/', '.');
  return key;
}

// "search.seed was 7 and is now 8" for every leaf that differs. The model's folder is not looked
// at (the hash says which model it is).
std::vector<std::string> differences(const Json& before, const Json& now) {
  const Json old_flat = before.flatten();
  const Json new_flat = now.flatten();
  std::vector<std::string> found;
  const auto compare = [&](const std::string& key) {
    if (key == "/model") return;
    const std::string a = shown(old_flat, key);
    const std::string b = shown(new_flat, key);
    if (a != b) found.push_back(spelled(key) + " was " + a + " and is now " + b);
  };
  for (const auto& item : old_flat.items()) compare(item.key());
  for (const auto& item : new_flat.items()) {
    if (!old_flat.contains(item.key())) compare(item.key());
  }
  return found;
}

Error cannot_resume(const StudyRow& study, const std::string& difference) {
  return {ErrorCode::conflict,
          "study " + full_name(study.sweep, study.name) +
              " is in the database already with another definition: " + difference +
              "; give the new study another name, or restore the old definition to continue it"};
}

Status write_study(Connection& connection, const StudyRow& study) {
  const int64_t changed =
      connection
          .query(
              "UPDATE studies SET numerics_class = ?, status = ?, status_reason = ?, "
              "reference_bytes = ?, reference_loss = ?, finished_utc_ms = ? WHERE id = ?")
          .with(study.numerics_class, to_string(study.status), study.status_reason,
                study.reference_bytes, study.reference_loss, study.finished_utc_ms, study.id)
          .run();
  if (changed > 0) return {};
  return not_found("the database has no study with id " + std::to_string(study.id));
}

// A study that failed before any trial was complete blocks its name for nobody: another definition
// takes its row. Units and events stay as what happened.
bool replaceable(Connection& connection, const StudyRow& study) {
  if (study.status != StudyStatus::failed) return false;
  Query row = connection.query(
      "SELECT EXISTS (SELECT 1 FROM trials WHERE study_id = ? AND state = 'complete')");
  row.with(study.id);
  return row.step() && row.integer(0) == 0;
}

Result<StudyRow> replace_study(Connection& connection, int64_t id, int64_t model,
                               const std::string& spec_json, int64_t utc_ms) {
  connection.query("DELETE FROM trials WHERE study_id = ?").with(id).run();
  connection.query("DELETE FROM groups WHERE study_id = ?").with(id).run();
  connection
      .query(
          "UPDATE studies SET model_id = ?, spec = ?, numerics_class = '', status = 'running', "
          "status_reason = '', reference_bytes = 0, reference_loss = 1, created_utc_ms = ?, "
          "finished_utc_ms = 0 WHERE id = ?")
      .with(model, spec_json, utc_ms, id)
      .run();
  KVSWEEP_TRY(write_event(connection, id, "study_redefined", "{}", utc_ms));
  return study_by_id(connection, id);
}

// Raising search.trials continues a study, even a finished one; everything else must be equal.
Result<StudyRow> resume_study(Connection& connection, int64_t id, const StudySpec& spec,
                              const std::string& spec_json, const std::string& model_hash,
                              int64_t utc_ms) {
  KVSWEEP_ASSIGN(StudyRow study, study_by_id(connection, id));
  if (study.model_hash != model_hash) {
    return cannot_resume(study, "its model's hash was " + study.model_hash.substr(0, 12) +
                                    " and is now " + model_hash.substr(0, 12));
  }
  const int64_t trials_before = study.spec.search.trials;
  const bool extended = spec.search.trials > trials_before;
  StudySpec comparable = spec;
  if (extended) comparable.search.trials = trials_before;
  const std::vector<std::string> differing = differences(to_json(study.spec), to_json(comparable));
  if (!differing.empty()) return cannot_resume(study, join(differing, ", "));
  if (study.status == StudyStatus::finished && !extended) return study;
  study.status = StudyStatus::running;
  study.status_reason.clear();
  study.finished_utc_ms = 0;
  KVSWEEP_TRY(write_study(connection, study));
  connection.query("UPDATE studies SET spec = ? WHERE id = ?").with(spec_json, id).run();
  if (extended) {
    const Json detail = {{"trials_before", trials_before}, {"trials", spec.search.trials}};
    KVSWEEP_TRY(write_event(connection, id, "study_extended", detail.dump(), utc_ms));
  }
  return study_by_id(connection, id);
}

}  // namespace

Result<StudyRow> Store::create_or_resume_study(const std::string& sweep, const StudySpec& spec,
                                               const std::string& model_hash,
                                               const ModelGeometry& geometry, int64_t utc_ms) {
  return state_->write([&]() -> Result<StudyRow> {
    Connection& connection = state_->connection();
    KVSWEEP_TRY(put_model(model_hash, spec.model, geometry));
    KVSWEEP_ASSIGN(const int64_t model, state_->model_row(model_hash));
    KVSWEEP_ASSIGN(const int64_t sweep_id, sweep_row(connection, sweep, utc_ms));
    KVSWEEP_ASSIGN(const std::string spec_json, canonical_json(to_json(spec)));
    int64_t id = 0;
    {
      Query row = connection.query("SELECT id FROM studies WHERE sweep_id = ? AND name = ?");
      row.with(sweep_id, spec.name);
      if (row.step()) id = row.integer(0);
    }
    if (id == 0) {
      Query insert = connection.query(
          "INSERT INTO studies (sweep_id, name, model_id, spec, numerics_class, status, "
          "status_reason, reference_bytes, reference_loss, created_utc_ms, finished_utc_ms) "
          "VALUES (?,?,?,?,'','running','',0,1,?,0)");
      insert.with(sweep_id, spec.name, model, spec_json, utc_ms).run();
      return study_by_id(connection, connection.database().getLastInsertRowid());
    }
    KVSWEEP_ASSIGN(const StudyRow study, study_by_id(connection, id));
    const bool same =
        study.model_hash == model_hash && differences(to_json(study.spec), to_json(spec)).empty();
    if (!same && replaceable(connection, study)) {
      return replace_study(connection, id, model, spec_json, utc_ms);
    }
    return resume_study(connection, id, spec, spec_json, model_hash, utc_ms);
  });
}

Status Store::update_study(const StudyRow& study) {
  return state_->write([&] { return write_study(state_->connection(), study); });
}

Status Store::put_groups(int64_t study_id, const std::vector<std::vector<int>>& layers,
                         const std::vector<std::vector<Pair>>& candidates) {
  if (layers.size() != candidates.size()) {
    return Error{ErrorCode::internal, "layer groups and their candidates differ in number"};
  }
  return state_->write([&]() -> Status {
    Connection& connection = state_->connection();
    connection.query("DELETE FROM groups WHERE study_id = ?").with(study_id).run();
    for (size_t group = 0; group < layers.size(); ++group) {
      Json pairs = Json::array();
      for (const Pair& pair : candidates[group]) {
        pairs.push_back(std::string(kvsweep::info(pair.k).name) + '/' +
                        std::string(kvsweep::info(pair.v).name));
      }
      connection.query("INSERT INTO groups (study_id, number, layers, candidates) VALUES (?,?,?,?)")
          .with(study_id, static_cast<int64_t>(group), Json(layers[group]).dump(), pairs.dump())
          .run();
    }
    return {};
  });
}

Result<std::vector<StudyRow>> Store::studies() const {
  return state_->read([&]() -> Result<std::vector<StudyRow>> {
    std::vector<StudyRow> all;
    Query row = state_->connection().query(kSelectStudy);
    row.with(0);
    while (row.step()) {
      KVSWEEP_ASSIGN(StudyRow study, read_study(row));
      all.push_back(std::move(study));
    }
    return all;
  });
}

Result<StudyRow> Store::study(const std::string& name) const {
  KVSWEEP_ASSIGN(const std::vector<StudyRow> all, studies());
  std::vector<const StudyRow*> by_name;
  std::vector<std::string> known;
  for (const StudyRow& study : all) {
    const std::string full = full_name(study.sweep, study.name);
    if (full == name) return study;
    if (study.name == name) by_name.push_back(&study);
    known.push_back(full);
    if (study.name != full) known.push_back(study.name);
  }
  if (by_name.size() == 1) return *by_name.front();
  if (by_name.size() > 1) {
    std::vector<std::string> full;
    for (const StudyRow* study : by_name) full.push_back(full_name(study->sweep, study->name));
    return bad_input("study \"" + name + "\" is in several sweeps; say which: " + join(full, ", "));
  }
  for (const StudyRow& study : all) {
    if (std::to_string(study.id) == name) return study;
  }
  const std::string database = state_->connection().path();
  if (all.empty()) return not_found("the database " + database + " holds no study yet");
  const std::string near = nearest_word(name, known);
  return not_found(
      "there is no study \"" + name + "\" in " + database +
      (near.empty() ? "; it has " + join(known, ", ") : "; did you mean " + near + "?"));
}

}  // namespace kvsweep::store
