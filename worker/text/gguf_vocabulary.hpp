// Tokens, their kinds and their merges, as GGUF lists them. Internal to worker/text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/gguf.hpp"
#include "core/json.hpp"

namespace kvsweep::text {

enum class TokenKind { normal = 1, unknown, control, user_defined, unused, byte };

struct GgufVocabulary {
  std::vector<std::string> tokens;  // by id, no two alike
  std::vector<int64_t> kinds;       // as many; numbers of TokenKind

  static Result<GgufVocabulary> read(const GgufFile& file);

  TokenKind kind(size_t id) const { return static_cast<TokenKind>(kinds[id]); }
  // Cut out of the text as it stands.
  bool is_added(size_t id) const;
  // The id under `key`, which must be that of a token.
  Result<size_t> id_of(const GgufFile& file, const char* key) const;
  // The token for what has no other: the key's, else the one of that kind.
  Result<size_t> unknown_id(const GgufFile& file) const;
};

// [["a", "b"], ...] of tokenizer.ggml.merges, best first.
Result<Json> read_merges(const GgufFile& file, const GgufVocabulary& vocabulary);

// The merges that SentencePiece's scores amount to: every way to make a token of two others, by the
// score of the whole, best first; of one score the longer left part first, then the longer right
// part (the rule of transformers' converter, which made every tokenizer.json of that kind).
Result<Json> merges_by_score(const GgufFile& file, const GgufVocabulary& vocabulary);

}  // namespace kvsweep::text
