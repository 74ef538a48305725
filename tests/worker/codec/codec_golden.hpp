// Reads the cases of reference_codecs.py and make_torch_goldens.py.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/worker/codec/codec_cases.hpp"

namespace kvsweep::codec::testing {

struct CodecCase {
  std::string name;
  std::string codec;
  Layout layout;
  std::vector<float> x;
  std::vector<uint8_t> codes;
  std::vector<uint8_t> params;
  std::vector<float> y;
};

// The hex bytes behind the word `key`.
inline std::vector<uint8_t> read_bytes(std::istream& file, const std::string& key) {
  std::string line, word, digits;
  std::getline(file, line);
  std::istringstream in(line);
  in >> word >> digits;
  if (word != key) ADD_FAILURE() << "expected a line '" << key << "', found '" << word << "'";
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i + 1 < digits.size(); i += 2) {
    bytes.push_back(static_cast<uint8_t>(std::stoul(digits.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

inline std::vector<float> read_floats(std::istream& file, const std::string& key) {
  const std::vector<uint8_t> bytes = read_bytes(file, key);
  std::vector<float> values(bytes.size() / 4);
  std::memcpy(values.data(), bytes.data(), values.size() * 4);
  return values;
}

inline std::vector<CodecCase> read_codec_cases(const std::string& path) {
  std::vector<CodecCase> cases;
  std::ifstream file(path);
  if (!file) ADD_FAILURE() << "cannot read " << path;
  for (std::string line; std::getline(file, line);) {
    CodecCase c;
    std::string word, axis, variant;
    uint32_t constant = 0;
    std::istringstream in(line);
    in >> word >> c.name >> c.codec >> axis >> variant >> std::hex >> constant >> std::dec >>
        c.layout.tokens >> c.layout.head_dim >> c.layout.group;
    c.layout.channel = axis == "channel";
    c.layout.variant.symmetric = variant == "symmetric";
    c.layout.variant.calibrated = variant == "calibrated";
    c.layout.variant.constant = std::bit_cast<float>(constant);
    c.x = read_floats(file, "x");
    c.codes = read_bytes(file, "codes");
    c.params = read_bytes(file, "params");
    c.y = read_floats(file, "y");
    cases.push_back(std::move(c));
  }
  return cases;
}

}  // namespace kvsweep::codec::testing
