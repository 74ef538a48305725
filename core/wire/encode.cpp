#include "core/text.hpp"
#include "core/wire/limits.hpp"
#include "core/wire/messages.hpp"

namespace kvsweep::wire {
namespace {

// Texts come from models and operating systems and need not be UTF-8, which the other side
// insists on.
std::string clean(const std::string& text) {
  return valid_utf8(text) ? text : replace_invalid_utf8(text);
}

// A sentence that the other side will take whatever its length: an error message that is too long
// must not make a result undeliverable. Cut between code points.
std::string sentence(const std::string& text, size_t most) {
  std::string fit = clean(text);
  if (fit.size() <= most) return fit;
  size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(fit[end]) & 0xc0) == 0x80) --end;
  fit.resize(end);
  return fit;
}

Json base_of(const char* type) {
  return {{"v", kProtocolVersion}, {"t", type}};
}

Json body(const Hello& m) {
  Json json = base_of("hello");
  json["worker_id"] = clean(m.worker_id);
  json["host"] = sentence(m.host, kMaxText);
  json["pid"] = m.pid;
  json["version"] = sentence(m.version, kMaxText);
  json["device"] = sentence(m.device, kMaxText);
  json["device_name"] = sentence(m.device_name, kMaxText);
  json["numerics_class"] = sentence(m.numerics_class, kMaxText);
  json["threads"] = m.threads;
  json["memory_bytes"] = m.memory_bytes;
  return json;
}

Json body(const Welcome& m) {
  Json json = base_of("welcome");
  json["session"] = clean(m.session);
  json["heartbeat_ms"] = m.heartbeat_ms;
  json["lease_ms"] = m.lease_ms;
  return json;
}

Json body(const Refuse& m) {
  Json json = base_of("refuse");
  json["reason"] = sentence(m.reason, kMaxReason);
  return json;
}

Json body(const Ready&) {
  return base_of("ready");
}

Json to_json(const Unit& unit) {
  Json maps = Json::array();
  for (const PrecisionMap& map : unit.maps) maps.push_back(kvsweep::to_json(map));
  // CBOR maps of messages have text keys, so references travel as a list.
  Json references = Json::array();
  for (const auto& [example, reference] : unit.references) {
    references.push_back({{"example", example}, {"tokens", reference.tokens}});
  }
  Json drafts = Json::array();
  for (const auto& [example, tokens] : unit.drafts) {
    drafts.push_back({{"example", example}, {"tokens", tokens}});
  }
  return {{"unit_id", clean(unit.unit_id)},
          {"kind", unit.kind == UnitKind::describe ? "describe" : "measure"},
          {"model_dir", clean(unit.model_dir)},
          {"model_hash", clean(unit.model_hash)},
          {"base", to_string(unit.base)},
          {"protocol", kvsweep::to_json(unit.protocol)},
          {"mode", to_string(unit.mode)},
          {"maps", std::move(maps)},
          {"examples", unit.examples},
          {"references", std::move(references)},
          {"drafts", std::move(drafts)}};
}

Json body(const Lease& m) {
  Json json = base_of("lease");
  json["lease_id"] = clean(m.lease_id);
  json["attempt"] = m.attempt;
  json["unit"] = to_json(m.unit);
  return json;
}

Json body(const Progress& m) {
  Json json = base_of("progress");
  json["leases"] = Json::array();
  for (const LeaseProgress& lease : m.leases) {
    json["leases"].push_back({{"lease_id", clean(lease.lease_id)},
                              {"done", lease.done},
                              {"total", lease.total},
                              {"tokens", lease.tokens}});
  }
  return json;
}

Json to_json(const MapMeasurements& map) {
  Json list = Json::array();
  for (const Measurement& measurement : map.measurements) {
    Json json = kvsweep::to_json(measurement);
    for (const char* key : {"text", "answer", "example_hash"}) {
      json[key] = clean(json[key].get_ref<const std::string&>());
    }
    list.push_back(std::move(json));
  }
  return {{"map_id", clean(map.map_id)}, {"measurements", std::move(list)}};
}

Json body(const UnitResult& m) {
  Json json = base_of("result");
  json["lease_id"] = clean(m.lease_id);
  json["unit_id"] = clean(m.unit_id);
  json["model_hash"] = clean(m.model_hash);
  json["protocol_hash"] = clean(m.protocol_hash);
  json["base"] = to_string(m.base);
  json["numerics_class"] = sentence(m.numerics_class, kMaxText);
  json["batch_invariant"] = m.batch_invariant;
  json["maps"] = Json::array();
  for (const MapMeasurements& map : m.maps) json["maps"].push_back(to_json(map));
  if (m.description) {
    Json hashes = Json::array();
    for (const std::string& hash : m.description->example_hashes) hashes.push_back(clean(hash));
    json["description"] = {{"examples", m.description->examples},
                           {"example_hashes", std::move(hashes)}};
  }
  if (m.failure) {
    json["failure"] = {{"code", to_string(m.failure->code)},
                       {"message", sentence(m.failure->message, kMaxReason)}};
  }
  json["wall_ms"] = m.wall_ms;
  return json;
}

Json body(const Ack& m) {
  Json json = base_of("ack");
  json["lease_id"] = clean(m.lease_id);
  return json;
}

Json body(const Release& m) {
  Json json = base_of("release");
  json["lease_id"] = clean(m.lease_id);
  json["reason"] = sentence(m.reason, kMaxReason);
  return json;
}

Json body(const Drain&) {
  return base_of("drain");
}

Json body(const Bye& m) {
  Json json = base_of("bye");
  json["reason"] = sentence(m.reason, kMaxReason);
  return json;
}

}  // namespace

std::string_view type_name(const Message& message) {
  static constexpr std::string_view kNames[] = {"hello",   "welcome",  "refuse", "ready",
                                                "lease",   "progress", "result", "ack",
                                                "release", "drain",    "bye"};
  static_assert(std::size(kNames) == std::variant_size_v<Message>);
  return kNames[message.index()];
}

std::string encode(const Message& message) {
  const Json json = std::visit([](const auto& m) { return body(m); }, message);
  std::string bytes;
  Json::to_cbor(json, bytes);
  return bytes;
}

}  // namespace kvsweep::wire
