#include "core/ranges.hpp"

#include <cmath>

#include "core/file.hpp"
#include "core/json_reader.hpp"

namespace kvsweep {
namespace {

constexpr size_t kMaxLayers = 4096;
constexpr const char* kSchema = "kvsweep-ranges";

struct ConstantCodec {
  Codec codec;
  float largest;  // what the constant 1 reaches: largest code, times largest stored scale
  int bytes;      // of a group's parameters beside the constant
};
constexpr ConstantCodec kConstantCodecs[] = {
    {Codec::fp8_e4m3, 448.0f, 0}, {Codec::fp8_e5m2, 57344.0f, 0}, {Codec::nvfp4, 6.0f * 448.0f, 1}};

const ConstantCodec* find(Codec codec) {
  for (const ConstantCodec& entry : kConstantCodecs) {
    if (entry.codec == codec) return &entry;
  }
  return nullptr;
}

Json list_json(const std::vector<float>& list) {
  Json json = Json::array();
  for (const float value : list) json.push_back(static_cast<double>(value));
  return json;
}

// A list of fp32 numbers; what would be rounded is no range that was observed.
std::vector<float> read_list(JsonReader& reader, const char* key) {
  std::vector<float> list;
  const Json* array = reader.array(key, kMaxLayers);
  if (array == nullptr) return list;
  for (const Json& value : *array) {
    const double number = value.is_number() ? value.get<double>() : 0.0;
    const bool fits = number >= double{kLeastRange} && number <= double{kMostRange};
    if (!fits || static_cast<double>(static_cast<float>(number)) != number) {
      reader.fail(key, "holds " + shown(value) + " for layer " + std::to_string(list.size()) +
                           "; a range is a positive fp32 number from 1e-20 to 1e30, written out "
                           "with all its digits");
      return {};
    }
    list.push_back(static_cast<float>(number));
  }
  if (list.empty()) reader.fail(key, "is empty; it holds a range for each layer");
  return list;
}

std::vector<float> read_optional_list(JsonReader& reader, const char* key) {
  return reader.has(key) ? read_list(reader, key) : std::vector<float>();
}

Status check_lengths(const std::vector<const std::vector<float>*>& lists,
                     const std::string& where) {
  for (const auto* list : lists) {
    if (list->empty() || list->size() == lists.front()->size()) continue;
    return bad_input(where + " holds ranges of " + std::to_string(lists.front()->size()) +
                     " layers and of " + std::to_string(list->size()) +
                     "; every list has an entry for each layer");
  }
  return {};
}

}  // namespace

bool takes_constant(Codec codec) {
  return find(codec) != nullptr;
}

int bytes_beside_constant(Codec codec) {
  const ConstantCodec* entry = find(codec);
  return entry == nullptr ? 0 : entry->bytes;
}

float constant_for(Codec codec, float range) {
  const ConstantCodec* entry = find(codec);
  return entry == nullptr ? 0.0f : range / entry->largest;
}

Json to_json(const Ranges& ranges) {
  Json json = {{"keys", list_json(ranges.keys)}, {"values", list_json(ranges.values)}};
  if (!ranges.model_hash.empty()) json["model_hash"] = ranges.model_hash;
  return json;
}

Result<Ranges> ranges_from_json(const Json& json, const std::string& where) {
  JsonReader reader(json, where);
  Ranges ranges;
  ranges.model_hash = reader.optional_string("model_hash", 128).value_or("");
  ranges.keys = read_list(reader, "keys");
  ranges.values = read_list(reader, "values");
  KVSWEEP_TRY(reader.done());
  KVSWEEP_TRY(check_lengths({&ranges.keys, &ranges.values}, where));
  return ranges;
}

Json to_json(const ObservedRanges& ranges, const Json& observed) {
  Json keys = {{"plain", list_json(ranges.keys)}, {"rotated", list_json(ranges.rotated_keys)}};
  if (!ranges.unbiased_keys.empty()) {
    keys["unbiased"] = list_json(ranges.unbiased_keys);
    keys["rotated_unbiased"] = list_json(ranges.rotated_unbiased_keys);
  }
  return {{"schema", kSchema},
          {"schema_version", 1},
          {"model", {{"hash", ranges.model_hash}}},
          {"observed", observed},
          {"keys", std::move(keys)},
          {"values",
           {{"plain", list_json(ranges.values)}, {"rotated", list_json(ranges.rotated_values)}}}};
}

Result<ObservedRanges> read_ranges_file(const std::string& path) {
  KVSWEEP_ASSIGN(const std::string text, read_file(path));
  KVSWEEP_ASSIGN(const Json json, parse_json(text, path));
  JsonReader reader(json, path);
  if (reader.string("schema", 64) != kSchema) {
    reader.fail("schema", "must be \"kvsweep-ranges\", as `kvsweep calibrate` writes it");
  }
  reader.integer("schema_version", 1, 1);
  const Json* model = reader.object("model");
  const Json* keys = reader.object("keys");
  const Json* values = reader.object("values");
  KVSWEEP_TRY(reader.done());
  ObservedRanges ranges;
  JsonReader of_model(*model, path + ": model");
  ranges.model_hash = of_model.string("hash", 128);
  KVSWEEP_TRY(of_model.done());
  JsonReader of_keys(*keys, path + ": keys");
  ranges.keys = read_list(of_keys, "plain");
  ranges.rotated_keys = read_list(of_keys, "rotated");
  ranges.unbiased_keys = read_optional_list(of_keys, "unbiased");
  ranges.rotated_unbiased_keys = read_optional_list(of_keys, "rotated_unbiased");
  KVSWEEP_TRY(of_keys.done());
  JsonReader of_values(*values, path + ": values");
  ranges.values = read_list(of_values, "plain");
  ranges.rotated_values = read_list(of_values, "rotated");
  KVSWEEP_TRY(of_values.done());
  KVSWEEP_TRY(check_lengths({&ranges.keys, &ranges.rotated_keys, &ranges.unbiased_keys,
                             &ranges.rotated_unbiased_keys, &ranges.values, &ranges.rotated_values},
                            path));
  return ranges;
}

Result<Ranges> choose(const ObservedRanges& observed, const RangeChoice& choice) {
  Ranges ranges;
  ranges.model_hash = observed.model_hash;
  if (choice.unbiased_keys) {
    ranges.keys = choice.rotate_keys ? observed.rotated_unbiased_keys : observed.unbiased_keys;
    if (ranges.keys.empty()) {
      return bad_input(
          "the ranges are of a model without a bias of its keys, so `key_bias: factored` "
          "has no meaning; remove it, or give ranges of the model that has one");
    }
  } else {
    ranges.keys = choice.rotate_keys ? observed.rotated_keys : observed.keys;
  }
  ranges.values = choice.rotate_values ? observed.rotated_values : observed.values;
  return ranges;
}

}  // namespace kvsweep
