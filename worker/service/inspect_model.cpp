#include "worker/service/inspect_model.hpp"

#include <algorithm>
#include <filesystem>

#include "worker/model/model.hpp"
#include "worker/model/weights.hpp"
#include "worker/text/chat_template.hpp"
#include "worker/text/tokenizer.hpp"

namespace kvsweep::service {
namespace {

void refuse(Json& report, const Error& error) {
  Json& refused = report["refused"];
  if (std::find(refused.begin(), refused.end(), error.message) == refused.end()) {
    refused.push_back(error.message);
  }
}

void add_weights(const std::string& model, Json& report) {
  const auto files = model::WeightFiles::open(model);
  if (!files.ok()) return refuse(report, files.error());
  Json weights = {{"files", Json::array()}, {"types", Json::array()}};
  for (const std::string& path : files->paths()) {
    std::error_code ignored;
    weights["files"].push_back({{"name", std::filesystem::path(path).filename().string()},
                                {"bytes", std::filesystem::file_size(path, ignored)}});
  }
  for (const auto& [type, totals] : files->totals()) {
    weights["types"].push_back({{"type", type},
                                {"tensors", totals.tensors},
                                {"elements", totals.elements},
                                {"bytes", totals.bytes}});
  }
  report["weights"] = std::move(weights);
}

void add_tokenizer(const std::string& model, Json& report) {
  const auto tokenizer = text::Tokenizer::load(model);
  if (!tokenizer.ok()) return refuse(report, tokenizer.error());
  report["tokenizer"] = {{"kind", tokenizer->kind()}, {"tokens", tokenizer->vocab_size()}};
  report["eos_ids"] = tokenizer->eos_ids();
  report["eos_text"] = tokenizer->eos_text();
}

// A template must not only compile: one turn shows whether it uses what only transformers has.
void add_chat_template(const std::string& model, Json& report) {
  const auto compiled = text::ChatTemplate::load(model);
  if (!compiled.ok() && compiled.error().code == ErrorCode::not_found) {
    report["chat_template"] = false;
    return;
  }
  if (!compiled.ok()) return refuse(report, compiled.error());
  report["chat_template"] = true;
  const auto prompt = compiled->render({{"user", "hello"}}, true);
  if (!prompt.ok()) refuse(report, prompt.error());
}

}  // namespace

Json inspect_model(const std::string& model) {
  Json report = {{"weights", Json()}, {"tokenizer", Json()}, {"chat_template", Json()},
                 {"eos_ids", Json()}, {"eos_text", Json()},  {"refused", Json::array()}};
  const Status accepted = model::check_model(model);
  if (!accepted.ok()) refuse(report, accepted.error());
  add_weights(model, report);
  add_tokenizer(model, report);
  add_chat_template(model, report);
  return report;
}

}  // namespace kvsweep::service
