// Models, tasks, schemes and maps: what measurements and trials refer to.
#include <nlohmann/json.hpp>

#include "core/json.hpp"
#include "core/text.hpp"
#include "store/state.hpp"

namespace kvsweep::store {

namespace {

// ["int8/int4", ["int8/int4", "int4/int2"]]: a layer, and one whose KV heads have own pairs.
std::string layers_json(const PrecisionMap& map) {
  Json layers = Json::array();
  for (const LayerPairs& layer : map.layers) {
    Json heads = Json::array();
    for (const Pair& pair : layer.pairs()) {
      heads.push_back(std::string(info(pair.k).name) + '/' + std::string(info(pair.v).name));
    }
    layers.push_back(layer.per_head() ? std::move(heads) : heads[0]);
  }
  return layers.dump();
}

Result<Pair> pair_from_names(const std::string& names) {
  const size_t slash = names.find('/');
  if (slash == std::string::npos) {
    return bad_input("the database holds the layer \"" + names + "\", which is no K/V pair");
  }
  KVSWEEP_ASSIGN(const Codec k, codec_from(names.substr(0, slash)));
  KVSWEEP_ASSIGN(const Codec v, codec_from(names.substr(slash + 1)));
  return Pair{k, v};
}

Result<LayerPairs> layer_from_json(const Json& entry) {
  const Json heads = entry.is_array() ? entry : Json::array({entry});
  std::vector<Pair> pairs;
  for (const Json& head : heads) {
    if (!head.is_string()) break;
    KVSWEEP_ASSIGN(const Pair pair, pair_from_names(head.get<std::string>()));
    pairs.push_back(pair);
  }
  if (pairs.empty() || pairs.size() != heads.size()) {
    return bad_input("the database holds the layer " + entry.dump() +
                     ", which is no K/V pair and no list of them");
  }
  return LayerPairs::of_heads(std::move(pairs));
}

Result<int64_t> scheme_row(Connection& connection, const Scheme& scheme) {
  KVSWEEP_ASSIGN(const std::string options, canonical_json(to_json(options_of(scheme))));
  connection.query("INSERT OR IGNORE INTO schemes (name, options) VALUES (?,?)")
      .with(scheme.name, options)
      .run();
  Query row = connection.query("SELECT id FROM schemes WHERE options = ?");
  row.with(options);
  if (!row.step()) return bad_input("scheme \"" + scheme.name + "\" has values out of range");
  return row.integer(0);
}

Result<Scheme> read_scheme(Connection& connection, int64_t id) {
  Query row = connection.query("SELECT options FROM schemes WHERE id = ?");
  row.with(id);
  if (!row.step()) return not_found("the database has no scheme with row " + std::to_string(id));
  KVSWEEP_ASSIGN(const Json json, parse_json(row.text(0), "schemes.options"));
  KVSWEEP_ASSIGN(const SchemeOptions options, scheme_options_from_json(json));
  return make_scheme(options);
}

Result<int64_t> row_of(Connection& connection, const char* sql, const std::string& hash,
                       const std::string& missing) {
  Query row = connection.query(sql);
  row.with(hash);
  if (!row.step()) return not_found(missing);
  return row.integer(0);
}

// The least string above all that begin with `prefix`, for an index range.
std::string past_prefix(std::string prefix) {
  ++prefix.back();
  return prefix;
}

}  // namespace

Result<int64_t> Store::State::model_row(const std::string& model_hash) const {
  return row_of(connection(), "SELECT id FROM models WHERE hash = ?", model_hash,
                "the database does not know a model with hash \"" + model_hash +
                    "\"; it must be recorded before what was measured on it");
}

Result<int64_t> Store::State::map_row(const std::string& map_id) const {
  return row_of(connection(), "SELECT id FROM maps WHERE map_id = ?", map_id,
                "the database does not know map " + map_id +
                    "; it must be recorded before what was measured under it");
}

Result<int64_t> Store::State::task_row(const std::string& protocol_hash) const {
  return row_of(connection(), "SELECT id FROM tasks WHERE protocol_hash = ?", protocol_hash,
                "the database does not know a task with protocol hash " + protocol_hash +
                    "; it must be recorded before what was measured with it");
}

Status Store::put_model(const std::string& model_hash, const std::string& dir,
                        const ModelGeometry& geometry) {
  return state_->write([&]() -> Status {
    state_->connection()
        .query(
            "INSERT INTO models (hash, dir, family, num_layers, geometry) VALUES (?,?,?,?,?) "
            "ON CONFLICT (hash) DO UPDATE SET dir = excluded.dir WHERE dir <> excluded.dir")
        .with(model_hash, dir, geometry.family, geometry.num_layers(), to_json(geometry).dump())
        .run();
    return {};
  });
}

Status Store::put_task(const TaskProtocol& protocol, RunMode mode, int64_t examples) {
  return state_->write([&]() -> Status {
    state_->connection()
        .query(
            "INSERT INTO tasks (protocol_hash, name, version, split, shots, seed, "
            "max_new_tokens, length, mode, examples, form, context, rows) "
            "VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?) "
            "ON CONFLICT (protocol_hash) DO UPDATE SET examples = excluded.examples "
            "WHERE examples < excluded.examples")
        .with(protocol_hash(protocol, mode), protocol.name, protocol.version, protocol.split,
              protocol.shots, protocol.seed, protocol.max_new_tokens, protocol.length,
              to_string(mode), examples, to_string(protocol.form), protocol.context, protocol.rows)
        .run();
    return {};
  });
}

Status Store::put_map(const PrecisionMap& map) {
  return state_->write([&]() -> Status {
    Connection& connection = state_->connection();
    const std::string id = map_id(map);
    if (state_->map_row(id).ok()) return {};
    KVSWEEP_ASSIGN(const int64_t scheme, scheme_row(connection, map.scheme));
    connection
        .query(
            "INSERT INTO maps (map_id, scheme_id, num_layers, layers, summary) "
            "VALUES (?,?,?,?,?)")
        .with(id, scheme, map.num_layers(), layers_json(map), summary(map))
        .run();
    return {};
  });
}

Result<PrecisionMap> Store::map_by_id(const std::string& map_id_or_prefix) const {
  return state_->read([&]() -> Result<PrecisionMap> {
    Connection& connection = state_->connection();
    if (map_id_or_prefix.empty()) return bad_input("the map id is empty; give some of its digits");
    Query row = connection.query(
        "SELECT map_id, scheme_id, layers FROM maps WHERE map_id >= ? AND map_id < ? "
        "ORDER BY map_id LIMIT 2");
    row.with(map_id_or_prefix, past_prefix(map_id_or_prefix));
    if (!row.step()) {
      return not_found("the database has no map whose id begins with " + map_id_or_prefix +
                       "; kvsweep trials lists the maps of a study");
    }
    const std::string id = row.text(0);
    const int64_t scheme_id = row.integer(1);
    const std::string layers = row.text(2);
    if (row.step()) {
      return bad_input("several maps begin with " + map_id_or_prefix + " (" + id.substr(0, 16) +
                       ", " + row.text(0).substr(0, 16) + "); give more digits");
    }
    PrecisionMap map;
    KVSWEEP_ASSIGN(map.scheme, read_scheme(connection, scheme_id));
    KVSWEEP_ASSIGN(const Json json, parse_json(layers, "map " + id));
    for (const Json& entry : json) {
      KVSWEEP_ASSIGN(LayerPairs layer, layer_from_json(entry));
      map.layers.push_back(std::move(layer));
    }
    return map;
  });
}

}  // namespace kvsweep::store
