#include "worker/task/chinese_segmenter.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <utility>

#include "core/file.hpp"
#include "core/json.hpp"
#include "core/text.hpp"
#include "worker/task/unicode_text.hpp"
#include "worker/task/word_trie.hpp"

namespace kvsweep::task {
namespace {

constexpr char32_t kHanFirst = 0x4e00;
constexpr char32_t kHanLast = 0x9fd5;
constexpr size_t kHanCount = kHanLast - kHanFirst + 1;
constexpr double kImpossible = -3.14e100;  // the logarithm that jieba writes for probability 0

// In this order a greater index is a greater letter, which breaks ties.
constexpr std::array<std::string_view, 4> kStates = {"B", "E", "M", "S"};
constexpr size_t kB = 0, kE = 1, kM = 2, kS = 3;
// Which two states may come before a state.
constexpr size_t kBefore[4][2] = {{kE, kS}, {kB, kM}, {kB, kM}, {kE, kS}};

bool is_han(char32_t c) {
  return c >= kHanFirst && c <= kHanLast;
}
bool is_ascii_digit(char32_t c) {
  return c >= '0' && c <= '9';
}
bool is_letter_or_digit(char32_t c) {
  return is_ascii_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
// [\u4E00-\u9FD5a-zA-Z0-9+#&._%-]
bool is_block_char(char32_t c) {
  return is_han(c) || is_letter_or_digit(c) ||
         (c < 0x80 && std::string_view("+#&._%-").find(static_cast<char>(c)) != std::string::npos);
}

using Words = std::vector<std::u32string_view>;

void add_characters(std::u32string_view text, Words& words) {
  for (size_t i = 0; i < text.size(); ++i) words.push_back(text.substr(i, 1));
}

}  // namespace

struct ChineseSegmenter::Tables {
  WordTrie dictionary;
  double log_total = 0;
  double start[4] = {};
  double trans[4][4] = {};
  std::vector<double> emit[4];  // [kHanCount]

  Status read_dictionary(const std::string& path);
  Status read_model(const std::string& path);

  void cut_block(std::u32string_view block, Words& words) const;
  void cut_unknown(std::u32string_view run, Words& words) const;
  void cut_han(std::u32string_view run, Words& words) const;
  std::vector<size_t> best_path(std::u32string_view block) const;
  std::vector<uint8_t> best_states(std::u32string_view run) const;
};

namespace {

Result<std::string> read_table(const std::string& path) {
  if (!std::filesystem::exists(path)) {
    return not_found(path +
                     " is missing; Chinese sets are scored with jieba's dictionary: put its "
                     "dict.txt and its finalseg tables as hmm.json into that folder");
  }
  return read_file(path);
}

struct DictionaryLine {
  std::string_view word;
  uint32_t frequency = 0;
};

Result<DictionaryLine> dictionary_line(std::string_view line, const std::string& where) {
  const size_t space = line.find(' ');
  const std::string_view rest = space == std::string_view::npos ? "" : line.substr(space + 1);
  const std::string_view digits = rest.substr(0, rest.find(' '));
  DictionaryLine parsed{line.substr(0, space)};
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), parsed.frequency);
  if (error != std::errc() || end != digits.data() + digits.size() || parsed.word.empty()) {
    return bad_input(where + ": the line must be \"word frequency tag\" with a whole frequency");
  }
  if (!valid_utf8(parsed.word)) return bad_input(where + ": the word is not valid UTF-8");
  return parsed;
}

Result<double> log_probability(const Json& table, const std::string& key,
                               const std::string& where) {
  const auto entry = table.find(key);
  if (entry == table.end()) return kImpossible;
  if (!entry->is_number()) return bad_input(where + ": \"" + key + "\" must be a number");
  return entry->get<double>();
}

Result<Json> member(const Json& object, std::string_view key, const std::string& where) {
  const auto entry = object.find(std::string(key));
  if (!object.is_object() || entry == object.end() || !entry->is_object()) {
    return bad_input(where + ": \"" + std::string(key) +
                     "\" must be an object; the file must hold \"start\", \"trans\" and \"emit\" "
                     "over the states B, M, E and S");
  }
  return *entry;
}

}  // namespace

Status ChineseSegmenter::Tables::read_dictionary(const std::string& path) {
  KVSWEEP_ASSIGN(const std::string text, read_table(path));
  std::string_view rest = text;
  uint64_t total = 0;
  for (int64_t number = 1; !rest.empty(); ++number) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    KVSWEEP_ASSIGN(const DictionaryLine parsed,
                   dictionary_line(line, path + ":" + std::to_string(number)));
    dictionary.add(code_points(parsed.word), parsed.frequency);
    total += parsed.frequency;
  }
  if (total == 0) return bad_input(path + " holds no word; it must have a word a line");
  log_total = std::log(static_cast<double>(total));
  return {};
}

Status ChineseSegmenter::Tables::read_model(const std::string& path) {
  KVSWEEP_ASSIGN(const std::string text, read_table(path));
  KVSWEEP_ASSIGN(const Json model, parse_json(text, path));
  KVSWEEP_ASSIGN(const Json starts, member(model, "start", path));
  KVSWEEP_ASSIGN(const Json transitions, member(model, "trans", path));
  KVSWEEP_ASSIGN(const Json emissions, member(model, "emit", path));
  for (size_t s = 0; s < kStates.size(); ++s) {
    const std::string name(kStates[s]);
    KVSWEEP_ASSIGN(start[s], log_probability(starts, name, path + ", start"));
    KVSWEEP_ASSIGN(const Json next, member(transitions, name, path + ", trans"));
    for (size_t t = 0; t < kStates.size(); ++t) {
      KVSWEEP_ASSIGN(trans[s][t],
                     log_probability(next, std::string(kStates[t]), path + ", trans " + name));
    }
    KVSWEEP_ASSIGN(const Json characters, member(emissions, name, path + ", emit"));
    emit[s].assign(kHanCount, kImpossible);
    for (const auto& [character, value] : characters.items()) {
      const std::u32string c = code_points(character);
      if (c.size() != 1 || !is_han(c[0])) continue;  // never looked up
      if (!value.is_number()) return bad_input(path + ", emit " + name + ": not a number");
      emit[s][c[0] - kHanFirst] = value.get<double>();
    }
  }
  return {};
}

// From right to left the word of every position that begins the likeliest rest; of equals the
// longer. Returns the end of the word at each position. O(block * longest word).
std::vector<size_t> ChineseSegmenter::Tables::best_path(std::u32string_view block) const {
  std::vector<double> score(block.size() + 1, 0);
  std::vector<size_t> end(block.size(), 0);
  for (size_t begin = block.size(); begin-- > 0;) {
    const auto offer = [&](size_t stop, uint32_t frequency) {
      const double value =
          std::log(static_cast<double>(std::max(frequency, 1u))) - log_total + score[stop];
      if (end[begin] == 0 || value >= score[begin]) {
        score[begin] = value;
        end[begin] = stop;
      }
    };
    uint32_t node = WordTrie::kRoot;
    for (size_t stop = begin + 1; stop <= block.size(); ++stop) {
      node = dictionary.child(node, block[stop - 1]);
      if (node == WordTrie::kNone) break;
      if (dictionary.frequency(node) > 0) offer(stop, dictionary.frequency(node));
    }
    if (end[begin] == 0) offer(begin + 1, 0);
  }
  return end;
}

void ChineseSegmenter::Tables::cut_block(std::u32string_view block, Words& words) const {
  const std::vector<size_t> end = best_path(block);
  size_t pending = 0;  // single characters from here on have not been emitted
  const auto flush = [&](size_t until) {
    const std::u32string_view run = block.substr(pending, until - pending);
    if (run.size() > 1 && dictionary.frequency_of(run) == 0) {
      cut_unknown(run, words);
    } else {
      add_characters(run, words);
    }
  };
  for (size_t at = 0; at < block.size(); at = end[at]) {
    if (end[at] == at + 1) continue;
    flush(at);
    words.push_back(block.substr(at, end[at] - at));
    pending = end[at];
  }
  flush(block.size());
}

// The hidden Markov model for Chinese parts; [a-zA-Z0-9]+(?:\.\d+)?%? and what lies between for the
// rest.
void ChineseSegmenter::Tables::cut_unknown(std::u32string_view run, Words& words) const {
  const auto skip = [&](size_t at, const auto& belongs) {
    while (at < run.size() && belongs(run[at])) ++at;
    return at;
  };
  for (size_t at = 0; at < run.size();) {
    size_t end = skip(at, is_han);
    if (end > at) {
      cut_han(run.substr(at, end - at), words);
    } else if (end = skip(at, is_letter_or_digit); end > at) {
      const size_t decimals =
          end < run.size() && run[end] == '.' ? skip(end + 1, is_ascii_digit) : end + 1;
      if (decimals > end + 1) end = decimals;
      if (end < run.size() && run[end] == '%') ++end;
      words.push_back(run.substr(at, end - at));
    } else {
      end = skip(at, [](char32_t c) { return !is_han(c) && !is_letter_or_digit(c); });
      words.push_back(run.substr(at, end - at));
    }
    at = end;
  }
}

// Viterbi. The sums are in jieba's order: with impossible steps in them they tie only so.
std::vector<uint8_t> ChineseSegmenter::Tables::best_states(std::u32string_view run) const {
  std::vector<std::array<uint8_t, 4>> from(run.size());
  std::array<double, 4> score{};
  for (size_t s = 0; s < 4; ++s) score[s] = start[s] + emit[s][run[0] - kHanFirst];
  for (size_t t = 1; t < run.size(); ++t) {
    std::array<double, 4> next{};
    for (size_t s = 0; s < 4; ++s) {
      const double emitted = emit[s][run[t] - kHanFirst];
      const auto [low, high] = kBefore[s];
      const double by_low = score[low] + trans[low][s] + emitted;
      const double by_high = score[high] + trans[high][s] + emitted;
      from[t][s] = static_cast<uint8_t>(by_high >= by_low ? high : low);
      next[s] = std::max(by_low, by_high);
    }
    score = next;
  }
  std::vector<uint8_t> states(run.size());
  states.back() = static_cast<uint8_t>(score[kS] >= score[kE] ? kS : kE);
  for (size_t t = run.size() - 1; t > 0; --t) states[t - 1] = from[t][states[t]];
  return states;
}

void ChineseSegmenter::Tables::cut_han(std::u32string_view run, Words& words) const {
  const std::vector<uint8_t> states = best_states(run);
  size_t begin = 0;
  size_t next = 0;
  for (size_t i = 0; i < run.size(); ++i) {
    if (states[i] == kB) begin = i;
    if (states[i] == kS) begin = i;
    if (states[i] != kE && states[i] != kS) continue;
    words.push_back(run.substr(begin, i + 1 - begin));
    next = i + 1;
  }
  if (next < run.size()) words.push_back(run.substr(next));
}

ChineseSegmenter::ChineseSegmenter(std::unique_ptr<Tables> tables) : tables_(std::move(tables)) {}
ChineseSegmenter::ChineseSegmenter(ChineseSegmenter&&) noexcept = default;
ChineseSegmenter& ChineseSegmenter::operator=(ChineseSegmenter&&) noexcept = default;
ChineseSegmenter::~ChineseSegmenter() = default;

Result<ChineseSegmenter> ChineseSegmenter::load(const std::string& dir) {
  auto tables = std::make_unique<Tables>();
  KVSWEEP_TRY(tables->read_dictionary(dir + "/dict.txt"));
  KVSWEEP_TRY(tables->read_model(dir + "/hmm.json"));
  return ChineseSegmenter(std::move(tables));
}

std::vector<std::u32string_view> ChineseSegmenter::cut(std::u32string_view text) const {
  Words words;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && is_block_char(text[end])) ++end;
    if (end > at) {
      tables_->cut_block(text.substr(at, end - at), words);
    } else {
      end = at + (text.substr(at).starts_with(U"\r\n") ? 2 : 1);
      words.push_back(text.substr(at, end - at));
    }
    at = end;
  }
  return words;
}

}  // namespace kvsweep::task
