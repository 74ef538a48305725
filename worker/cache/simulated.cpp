#include "worker/cache/simulated.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "worker/codec/kvtuner.hpp"

namespace kvsweep::cache {
namespace {

// Where element i of the flat order lies in the rows.
class FlatOrder {
 public:
  FlatOrder(Axis axis, const SimulatedShape& shape) : axis_(axis), shape_(shape) {}

  struct Place {
    int64_t token = 0;
    int head = 0;
    int channel = 0;
  };
  Place place(int64_t i) const {
    const int64_t inner = axis_ == Axis::channel ? shape_.tokens : shape_.head_dim;
    const int64_t outer = axis_ == Axis::channel ? shape_.head_dim : shape_.tokens;
    const int64_t in = i % inner;
    const int64_t out = i / inner % outer;
    const int head = static_cast<int>(i / inner / outer);
    if (axis_ == Axis::channel) return {in, head, static_cast<int>(out)};
    return {out, head, static_cast<int>(in)};
  }
  int64_t index(int64_t i) const {
    const Place at = place(i);
    return (at.token * shape_.heads + at.head) * shape_.head_dim + at.channel;
  }

 private:
  Axis axis_;
  SimulatedShape shape_;
};

// Codes and decodes a run of whole groups in place.
class FlatCoder {
 public:
  FlatCoder(const Format& format, int group)
      : format_(format),
        codec_(reference_codec(format)),
        group_(group),
        codes_(static_cast<size_t>(step())),
        params_(static_cast<size_t>(kGroups * codec_.param_bytes({}))) {}

  int64_t step() const { return int64_t{kGroups} * group_; }  // elements at once, at most

  codec::EncodeResult run(int count, float* values) {
    if (format_.symmetric) {
      const bool bf16 = format_.arithmetic == Arithmetic::kvtuner_bf16;
      return codec::kvtuner_symmetric({info(format_.codec).bits, bf16, count, group_}, values);
    }
    const codec::RowShape row{count, group_, {}};
    const codec::EncodeResult result =
        codec_.encode_row(row, values, codes_.data(), params_.data());
    if (result.ok()) codec_.decode_row(row, codes_.data(), params_.data(), values);
    return result;
  }

 private:
  static constexpr int kGroups = 8;

  Format format_;
  const codec::Codec& codec_;
  int group_;
  std::vector<uint8_t> codes_;
  std::vector<uint8_t> params_;
};

}  // namespace

const codec::Codec& reference_codec(const Format& format) {
  std::string name(info(format.codec).name);
  name += "-" + std::string(to_string(format.arithmetic));
  const codec::Codec* codec = codec::find_codec(name);
  if (codec == nullptr) throw std::logic_error("no reference codec " + name);
  return *codec;
}

codec::EncodeResult recode(const Format& format, const SimulatedShape& shape, float* rows,
                           int* head) {
  FlatCoder coder(format, format.group == 0 ? shape.head_dim : format.group);
  const FlatOrder order(format.axis, shape);
  const int64_t count = shape.tokens * shape.heads * shape.head_dim;
  std::vector<float> flat(static_cast<size_t>(coder.step()));
  for (int64_t begin = 0; begin < count; begin += coder.step()) {
    const int64_t length = std::min(coder.step(), count - begin);
    for (int64_t i = 0; i < length; ++i) {
      flat[static_cast<size_t>(i)] = rows[order.index(begin + i)];
    }
    codec::EncodeResult result = coder.run(static_cast<int>(length), flat.data());
    if (!result.ok()) {
      const FlatOrder::Place at = order.place(begin + result.channel);
      *head = at.head;
      result.token = at.token;
      result.channel = at.channel;
      return result;
    }
    for (int64_t i = 0; i < length; ++i) {
      rows[order.index(begin + i)] = flat[static_cast<size_t>(i)];
    }
  }
  return {};
}

codec::EncodeResult code_block(const Format& format, int head_dim, float* rows) {
  const codec::Codec& codec = reference_codec(format);
  std::vector<uint8_t> codes(static_cast<size_t>(codec.row_bytes(head_dim)) *
                             static_cast<size_t>(format.group));
  std::vector<uint8_t> params(static_cast<size_t>(head_dim * codec.param_bytes({})));
  const codec::BlockShape shape{head_dim, format.group, codec.row_bytes(head_dim), {}};
  const codec::EncodeResult result = codec.encode_block(shape, rows, codes.data(), params.data());
  if (result.ok()) codec.decode_block(shape, codes.data(), params.data(), rows);
  return result;
}

}  // namespace kvsweep::cache
