// Reads the cases that reference.py writes.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace kvsweep::codec::testing {

struct GoldenCase {
  std::string name;
  bool channel_axis = false;
  int bits = 0;
  int tokens = 0;
  int head_dim = 0;
  int group = 0;
  std::vector<uint32_t> x;      // float bit patterns
  std::vector<uint32_t> codes;  // bytes
  std::vector<uint32_t> params;
  std::vector<uint32_t> y;
};

inline std::vector<uint32_t> read_hexes(const std::string& line, const std::string& key) {
  std::istringstream in(line);
  std::string word;
  in >> word;
  if (word != key) ADD_FAILURE() << "expected a line '" << key << "', found '" << word << "'";
  std::vector<uint32_t> values;
  while (in >> word) values.push_back(static_cast<uint32_t>(std::stoul(word, nullptr, 16)));
  return values;
}

inline std::vector<GoldenCase> read_golden(const std::string& path) {
  std::vector<GoldenCase> cases;
  std::ifstream file(path);
  if (!file) ADD_FAILURE() << "cannot read " << path;
  std::string line;
  while (std::getline(file, line)) {
    GoldenCase c;
    std::string word, axis;
    std::istringstream in(line);
    in >> word >> c.name >> axis >> c.bits >> c.tokens >> c.head_dim >> c.group;
    c.channel_axis = axis == "channel";
    std::getline(file, line);
    c.x = read_hexes(line, "x");
    std::getline(file, line);
    c.codes = read_hexes(line, "codes");
    std::getline(file, line);
    c.params = read_hexes(line, "params");
    std::getline(file, line);
    c.y = read_hexes(line, "y");
    cases.push_back(std::move(c));
  }
  return cases;
}

}  // namespace kvsweep::codec::testing
