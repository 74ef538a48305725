#include "cli/table.hpp"

#include <algorithm>

namespace kvsweep::cli {
namespace {

constexpr size_t kGap = 2;
constexpr size_t kLeastFlexible = 16;

}  // namespace

Table::Table(std::vector<std::string> headers) {
  for (std::string& header : headers) {
    Column column;
    if (header.starts_with('>')) column.right = true;
    if (header.starts_with('~')) column.flexible = true;
    column.header = column.right || column.flexible ? header.substr(1) : header;
    columns_.push_back(std::move(column));
  }
}

void Table::row(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
}

std::vector<size_t> Table::widths(const Terminal& terminal) const {
  std::vector<size_t> widths;
  size_t total = 0;
  for (size_t c = 0; c < columns_.size(); ++c) {
    size_t width = display_width(columns_[c].header);
    for (const auto& row : rows_) width = std::max(width, display_width(row[c]));
    widths.push_back(width);
    total += width + (c > 0 ? kGap : 0);
  }
  const auto room = static_cast<size_t>(terminal.width());
  for (size_t c = 0; c < columns_.size() && terminal.interactive() && total > room; ++c) {
    if (!columns_[c].flexible || widths[c] <= kLeastFlexible) continue;
    const size_t cut = std::min(total - room, widths[c] - kLeastFlexible);
    widths[c] -= cut;
    total -= cut;
  }
  return widths;
}

std::string Table::line(const std::vector<std::string>& cells,
                        const std::vector<size_t>& widths) const {
  std::string text;
  for (size_t c = 0; c < columns_.size(); ++c) {
    const bool cut = columns_[c].flexible && display_width(cells[c]) > widths[c];
    const std::string cell = cut ? shortened(cells[c], widths[c]) : cells[c];
    const std::string pad(widths[c] - display_width(cell), ' ');
    if (c > 0) text += std::string(kGap, ' ');
    text += columns_[c].right ? pad + cell : cell + pad;
  }
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

std::string Table::text(const Terminal& terminal) const {
  const std::vector<size_t> wide = widths(terminal);
  std::vector<std::string> headers;
  for (const Column& column : columns_) headers.push_back(column.header);
  std::string all = terminal.bold(line(headers, wide)) + "\n";
  for (const auto& row : rows_) all += line(row, wide) + "\n";
  return all;
}

}  // namespace kvsweep::cli
