#include "worker/task/data_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "core/file.hpp"
#include "core/hash.hpp"
#include "core/json.hpp"
#include "core/longbench.hpp"
#include "worker/task/chinese_segmenter.hpp"
#include "worker/task/longbench_data.hpp"
#include "worker/task/problem_file.hpp"

namespace kvsweep::task {
namespace {

struct DataFile {
  std::string name;       // below the folder
  std::string publisher;  // who publishes it, as owner/repository
  // Reads the file as its task does; the number of rows.
  std::function<Result<size_t>(const std::string& path)> read;
};

Result<size_t> problem_rows(const std::string& path) {
  KVSWEEP_ASSIGN(const Problems problems, read_problems(path));
  return problems.size();
}

Result<size_t> json_members(const std::string& path) {
  KVSWEEP_ASSIGN(const Json json, read_json_file(path));
  return json.size();
}

// Both tables of jieba are read together; the rows are the lines of this one.
Result<size_t> jieba_lines(const std::string& path) {
  KVSWEEP_TRY(ChineseSegmenter::load(std::filesystem::path(path).parent_path().string()));
  KVSWEEP_ASSIGN(const std::string text, read_file(path));
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

DataFile longbench_file(const std::string& name, const LongBenchSet& set,
                        const std::string& publisher) {
  return {name, publisher, [set](const std::string& path) -> Result<size_t> {
            KVSWEEP_ASSIGN(const auto rows, read_longbench(path, set));
            return rows.size();
          }};
}

// Each entry is a list of places for one file, of which the first that is there counts.
std::vector<std::vector<DataFile>> data_files() {
  const std::string longbench = "THUDM/LongBench";
  const std::string gsm8k = "openai/grade-school-math";
  std::vector<std::vector<DataFile>> files = {
      {{"gsm8k/test.jsonl", gsm8k, problem_rows}},
      {{"gsm8k/train.jsonl", gsm8k, problem_rows}},
      {{"jieba/dict.txt", "fxsjy/jieba", jieba_lines}},
      {{"longbench/config/dataset2prompt.json", longbench, json_members}},
  };
  for (const LongBenchSet& set : longbench_sets()) {
    const std::string file = std::string(set.name) + ".jsonl";
    files.push_back({longbench_file("longbench/" + file, set, longbench),
                     longbench_file("longbench/full/" + file, set, longbench)});
  }
  for (const LongBenchSet& set : longbench_sets()) {
    if (!set.extended) continue;
    const std::string file = std::string(set.name) + "_e.jsonl";
    files.push_back({longbench_file("longbench/" + file, set, longbench),
                     longbench_file("longbench/full/" + file, set, longbench)});
  }
  for (const LongBenchSet& set : longbench_sets()) {
    files.push_back({longbench_file("longbench/mini/" + std::string(set.name) + ".jsonl", set,
                                    "MilkThink-Lab/MiniLongBench")});
  }
  return files;
}

struct Found {
  size_t rows = 0;
  std::string hash;
};

Result<Found> look_at(const DataFile& file, const std::string& path) {
  KVSWEEP_ASSIGN(const size_t rows, file.read(path));
  KVSWEEP_ASSIGN(const std::string bytes, read_file(path));
  return Found{rows, sha256_hex(bytes)};
}

const DataFile* present(const std::vector<DataFile>& places, const std::string& data_dir) {
  for (const DataFile& place : places) {
    if (std::filesystem::exists(data_dir + "/" + place.name)) return &place;
  }
  return nullptr;
}

}  // namespace

Status check_data(const std::string& data_dir, std::ostream& out) {
  if (!std::filesystem::is_directory(data_dir)) {
    return not_found("\"" + data_dir + "\" is no folder; name the folder of data sets");
  }
  std::optional<Error> broken;
  std::map<std::string, std::vector<std::string>> missing;  // by publisher
  out << fmt::format("{:<44} {:>7}  {}\n", "file", "rows", "SHA-256");
  for (const std::vector<DataFile>& places : data_files()) {
    const DataFile* file = present(places, data_dir);
    if (file == nullptr) {
      missing[places.front().publisher].push_back(places.front().name);
      continue;
    }
    const Result<Found> found = look_at(*file, data_dir + "/" + file->name);
    if (found.ok()) {
      out << fmt::format("{:<44} {:>7}  {}\n", file->name, found->rows, found->hash);
    } else {
      out << fmt::format("{:<44} {:>7}  {}\n", file->name, "broken", found.error().message);
      if (!broken) broken = found.error();
    }
  }
  for (const auto& [publisher, names] : missing) {
    out << fmt::format("\nmissing; {} publishes:\n", publisher);
    for (const std::string& name : names) out << "  " << name << "\n";
  }
  if (broken) return *broken;
  return {};
}

}  // namespace kvsweep::task
