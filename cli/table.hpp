// Table: aligned columns for people.
#pragma once

#include <string>
#include <vector>

#include "cli/terminal.hpp"

namespace kvsweep::cli {

class Table {
 public:
  // A header that starts with ">" aligns its column to the right, one with "~" may be cut when
  // the terminal is too narrow (only on a terminal: a pipe gets everything).
  explicit Table(std::vector<std::string> headers);

  void row(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }

  // Two blanks between columns, no trailing blanks.
  std::string text(const Terminal& terminal) const;

 private:
  struct Column {
    std::string header;
    bool right = false;
    bool flexible = false;
  };
  std::vector<size_t> widths(const Terminal& terminal) const;
  std::string line(const std::vector<std::string>& cells, const std::vector<size_t>& widths) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace kvsweep::cli
