#include "worker/text/gguf_vocabulary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace kvsweep::text {
namespace {

constexpr const char* kTokens = "tokenizer.ggml.tokens";
constexpr const char* kKinds = "tokenizer.ggml.token_type";
constexpr const char* kMerges = "tokenizer.ggml.merges";
constexpr const char* kScores = "tokenizer.ggml.scores";
constexpr size_t kMaxPiece = 1024;  // bytes of a token that merges make

using Ids = std::unordered_map<std::string_view, size_t>;

Ids ids_of(const std::vector<std::string>& tokens) {
  Ids ids;
  for (size_t id = 0; id < tokens.size(); ++id) ids.emplace(tokens[id], id);
  return ids;
}

Status check_length(const GgufFile& file, const char* key, size_t found, size_t expected) {
  if (found == expected) return {};
  return file.error(key, fmt::format("has {} elements, but there are {} tokens", found, expected));
}

}  // namespace

Result<GgufVocabulary> GgufVocabulary::read(const GgufFile& file) {
  GgufVocabulary out;
  KVSWEEP_ASSIGN(out.tokens, file.texts(kTokens));
  if (out.tokens.empty()) return file.error(kTokens, "is empty");
  const Ids ids = ids_of(out.tokens);
  for (size_t id = 0; id < out.tokens.size(); ++id) {
    if (ids.at(out.tokens[id]) == id) continue;
    return file.error(kTokens, fmt::format("gives the ids {} and {} to the same text",
                                           ids.at(out.tokens[id]), id));
  }
  if (!file.has(kKinds)) {
    out.kinds.assign(out.tokens.size(), static_cast<int64_t>(TokenKind::normal));
    return out;
  }
  KVSWEEP_ASSIGN(out.kinds, file.integers(kKinds));
  KVSWEEP_TRY(check_length(file, kKinds, out.kinds.size(), out.tokens.size()));
  for (size_t id = 0; id < out.kinds.size(); ++id) {
    if (out.kinds[id] >= 1 && out.kinds[id] <= 6) continue;
    return file.error(kKinds,
                      fmt::format("is {} for token {}; allowed are 1 to 6", out.kinds[id], id));
  }
  return out;
}

bool GgufVocabulary::is_added(size_t id) const {
  return !tokens[id].empty() && (kind(id) == TokenKind::control || kind(id) == TokenKind::unknown ||
                                 kind(id) == TokenKind::user_defined);
}

Result<size_t> GgufVocabulary::id_of(const GgufFile& file, const char* key) const {
  KVSWEEP_ASSIGN(const int64_t id, file.integer(key, 0, static_cast<int64_t>(tokens.size()) - 1));
  return static_cast<size_t>(id);
}

Result<size_t> GgufVocabulary::unknown_id(const GgufFile& file) const {
  const char* key = "tokenizer.ggml.unknown_token_id";
  if (file.has(key)) return id_of(file, key);
  for (size_t id = 0; id < tokens.size(); ++id) {
    if (kind(id) == TokenKind::unknown) return id;
  }
  return file.error(key, "is missing, and no token is of the kind \"unknown\" (2)");
}

Result<Json> read_merges(const GgufFile& file, const GgufVocabulary& vocabulary) {
  KVSWEEP_ASSIGN(const std::vector<std::string> lines, file.texts(kMerges));
  const Ids ids = ids_of(vocabulary.tokens);
  Json merges = Json::array();
  for (size_t rank = 0; rank < lines.size(); ++rank) {
    const std::string& line = lines[rank];
    const size_t space = line.find(' ', 1);
    const std::string left = line.substr(0, space);
    const std::string right = space == std::string::npos ? "" : line.substr(space + 1);
    if (ids.count(left) == 0 || ids.count(right) == 0 || ids.count(left + right) == 0) {
      return file.error(kMerges, fmt::format("holds \"{}\" at rank {}, which does not make a token "
                                             "of two tokens",
                                             line, rank));
    }
    merges.push_back({left, right});
  }
  return merges;
}

Result<Json> merges_by_score(const GgufFile& file, const GgufVocabulary& vocabulary) {
  KVSWEEP_ASSIGN(const std::vector<double> scores, file.numbers(kScores));
  KVSWEEP_TRY(check_length(file, kScores, scores.size(), vocabulary.tokens.size()));
  const auto is_piece = [&](size_t id) { return vocabulary.kind(id) == TokenKind::normal; };
  const Ids ids = ids_of(vocabulary.tokens);

  struct Merge {
    double score;
    size_t left, right;  // ids
  };
  std::vector<Merge> merges;
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    const std::string_view whole = vocabulary.tokens[id];
    if (!is_piece(id) || whole.size() > kMaxPiece) continue;
    const size_t first = merges.size();
    for (size_t cut = 1; cut < whole.size(); ++cut) {
      const auto left = ids.find(whole.substr(0, cut));
      const auto right = ids.find(whole.substr(cut));
      if (left == ids.end() || right == ids.end()) continue;
      if (is_piece(left->second) && is_piece(right->second)) {
        merges.push_back({scores[id], left->second, right->second});
      }
    }
    std::sort(merges.begin() + static_cast<int64_t>(first), merges.end(),
              [](const Merge& a, const Merge& b) {
                return std::pair(a.left, a.right) < std::pair(b.left, b.right);
              });
  }
  const auto characters = [&](size_t id) {
    const std::string& text = vocabulary.tokens[id];
    return std::count_if(text.begin(), text.end(),
                         [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; });
  };
  std::vector<int64_t> lengths;
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) lengths.push_back(characters(id));
  std::stable_sort(merges.begin(), merges.end(), [&](const Merge& a, const Merge& b) {
    if (a.score != b.score) return a.score > b.score;
    if (lengths[a.left] != lengths[b.left]) return lengths[a.left] > lengths[b.left];
    return lengths[a.right] > lengths[b.right];
  });
  Json out = Json::array();
  for (const Merge& merge : merges) {
    out.push_back({vocabulary.tokens[merge.left], vocabulary.tokens[merge.right]});
  }
  return out;
}

}  // namespace kvsweep::text
