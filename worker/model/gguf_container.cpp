#include <fmt/format.h>

#include <cstring>

#include "worker/model/gguf_names.hpp"
#include "worker/model/stored_matrix.hpp"
#include "worker/model/weight_container.hpp"

namespace kvsweep::model {
namespace {

constexpr int64_t kMaxHeads = 1 << 20;

class Gguf final : public WeightContainer {
 public:
  explicit Gguf(GgufFile file) : file_(std::move(file)) {}
  Status fill();

  const Entries& entries() const override { return entries_; }
  Status read(const Entries::value_type& entry, float* out) const override;
  std::string described_by() const override { return "its metadata"; }

 private:
  int64_t heads_of(GgufChange change) const {
    return change == GgufChange::query_rows ? heads_ : kv_heads_;
  }
  Status check_rows(const GgufTensor& tensor, GgufChange change) const;

  struct Source {
    GgmlType type;
    GgufChange change;
  };
  GgufFile file_;
  Entries entries_;
  std::map<std::string, Source> sources_;
  int64_t heads_ = 1;
  int64_t kv_heads_ = 1;
};

Status Gguf::check_rows(const GgufTensor& tensor, GgufChange change) const {
  if (change != GgufChange::query_rows && change != GgufChange::key_rows) return {};
  if (tensor.shape.front() % (2 * heads_of(change)) == 0) return {};
  return bad_input(
      fmt::format("{}: tensor {} has {} rows, which is not an even number for each of "
                  "the {} heads",
                  file_.path(), tensor.name, tensor.shape.front(), heads_of(change)));
}

Status Gguf::fill() {
  KVSWEEP_ASSIGN(const std::string architecture, file_.text("general.architecture"));
  const std::string heads = architecture + ".attention.head_count";
  KVSWEEP_ASSIGN(heads_, file_.integer(heads, 1, kMaxHeads));
  KVSWEEP_ASSIGN(kv_heads_, file_.integer(heads + "_kv", 1, kMaxHeads, heads_));
  for (const GgufTensor& tensor : file_.tensors()) {
    const GgufName known = hugging_face_name(architecture, tensor.name);
    if (known.change == GgufChange::consumed) continue;
    KVSWEEP_TRY(check_rows(tensor, known.change));
    WeightEntry entry;
    entry.path = file_.path();
    entry.dtype = info(tensor.type).name;
    entry.shape = tensor.shape;
    if (known.change == GgufChange::none) entry.type = tensor.type;
    entry.data = tensor.data;
    entry.bytes = tensor.bytes;
    if (!entries_.emplace(known.name, std::move(entry)).second) {
      return bad_input(
          fmt::format("{}: tensor {} is there under two names", file_.path(), known.name));
    }
    sources_.emplace(known.name, Source{tensor.type, known.change});
  }
  if (entries_.empty()) return bad_input(file_.path() + " holds no tensors");
  return {};
}

// Where a stored row belongs: row h d/2 + j of its head is stored as row 2 j + h.
int64_t row_before(int64_t stored, int64_t head_rows) {
  const int64_t within = stored % head_rows;
  return stored - within + within % 2 * (head_rows / 2) + within / 2;
}

void read_interleaved(const WeightEntry& entry, GgmlType type, int64_t heads, float* out) {
  const int64_t rows = entry.shape.front();
  if (entry.shape.size() == 1) {  // a bias: blocks may span rows
    std::vector<float> stored(static_cast<size_t>(rows));
    widen(type, entry.data, rows, stored.data());
    for (int64_t i = 0; i < rows; ++i) {
      out[row_before(i, rows / heads)] = stored[static_cast<size_t>(i)];
    }
    return;
  }
  const int64_t columns = entry.elements() / rows;
  const int64_t row_bytes = static_cast<int64_t>(entry.bytes) / rows;
  for (int64_t i = 0; i < rows; ++i) {
    widen(type, entry.data + i * row_bytes, columns, out + row_before(i, rows / heads) * columns);
  }
}

Status Gguf::read(const Entries::value_type& named, float* out) const {
  const auto& [name, entry] = named;
  const Source source = sources_.at(name);
  if (source.change == GgufChange::query_rows || source.change == GgufChange::key_rows) {
    read_interleaved(entry, source.type, heads_of(source.change), out);
    return {};
  }
  const int64_t count = entry.elements();
  widen(source.type, entry.data, count, out);
  if (source.change == GgufChange::plus_one) {
    for (int64_t i = 0; i < count; ++i) out[i] -= 1.0f;
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<WeightContainer>> open_gguf(const std::string& path) {
  KVSWEEP_ASSIGN(GgufFile file, GgufFile::open(path));
  auto container = std::make_unique<Gguf>(std::move(file));
  KVSWEEP_TRY(container->fill());
  return std::unique_ptr<WeightContainer>(std::move(container));
}

}  // namespace kvsweep::model
