// Small random models of every family, as tests/worker/model/make_family_goldens.py made them for
// transformers: weights are a function of names, so only what transformers computed is stored.
#pragma once

#include <string>
#include <vector>

#include "core/json.hpp"
#include "tests/support/temp_dir.hpp"

namespace kvsweep::test {

// tests/worker/model/families.json; the names of its variants ("gemma2-plain") start with that of
// the family.
const Json& family_goldens();
std::vector<std::string> family_variants();
std::string family_of(const std::string& variant);

// Folder with config.json and model.safetensors (F32) of a variant; removed at the end.
class FamilyModel {
 public:
  explicit FamilyModel(const std::string& variant);
  // Writes config.json anew with other fields; a discarded value removes one.
  void configure(const Json& changes) const;
  std::string dir() const { return dir_.path().string(); }

 private:
  const Json& golden_;
  TempDir dir_;
};

// The logits that are stored of one case, all positions, against `logits` [tokens, vocab]: the
// largest difference.
double golden_difference(const Json& one, const std::vector<float>& logits, int64_t vocab);

}  // namespace kvsweep::test
