// Models, golden files and batches for the tests of the engine.
#pragma once

#include <string>
#include <vector>

#include "core/json.hpp"
#include "core/precision_map.hpp"
#include "worker/engine/engine.hpp"
#include "worker/model/model.hpp"

namespace kvsweep::test {

// Folder of a tiny random model: "tied_linear", "untied_llama3" or "plain".
std::string tiny_dir(const std::string& variant);
// The model that ships with the project.
std::string reference_dir();
// The GGUF file of SmolLM2-135M-Instruct that scripts/setup fetches; "" when absent.
std::string smollm2_path();
std::string no_smollm2();  // why a test is skipped

Json read_golden(const std::string& path_in_tests);

engine::Engine load_engine(const std::string& dir, engine::EngineOptions options = {});

// Maps that exercise both views: "baseline", "per-token" (K4V2), "kivi" (K4V2, stepwise),
// "kivi-exact" (K2V2), and every reference scheme by its name (K4V2, kvmix-11pack K3V2).
PrecisionMap make_map(const std::string& kind, int layers);

// Token ids below `vocab`, a pure function of the arguments.
std::vector<int32_t> random_tokens(int64_t count, int64_t vocab, uint64_t seed);

// Logits [tokens, vocab] of every sequence, all run as one batch.
struct BatchSpec {
  PrecisionMap map;
  BaseType base = BaseType::fp16;
  int max_batch = 64;
  int64_t chunk = 256;
  int64_t prompt_tokens = 0;  // of every sequence; 0: its length
};
std::vector<std::vector<float>> batch_logits(model::Model& model, const BatchSpec& spec,
                                             const std::vector<std::vector<int32_t>>& sequences);

float largest_difference(const std::vector<float>& a, const std::vector<float>& b);

}  // namespace kvsweep::test
