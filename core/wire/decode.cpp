#include <fmt/format.h>

#include <limits>

#include "core/json_reader.hpp"
#include "core/wire/cbor_check.hpp"
#include "core/wire/limits.hpp"
#include "core/wire/messages.hpp"

namespace kvsweep::wire {
namespace {

constexpr size_t kMaxLeases = 64;
constexpr size_t kMaxMaps = 4096;
constexpr size_t kMaxExamples = 1 << 20;
constexpr size_t kMaxReferenceTokens = 1 << 18;
constexpr int64_t kMaxIndex = int64_t{1} << 40;
constexpr int64_t kMaxCount = int64_t{1} << 50;
constexpr int64_t kMaxIntervalMs = 86'400'000;  // one day
constexpr double kMaxWallMs = 1e12;

Hello hello(JsonReader& r) {
  Hello m;
  m.worker_id = r.string("worker_id", kMaxId);
  if (m.worker_id.empty()) r.fail("worker_id", "must not be empty");
  m.host = r.string("host", kMaxText);
  m.pid = r.integer("pid", 0, std::numeric_limits<int32_t>::max());
  m.version = r.string("version", kMaxText);
  m.device = r.string("device", kMaxText);
  m.device_name = r.string("device_name", kMaxText);
  m.numerics_class = r.string("numerics_class", kMaxText);
  m.threads = static_cast<int>(r.integer("threads", 0, 1 << 20));
  m.memory_bytes = r.integer("memory_bytes", 0, kMaxCount);
  return m;
}

Welcome welcome(JsonReader& r) {
  Welcome m;
  m.session = r.string("session", kMaxId);
  m.heartbeat_ms = r.integer("heartbeat_ms", 1, kMaxIntervalMs);
  m.lease_ms = r.integer("lease_ms", 1, kMaxIntervalMs);
  return m;
}

std::string required_id(JsonReader& r, std::string_view key) {
  std::string id = r.string(key, kMaxUnitId);
  if (id.empty()) r.fail(key, "must not be empty");
  return id;
}

// Moves the first error of a part into the whole.
void join(JsonReader& whole, const JsonReader& part) {
  if (const Status status = part.done(); !status.ok()) whole.fail(status.error());
}

void read_references(JsonReader& r, Unit& unit) {
  const Json* list = r.array("references", kMaxExamples);
  if (list == nullptr) return;
  for (const Json& item : *list) {
    JsonReader part(item, "reference");
    const int64_t example = part.integer("example", 0, kMaxIndex);
    unit.references[example].tokens = part.tokens("tokens", kMaxReferenceTokens);
    join(r, part);
  }
}

void read_drafts(JsonReader& r, Unit& unit) {
  const Json* list = r.array("drafts", kMaxExamples);
  if (list == nullptr) return;
  for (const Json& item : *list) {
    JsonReader part(item, "draft");
    const int64_t example = part.integer("example", 0, kMaxIndex);
    unit.drafts[example] = part.tokens("tokens", kMaxReferenceTokens);
    join(r, part);
  }
}

Unit unit(const Json& json, JsonReader& whole) {
  JsonReader r(json, "unit");
  Unit unit;
  unit.unit_id = required_id(r, "unit_id");
  const std::string kind = r.string("kind", 16);
  if (kind != "describe" && kind != "measure") r.fail("kind", "must be describe or measure");
  unit.kind = kind == "describe" ? UnitKind::describe : UnitKind::measure;
  unit.model_dir = r.string("model_dir", kMaxPath);
  unit.model_hash = r.string("model_hash", kMaxId);
  unit.base = r.take(base_type_from(r.string("base", 16)));
  if (const Json* protocol = r.object("protocol")) {
    unit.protocol = r.take(task_protocol_from_json(*protocol));
  }
  unit.mode = r.take(run_mode_from(r.string("mode", 16)));
  if (const Json* maps = r.array("maps", kMaxMaps)) {
    for (const Json& map : *maps) unit.maps.push_back(r.take(precision_map_from_json(map)));
  }
  unit.examples = r.integers("examples", 0, kMaxIndex, kMaxExamples);
  read_references(r, unit);
  read_drafts(r, unit);
  join(whole, r);
  return unit;
}

Lease lease(JsonReader& r) {
  Lease m;
  m.lease_id = required_id(r, "lease_id");
  m.attempt = static_cast<int>(r.integer("attempt", 1, 1 << 20));
  if (const Json* json = r.object("unit")) m.unit = unit(*json, r);
  return m;
}

Progress progress(JsonReader& r) {
  Progress m;
  const Json* leases = r.array("leases", kMaxLeases);
  if (leases == nullptr) return m;
  for (const Json& item : *leases) {
    JsonReader part(item, "lease progress");
    LeaseProgress lease;
    lease.lease_id = required_id(part, "lease_id");
    lease.done = part.integer("done", 0, kMaxCount);
    lease.total = part.integer("total", 0, kMaxCount);
    lease.tokens = part.integer("tokens", 0, kMaxCount);
    join(r, part);
    m.leases.push_back(std::move(lease));
  }
  return m;
}

MapMeasurements map_measurements(const Json& json, JsonReader& whole) {
  JsonReader r(json, "result map");
  MapMeasurements map;
  map.map_id = required_id(r, "map_id");
  if (const Json* list = r.array("measurements", kMaxExamples)) {
    map.measurements.reserve(list->size());
    for (const Json& item : *list) {
      map.measurements.push_back(r.take(measurement_from_json(item)));
    }
  }
  join(whole, r);
  return map;
}

std::optional<Description> description(JsonReader& whole) {
  const Json* json = whole.object("description", true);
  if (json == nullptr) return std::nullopt;
  JsonReader r(*json, "description");
  Description description;
  description.examples = r.integer("examples", 0, kMaxIndex);
  description.example_hashes = r.strings("example_hashes", kMaxId, kMaxExamples);
  join(whole, r);
  return description;
}

std::optional<UnitFailure> failure(JsonReader& whole) {
  const Json* json = whole.object("failure", true);
  if (json == nullptr) return std::nullopt;
  JsonReader r(*json, "failure");
  UnitFailure failure;
  const std::optional<ErrorCode> code = error_code_from(r.string("code", 32));
  if (!code || *code > ErrorCode::internal) {
    r.fail("code", "is not one of the failure classes of a unit");
  }
  failure.code = code.value_or(ErrorCode::internal);
  failure.message = r.string("message", kMaxReason);
  join(whole, r);
  return failure;
}

UnitResult result(JsonReader& r) {
  UnitResult m;
  m.lease_id = required_id(r, "lease_id");
  m.unit_id = required_id(r, "unit_id");
  m.model_hash = r.string("model_hash", kMaxId);
  m.protocol_hash = r.string("protocol_hash", kMaxId);
  m.base = r.take(base_type_from(r.string("base", 16)));
  m.numerics_class = r.string("numerics_class", kMaxText);
  m.batch_invariant = r.boolean("batch_invariant");
  if (const Json* maps = r.array("maps", kMaxMaps)) {
    for (const Json& map : *maps) m.maps.push_back(map_measurements(map, r));
  }
  m.description = description(r);
  m.failure = failure(r);
  m.wall_ms = r.number("wall_ms", 0, kMaxWallMs);
  const int outcomes = !m.maps.empty() + m.description.has_value() + m.failure.has_value();
  if (outcomes != 1) {
    r.fail("maps",
           "must be the only outcome besides \"description\" and \"failure\", and one of "
           "the three must be there");
  }
  return m;
}

Release release(JsonReader& r) {
  Release m;
  m.lease_id = required_id(r, "lease_id");
  m.reason = r.string("reason", kMaxReason);
  return m;
}

Result<Message> message(const std::string& type, JsonReader& r) {
  if (type == "hello") return Message(hello(r));
  if (type == "welcome") return Message(welcome(r));
  if (type == "refuse") return Message(Refuse{r.string("reason", kMaxReason)});
  if (type == "ready") return Message(Ready{});
  if (type == "lease") return Message(lease(r));
  if (type == "progress") return Message(progress(r));
  if (type == "result") return Message(result(r));
  if (type == "ack") return Message(Ack{required_id(r, "lease_id")});
  if (type == "release") return Message(release(r));
  if (type == "drain") return Message(Drain{});
  if (type == "bye") return Message(Bye{r.string("reason", kMaxReason)});
  return bad_input("malformed message: \"t\" is \"" + type + "\", which is no message type");
}

Result<Json> parse(std::string_view bytes) {
  if (static_cast<int64_t>(bytes.size()) > kMaxMessageBytes) {
    return bad_input(fmt::format("malformed message: {} bytes, at most {} are allowed",
                                 bytes.size(), kMaxMessageBytes));
  }
  KVSWEEP_TRY(check_cbor(bytes));
  Json json = Json::from_cbor(bytes.begin(), bytes.end(), true, false);
  if (json.is_discarded()) return bad_input("malformed message: it is not CBOR");
  return json;
}

}  // namespace

Result<Message> decode(std::string_view bytes) {
  KVSWEEP_ASSIGN(const Json json, parse(bytes));
  JsonReader reader(json, "malformed message");
  const int64_t version = reader.integer("v", 0, std::numeric_limits<int32_t>::max());
  const std::string type = reader.string("t", 32);
  KVSWEEP_TRY(reader.done());
  if (version != kProtocolVersion) {
    return Error{ErrorCode::conflict,
                 fmt::format("the other side speaks protocol version {}, this side {}; use the "
                             "same release of kvsweep on both",
                             version, kProtocolVersion)};
  }
  JsonReader fields(json, type);
  KVSWEEP_ASSIGN(Message decoded, message(type, fields));
  KVSWEEP_TRY(fields.done());
  return decoded;
}

}  // namespace kvsweep::wire
