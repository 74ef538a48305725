#include "cli/model_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "cli/machine.hpp"
#include "core/model_config.hpp"
#include "core/text.hpp"

namespace kvsweep::cli {
namespace {

constexpr int64_t kBytesAt16Bits = 2;
constexpr int64_t kWorthSaying = int64_t{256} << 20;  // bytes to hash: about a second
constexpr int64_t kWorkerTimeoutMs = 300000;          // a large tokenizer on a busy machine

void refuse(ModelReport& report, const std::string& reason) {
  if (std::find(report.refused.begin(), report.refused.end(), reason) == report.refused.end()) {
    report.refused.push_back(reason);
  }
}

// For show only: whether the model is accepted is decided elsewhere.
void read_config(ModelReport& report) {
  const auto config = read_model_config(report.path);
  if (!config.ok() || !config->is_object()) return;
  const Json architectures = config->value("architectures", Json());
  if (architectures.is_array() && !architectures.empty() && architectures[0].is_string()) {
    report.architecture = architectures[0].get<std::string>();
  }
  const Json heads = config->value("num_attention_heads", Json());
  if (heads.is_number_integer()) report.query_heads = heads.get<int64_t>();
}

Result<Json> ask_worker(const ModelQuestion& question) {
  KVSWEEP_ASSIGN(const std::string program, find_worker_program(question.worker_program));
  KVSWEEP_ASSIGN(const std::string output,
                 output_of({program, "--inspect=" + question.path, kWorkerTimeoutMs}));
  KVSWEEP_ASSIGN(Json answer, parse_json(output, program));
  if (!answer.is_object() || !answer.contains("refused") || !answer["refused"].is_array()) {
    return bad_input(program + " answers something else; use the kvsweep-worker of this release");
  }
  return answer;
}

void add_worker(const ModelQuestion& question, ModelReport& report) {
  Result<Json> answer = ask_worker(question);
  if (!answer.ok()) {
    report.unchecked = answer.error().message;
    return;
  }
  report.worker = std::move(answer).value();
  for (const Json& reason : report.worker["refused"]) {
    if (reason.is_string()) refuse(report, reason.get<std::string>());
  }
}

void add_hash(ModelReport& report, const Terminal& progress) {
  const int64_t bytes = weight_bytes(report.path);
  const bool say = progress.interactive() && bytes >= kWorthSaying;
  if (say) {
    progress.print(fmt::format("reading {} for the hash (--no-hash leaves it out) ...",
                               human_bytes(static_cast<double>(bytes))));
  }
  const auto hash = model_hash(report.path);
  if (say) progress.print("\r\x1b[K");
  if (hash.ok()) report.hash = *hash;
  if (!hash.ok()) refuse(report, hash.error().message);
}

// "30 layers, 3 KV heads of 64", one part for each run of equal layers.
std::string layers_text(const ModelGeometry& geometry) {
  std::vector<std::string> parts;
  const std::vector<LayerGeometry>& layers = geometry.layers;
  for (size_t first = 0; first < layers.size();) {
    size_t end = first;
    while (end < layers.size() && layers[end] == layers[first]) ++end;
    const std::string which = end - first == layers.size() ? std::to_string(layers.size())
                              : end - first == 1           ? std::to_string(first)
                                                           : fmt::format("{}-{}", first, end - 1);
    parts.push_back(fmt::format("{}: {} KV {} of {}", which, layers[first].kv_heads,
                                layers[first].kv_heads == 1 ? "head" : "heads",
                                layers[first].head_dim));
    first = end;
  }
  return join(parts, "; ");
}

// The worker may be of another release: what it does not say is null.
Json member(const Json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && found != object.end() ? *found : Json();
}

double number(const Json& object, const char* key) {
  const Json value = member(object, key);
  return value.is_number() ? value.get<double>() : 0;
}

std::string word(const Json& object, const char* key) {
  const Json value = member(object, key);
  return value.is_string() ? value.get<std::string>() : "?";
}

std::string weights_text(const Json& weights) {
  if (!weights.is_object()) return "-";
  std::vector<std::string> types;
  double total = 0;
  const Json rows = member(weights, "types");
  for (const Json& type : rows) {
    total += number(type, "bytes");
    types.push_back(fmt::format("{:.0f} {} {}", number(type, "tensors"), word(type, "type"),
                                human_bytes(number(type, "bytes"))));
  }
  const size_t files = member(weights, "files").size();
  return fmt::format("{} in {} {}: {}", human_bytes(total), files, files == 1 ? "file" : "files",
                     join(types, ", "));
}

std::string tokenizer_text(const Json& tokenizer) {
  if (!tokenizer.is_object()) return "-";
  return fmt::format("{}, {:.0f} tokens", word(tokenizer, "kind"), number(tokenizer, "tokens"));
}

std::string yes_no(const Json& flag) {
  return flag.is_boolean() ? (flag.get<bool>() ? "yes" : "no") : "-";
}

std::string eos_text(const Json& worker) {
  const Json list = member(worker, "eos_ids");
  if (!list.is_array()) return "-";
  std::vector<std::string> ids;
  for (const Json& id : list) ids.push_back(id.dump());
  if (ids.empty()) return "none: generation ends at its limit";
  return fmt::format("{} (\"{}\")", join(ids, ", "), word(worker, "eos_text"));
}

int64_t bytes_per_token(const ModelGeometry& geometry) {
  return geometry.elements_per_token() * kBytesAt16Bits;
}

}  // namespace

ModelReport inspect(const ModelQuestion& question, const Terminal& progress) {
  ModelReport report;
  report.path = question.path;
  read_config(report);
  const Result<ModelGeometry> geometry = read_geometry(question.path);
  if (geometry.ok()) report.geometry = *geometry;
  const Status complete = check_model_folder(question.path);
  if (!complete.ok()) refuse(report, complete.error().message);
  std::error_code ignored;
  if (!std::filesystem::exists(question.path, ignored)) return report;
  add_worker(question, report);
  if (question.hash && complete.ok()) add_hash(report, progress);
  return report;
}

std::string model_text(const ModelReport& report, const Terminal& out) {
  std::string text = out.bold(report.path) + "\n";
  const auto line = [&](const char* name, const std::string& value) {
    text += fmt::format("  {:<14} {}\n", name, value.empty() ? "-" : value);
  };
  line("architecture", report.architecture);
  if (report.geometry) {
    const ModelGeometry& geometry = *report.geometry;
    line("family", geometry.family);
    line("layers", layers_text(geometry));
    if (report.query_heads) line("query heads", std::to_string(*report.query_heads));
    line("context", fmt::format("{} tokens", geometry.max_context));
    const auto token = static_cast<double>(bytes_per_token(geometry));
    line("KV at 16 bits", fmt::format("{} per token, {} at the full context", human_bytes(token),
                                      human_bytes(token * geometry.max_context)));
  }
  if (report.worker.is_object()) {
    const Json& worker = report.worker;
    line("weights", weights_text(member(worker, "weights")));
    line("tokenizer", tokenizer_text(member(worker, "tokenizer")));
    line("chat template", yes_no(member(worker, "chat_template")));
    line("ends at", eos_text(worker));
  }
  line("hash", report.hash.value_or("not computed"));
  if (!report.unchecked.empty()) line("not checked", report.unchecked);
  for (const std::string& reason : report.refused) line(out.red("refused").c_str(), reason);
  return text;
}

Json to_json(const ModelReport& report) {
  Json json = {{"path", report.path},
               {"architecture", report.architecture},
               {"geometry", Json()},
               {"query_heads", report.query_heads ? Json(*report.query_heads) : Json()},
               {"kv_bytes_per_token", Json()},
               {"kv_bytes_at_context", Json()},
               {"hash", report.hash ? Json(*report.hash) : Json()},
               {"unchecked", report.unchecked.empty() ? Json() : Json(report.unchecked)},
               {"refused", report.refused}};
  if (report.geometry) {
    json["geometry"] = kvsweep::to_json(*report.geometry);
    json["kv_bytes_per_token"] = bytes_per_token(*report.geometry);
    // A hostile configuration may ask for more than 64 bits hold.
    const double whole =
        static_cast<double>(bytes_per_token(*report.geometry)) * report.geometry->max_context;
    json["kv_bytes_at_context"] = whole < 9e15 ? Json(static_cast<int64_t>(whole)) : Json(whole);
  }
  for (const char* key : {"weights", "tokenizer", "chat_template", "eos_ids", "eos_text"}) {
    json[key] = member(report.worker, key);
  }
  return json;
}

}  // namespace kvsweep::cli
