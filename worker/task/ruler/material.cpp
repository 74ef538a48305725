// The word lists and the long text that rows are made from.
#include <algorithm>
#include <filesystem>
#include <sstream>

#include "core/file.hpp"
#include "core/text.hpp"
#include "worker/task/ruler/row.hpp"

namespace kvsweep::task::ruler {
namespace {

constexpr size_t kFewestWords = 50;  // enough for different keys and for the example of cwe

Result<std::string> read_text(const std::string& path) {
  KVSWEEP_ASSIGN(std::string text, read_file(path));
  if (!valid_utf8(text)) return bad_input(path + " is not valid UTF-8; RULER's texts must be");
  return text;
}

Result<std::vector<std::string>> read_lines(const std::string& path) {
  KVSWEEP_ASSIGN(const std::string text, read_text(path));
  std::vector<std::string> lines;
  for (std::string& line : split(text, '\n')) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    if (!line.empty()) lines.push_back(std::move(line));
  }
  if (lines.size() < kFewestWords) {
    return bad_input(path + " holds " + std::to_string(lines.size()) + " words; RULER needs " +
                     std::to_string(kFewestWords) + " at least, one a line");
  }
  return lines;
}

Result<std::vector<std::string>> read_essay(const std::string& data_dir) {
  std::string path = data_dir + "/ruler/essay.txt";
  if (!std::filesystem::exists(path)) path = data_dir + "/calib/tinyshakespeare.txt";
  KVSWEEP_ASSIGN(const std::string text, read_text(path));
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  if (words.size() < kFewestWords) {
    return bad_input(path + " holds " + std::to_string(words.size()) +
                     " words; RULER needs a long text");
  }
  return words;
}

}  // namespace

Result<Material> load_material(const std::string& data_dir, bool essay) {
  if (data_dir.empty()) {
    return bad_input(
        "RULER needs its word lists; give the folder that holds ruler/nounlist.txt, "
        "ruler/adjectivelist.txt and ruler/verblist.txt with --data-dir or KVSWEEP_DATA_DIR");
  }
  Material material;
  const std::string folder = data_dir + "/ruler/";
  KVSWEEP_ASSIGN(material.nouns, read_lines(folder + "nounlist.txt"));
  KVSWEEP_ASSIGN(material.adjectives, read_lines(folder + "adjectivelist.txt"));
  KVSWEEP_ASSIGN(material.words, read_lines(folder + "verblist.txt"));
  std::vector<std::string>& words = material.words;
  words.insert(words.end(), material.nouns.begin(), material.nouns.end());
  words.insert(words.end(), material.adjectives.begin(), material.adjectives.end());
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  if (essay) {
    KVSWEEP_ASSIGN(material.essay, read_essay(data_dir));
  }
  return material;
}

}  // namespace kvsweep::task::ruler
