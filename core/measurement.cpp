#include "core/measurement.hpp"

#include "core/hash.hpp"
#include "core/json_reader.hpp"

namespace kvsweep {
namespace {

constexpr size_t kMaxTextBytes = 1 << 20;
constexpr size_t kMaxTokens = 1 << 18;
constexpr int64_t kMaxIndex = int64_t{1} << 40;
constexpr int64_t kMaxBytes = int64_t{1} << 50;
constexpr double kMaxMilliseconds = 1e12;
constexpr double kMaxNats = 1e6;

template <typename T>
void put(Json& json, const char* key, const std::optional<T>& value) {
  if (value) json[key] = *value;
}

Json to_json(const DraftUse& use) {
  return {{"verifications", use.verifications},
          {"proposed", use.proposed},
          {"accepted", use.accepted},
          {"first_difference", use.first_difference},
          {"realigned", use.realigned}};
}

Result<DraftUse> draft_use_from_json(const Json& json) {
  JsonReader reader(json, "draft");
  DraftUse use;
  use.verifications = reader.integer("verifications", 0, kMaxIndex);
  use.proposed = reader.integer("proposed", 0, kMaxIndex);
  use.accepted = reader.integer("accepted", 0, use.proposed);
  use.first_difference = reader.integer("first_difference", -1, kMaxIndex);
  use.realigned = reader.integer("realigned", 0, kMaxIndex);
  KVSWEEP_TRY(reader.done());
  return use;
}

}  // namespace

std::string MeasurementKey::key() const {
  const Json meaning = {{"measurement", 1},        {"model", model_hash},
                        {"map", map_id},           {"protocol", protocol_hash},
                        {"example", example_hash}, {"numerics", numerics_class},
                        {"base", to_string(base)}};
  return sha256_hex(canonical_json(meaning).value());
}

Json to_json(const Measurement& m) {
  Json json = {{"example", m.example},
               {"example_hash", m.example_hash},
               {"text", m.text},
               {"tokens", m.tokens},
               {"answer", m.answer},
               {"prompt_tokens", m.prompt_tokens},
               {"output_tokens", m.output_tokens},
               {"cache_bytes", m.cache_bytes},
               {"prefill_ms", m.timings.prefill_ms},
               {"decode_ms", m.timings.decode_ms}};
  put(json, "exact_match", m.exact_match);
  put(json, "strict_match", m.strict_match);
  put(json, "token_agreement", m.token_agreement);
  put(json, "kl", m.kl);
  put(json, "nll", m.nll);
  if (m.draft) json["draft"] = to_json(*m.draft);
  return json;
}

Result<Measurement> measurement_from_json(const Json& json) {
  JsonReader reader(json, "measurement");
  Measurement m;
  m.example = reader.integer("example", 0, kMaxIndex);
  m.example_hash = reader.string("example_hash", 128);
  m.text = reader.string("text", kMaxTextBytes);
  m.tokens = reader.tokens("tokens", kMaxTokens);
  m.answer = reader.string("answer", kMaxTextBytes);
  m.exact_match = reader.optional_number("exact_match", 0, 1);
  m.strict_match = reader.optional_number("strict_match", 0, 1);
  m.token_agreement = reader.optional_number("token_agreement", 0, 1);
  // A KL of zero is often computed as a tiny negative sum.
  m.kl = reader.optional_number("kl", -1e-3, kMaxNats);
  m.nll = reader.optional_number("nll", -1e-3, kMaxNats);
  m.prompt_tokens = reader.integer("prompt_tokens", 0, kMaxIndex);
  m.output_tokens = reader.integer("output_tokens", 0, kMaxIndex);
  m.cache_bytes = reader.integer("cache_bytes", 0, kMaxBytes);
  m.timings.prefill_ms = reader.number("prefill_ms", 0, kMaxMilliseconds);
  m.timings.decode_ms = reader.number("decode_ms", 0, kMaxMilliseconds);
  if (const Json* draft = reader.object("draft", true)) {
    m.draft = reader.take(draft_use_from_json(*draft));
  }
  KVSWEEP_TRY(reader.done());
  return m;
}

}  // namespace kvsweep
