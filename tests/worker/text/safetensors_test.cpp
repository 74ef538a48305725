// The safetensors part of worker/rust, through its C interface.
#include <gmock/gmock.h>

#include <cstring>
#include <random>

#include "tests/worker/text/support.hpp"
#include "worker/text/rust_string.hpp"

namespace kvsweep::text {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct Free {
  void operator()(KvsSafetensors* file) const { kvs_safetensors_free(file); }
};
using File = std::unique_ptr<KvsSafetensors, Free>;

std::string file_bytes(const std::string& header, size_t data_bytes) {
  const uint64_t length = header.size();
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);  // the format and this machine: little endian
  bytes += header;
  for (size_t i = 0; i < data_bytes; ++i) bytes += static_cast<char>(i + 1);
  return bytes;
}

// Two tensors, 12 + 8 bytes of data, in another order than that of their data.
constexpr const char* kHeader =
    R"({"__metadata__":{"format":"pt"},)"
    R"("b.weight":{"dtype":"F16","shape":[2,2],"data_offsets":[12,20]},)"
    R"("a":{"dtype":"F32","shape":[3],"data_offsets":[0,12]}})";

std::string refusal(const TempDir& dir, const std::string& bytes) {
  const std::string path = dir.write("model.safetensors", bytes);
  RustError error;
  const File file(kvs_safetensors_open(path.c_str(), error.slot()));
  if (file) return "accepted";
  EXPECT_THAT(error.text(), HasSubstr(path));
  return error.text();
}

std::string refusal_of_entry(const TempDir& dir, const std::string& entry) {
  return refusal(dir,
                 file_bytes("{\"good\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}," +
                                std::string("\"layer.7\":") + entry + "}",
                            12));
}

TEST(Safetensors, ListsTensorsInFileOrder) {
  const TempDir dir;
  const std::string path = dir.write("model.safetensors", file_bytes(kHeader, 20));
  RustError error;
  const File file(kvs_safetensors_open(path.c_str(), error.slot()));
  ASSERT_TRUE(file) << error.text();
  EXPECT_FALSE(error.set());
  ASSERT_EQ(kvs_safetensors_count(file.get()), 2u);

  KvsTensor tensor{};
  ASSERT_EQ(kvs_safetensors_tensor(file.get(), 0, &tensor), 0);
  EXPECT_STREQ(tensor.name, "a");
  EXPECT_STREQ(tensor.dtype, "F32");
  ASSERT_EQ(tensor.rank, 1u);
  EXPECT_EQ(tensor.shape[0], 3u);
  ASSERT_EQ(tensor.bytes, 12u);
  EXPECT_EQ(tensor.data[0], 1);
  EXPECT_EQ(tensor.data[11], 12);

  ASSERT_EQ(kvs_safetensors_tensor(file.get(), 1, &tensor), 0);
  EXPECT_STREQ(tensor.name, "b.weight");
  EXPECT_STREQ(tensor.dtype, "F16");
  ASSERT_EQ(tensor.rank, 2u);
  EXPECT_EQ(tensor.shape[1], 2u);
  ASSERT_EQ(tensor.bytes, 8u);
  EXPECT_EQ(tensor.data[0], 13);
  EXPECT_EQ(kvs_safetensors_tensor(file.get(), 2, &tensor), -1);
}

TEST(Safetensors, AllowsScalarsEmptyTensorsAndEmptyFiles) {
  const TempDir dir;
  EXPECT_EQ(refusal(dir, file_bytes("{}", 0)), "accepted");
  EXPECT_EQ(refusal(dir, file_bytes(R"({"s":{"dtype":"BF16","shape":[],"data_offsets":[0,2]},)"
                                    R"("e":{"dtype":"F32","shape":[0,5],"data_offsets":[2,2]}})",
                                    2)),
            "accepted");
}

TEST(Safetensors, RefusesWhatIsNoFile) {
  const TempDir dir;
  RustError error;
  EXPECT_EQ(kvs_safetensors_open((dir.path() + "/none").c_str(), error.slot()), nullptr);
  EXPECT_EQ(error.text(), "cannot read " + dir.path() + "/none: No such file or directory");
  RustError folder;
  EXPECT_EQ(kvs_safetensors_open(dir.path().c_str(), folder.slot()), nullptr);
  EXPECT_THAT(folder.text(), HasSubstr("not a file"));
}

TEST(Safetensors, RefusesEveryTruncation) {
  const TempDir dir;
  const std::string whole = file_bytes(kHeader, 20);
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_NE(refusal(dir, whole.substr(0, size)), "accepted") << size;
  }
  EXPECT_THAT(refusal(dir, ""), HasSubstr("empty"));
  EXPECT_THAT(refusal(dir, whole.substr(0, 5)), HasSubstr("5 bytes"));
  EXPECT_THAT(refusal(dir, whole.substr(0, 60)), HasSubstr("only 52 follow"));
  // The last tensor loses bytes 18 and 19.
  EXPECT_THAT(refusal(dir, whole.substr(0, whole.size() - 2)),
              AllOf(HasSubstr("'b.weight' ends at byte 20"), HasSubstr("holds 18")));
  EXPECT_THAT(refusal(dir, whole + "xyz"), HasSubstr("last 3 bytes"));
}

TEST(Safetensors, RefusesLyingHeaderLengths) {
  const TempDir dir;
  std::string bytes = file_bytes(kHeader, 20);
  for (const uint64_t length :
       {uint64_t{1} << 63, ~uint64_t{0}, ~uint64_t{0} - 7, uint64_t{1} << 32,
        uint64_t{bytes.size()}, uint64_t{bytes.size() - 7}}) {
    std::memcpy(bytes.data(), &length, sizeof length);
    EXPECT_THAT(refusal(dir, bytes), HasSubstr("header has " + std::to_string(length) + " bytes"));
  }
  for (const uint64_t length : {0, 1, 50}) {
    std::memcpy(bytes.data(), &length, sizeof length);
    EXPECT_THAT(refusal(dir, bytes), HasSubstr("not a JSON object"));
  }
}

TEST(Safetensors, RefusesHeadersThatAreNotObjects) {
  const TempDir dir;
  for (const char* header : {"", "[]", "null", "{\"a\":", "{\"a\":1,}", "42"}) {
    EXPECT_THAT(refusal(dir, file_bytes(header, 0)), HasSubstr("header")) << header;
  }
  EXPECT_THAT(refusal(dir, file_bytes("{\"\xff\":1}", 0)), HasSubstr("UTF-8"));
  EXPECT_NE(refusal(dir, file_bytes(std::string(100000, '['), 0)), "accepted");
  EXPECT_NE(refusal(dir, file_bytes(R"({"__metadata__":3})", 0)), "accepted");
}

TEST(Safetensors, NamesTheTensorAndTheField) {
  const TempDir dir;
  const auto expect = [&](const std::string& entry, const std::string& what) {
    EXPECT_THAT(refusal_of_entry(dir, entry), AllOf(HasSubstr("'layer.7'"), HasSubstr(what)));
  };
  expect("3", "dtype");
  expect("{}", "dtype");
  expect(R"({"dtype":"Q4_1","shape":[8],"data_offsets":[4,12]})", "Q4_1");
  expect(R"({"dtype":"U8","shape":8,"data_offsets":[4,12]})", "shape 8");
  expect(R"({"dtype":"U8","shape":[-8],"data_offsets":[4,12]})", "shape [-8]");
  expect(R"({"dtype":"U8","shape":[8.5],"data_offsets":[4,12]})", "shape [8.5]");
  expect(R"({"dtype":"U8","shape":[8],"data_offsets":[4]})", "data_offsets");
  expect(R"({"dtype":"U8","shape":[8],"data_offsets":[4,12,13]})", "data_offsets");
  expect(R"({"dtype":"U8","shape":[8]})", "data_offsets");
  expect(R"({"dtype":"U8","shape":[8],"data_offsets":[12,4]})", "ends before it begins");
  // Sizes that do not fit the shape: 2 x 3 floats need 24 bytes.
  expect(R"({"dtype":"F32","shape":[2,3],"data_offsets":[4,12]})", "needs 24 bytes");
  expect(R"({"dtype":"F32","shape":[1],"data_offsets":[4,12]})", "needs 4 bytes");
  expect(R"({"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[4,12]})", "2^64");
  expect(R"({"dtype":"F64","shape":[2305843009213693953],"data_offsets":[4,12]})", "2^64");
  expect(R"({"dtype":"U8","shape":[8],"data_offsets":[5,13]})", "ends at byte 13");
  expect(R"({"dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,18446744073709551615]})",
         "ends at byte 18446744073709551615");
}

TEST(Safetensors, NamesBothTensorsThatOverlap) {
  const TempDir dir;
  EXPECT_THAT(refusal_of_entry(dir, R"({"dtype":"U8","shape":[9],"data_offsets":[3,12]})"),
              AllOf(HasSubstr("'good' [0, 4]"), HasSubstr("'layer.7' [3, 12] overlap")));
  EXPECT_THAT(refusal_of_entry(dir, R"({"dtype":"U8","shape":[7],"data_offsets":[5,12]})"),
              AllOf(HasSubstr("bytes 4 to 5"), HasSubstr("belong to no tensor")));
}

// Random damage is either refused with the name of the file or leaves every tensor in the mapping.
TEST(Safetensors, SurvivesRandomDamage) {
  const TempDir dir;
  const std::string whole = file_bytes(kHeader, 20);
  std::mt19937 random(7);
  for (int round = 0; round < 1000; ++round) {
    std::string bytes = whole;
    for (int i = 0; i < 1 + round % 4; ++i) {
      bytes[random() % (bytes.size() - 20)] = static_cast<char>(random());
    }
    const std::string path = dir.write("model.safetensors", bytes);
    RustError error;
    const File file(kvs_safetensors_open(path.c_str(), error.slot()));
    if (!file) {
      EXPECT_THAT(error.text(), HasSubstr(path));
      continue;
    }
    size_t sum = 0;
    for (size_t i = 0; i < kvs_safetensors_count(file.get()); ++i) {
      KvsTensor tensor{};
      ASSERT_EQ(kvs_safetensors_tensor(file.get(), i, &tensor), 0);
      for (uint64_t k = 0; k < tensor.bytes; ++k) sum += tensor.data[k];
    }
    EXPECT_LE(sum, 20u * 21 / 2);  // the data are the bytes 1 to 20
  }
}

TEST(Safetensors, OpensTheReferenceModel) {
  const std::string path = std::string(KVSWEEP_SOURCE_DIR) + "/models/reference/model.safetensors";
  RustError error;
  const File file(kvs_safetensors_open(path.c_str(), error.slot()));
  ASSERT_TRUE(file) << error.text();
  // 8 layers of 9 tensors, the embedding, the last norm.
  EXPECT_EQ(kvs_safetensors_count(file.get()), 8u * 9 + 2);
}

}  // namespace
}  // namespace kvsweep::text
