// Every function of kvsweep_rs.h with NULL where something is expected.
#include <gmock/gmock.h>

#include "tests/worker/text/support.hpp"
#include "worker/text/rust_string.hpp"

namespace kvsweep::text {
namespace {

using ::testing::HasSubstr;

TEST(RustInterface, FreesNull) {
  kvs_string_free(nullptr);
  kvs_tokenizer_free(nullptr);
  kvs_ids_free(nullptr, nullptr, 0);
  kvs_template_free(nullptr);
  kvs_safetensors_free(nullptr);
}

TEST(RustInterface, SaysWhatIsMissing) {
  uint32_t* ids = nullptr;
  uint64_t* offsets = nullptr;
  size_t length = 0;
  const auto expect = [](const char* part, auto&& call) {
    RustError error;
    EXPECT_TRUE(call(error.slot()));
    EXPECT_THAT(error.text(), HasSubstr(part));
    EXPECT_TRUE(call(nullptr));  // nobody asks for the message
  };
  expect("path of the tokenizer", [](char** e) { return !kvs_tokenizer_load(nullptr, e); });
  expect("path of the safetensors", [](char** e) { return !kvs_safetensors_open(nullptr, e); });
  expect("the tokenizer is missing", [&](char** e) {
    return kvs_tokenizer_encode(nullptr, "a", 1, 0, &ids, &offsets, e) == -1;
  });
  expect("ids or offsets", [&](char** e) {
    return kvs_tokenizer_encode(nullptr, "a", 1, 0, nullptr, &offsets, e) == -1;
  });
  expect("the text is missing", [&](char** e) {
    return kvs_tokenizer_encode(nullptr, nullptr, 1, 0, &ids, &offsets, e) == -1;
  });
  expect("the list of ids",
         [&](char** e) { return !kvs_tokenizer_decode(nullptr, nullptr, 3, 0, &length, e); });
  expect("the chat template is missing",
         [](char** e) { return !kvs_template_compile(nullptr, 5, e); });
  expect("date",
         [&](char** e) { return !kvs_template_render(nullptr, "{}", 2, nullptr, 9, &length, e); });
  expect("the chat template is missing", [&](char** e) {
    return !kvs_template_render(nullptr, "{}", 2, "2024-01-01", 9, &length, e);
  });
  EXPECT_EQ(ids, nullptr);
  EXPECT_EQ(offsets, nullptr);
}

TEST(RustInterface, AnswersQuestionsAboutNothing) {
  EXPECT_EQ(kvs_tokenizer_vocab_size(nullptr), -1);
  EXPECT_EQ(kvs_tokenizer_token_id(nullptr, "a", 1), -1);
  EXPECT_EQ(kvs_tokenizer_token_id(nullptr, nullptr, 0), -1);
  EXPECT_EQ(kvs_safetensors_count(nullptr), 0u);
  KvsTensor tensor{};
  EXPECT_EQ(kvs_safetensors_tensor(nullptr, 0, &tensor), -1);
}

TEST(RustInterface, GivesByteOffsetsBesideIds) {
  RustError error;
  KvsTokenizer* tokenizer =
      kvs_tokenizer_load(data_path("tiny/tokenizer.json").c_str(), error.slot());
  ASSERT_NE(tokenizer, nullptr) << error.text();
  uint32_t* ids = nullptr;
  uint64_t* offsets = nullptr;
  // "h\u00e9llo": h is byte 0, the two tokens of e-acute share bytes 1 to 3, ll is 3 to 5, o 5
  // to 6.
  const int64_t count =
      kvs_tokenizer_encode(tokenizer, "h\xc3\xa9llo", 6, 0, &ids, &offsets, error.slot());
  ASSERT_EQ(count, 5);
  EXPECT_THAT(std::vector<uint64_t>(offsets, offsets + 10),
              ::testing::ElementsAre(0, 1, 1, 3, 1, 3, 3, 5, 5, 6));
  kvs_ids_free(ids, offsets, count);

  EXPECT_EQ(kvs_tokenizer_encode(tokenizer, nullptr, 0, 0, &ids, &offsets, error.slot()), 0);
  kvs_ids_free(ids, offsets, 0);
  EXPECT_EQ(kvs_tokenizer_token_id(tokenizer, "</s>", 4), 267);
  EXPECT_EQ(kvs_tokenizer_token_id(tokenizer, "nothing", 7), -1);
  EXPECT_EQ(kvs_tokenizer_token_id(tokenizer, "\xff", 1), -1);
  RustString text(kvs_tokenizer_decode(tokenizer, nullptr, 0, 0, nullptr, error.slot()));
  EXPECT_STREQ(text.get(), "");
  kvs_tokenizer_free(tokenizer);
}

TEST(RustInterface, RendersWithLittleOrNoFuel) {
  RustError error;
  KvsTemplate* compiled = kvs_template_compile("{{ a }}", 7, error.slot());
  ASSERT_NE(compiled, nullptr) << error.text();
  size_t length = 0;
  const auto render = [&](uint64_t fuel, char** slot) {
    return RustString(
        kvs_template_render(compiled, R"({"a": 5})", 8, "2024-01-01", fuel, &length, slot));
  };
  RustError empty;
  EXPECT_FALSE(render(0, empty.slot()));
  EXPECT_THAT(empty.text(), HasSubstr("0 steps"));
  RustError unlimited;
  const RustString text = render(~uint64_t{0}, unlimited.slot());
  ASSERT_TRUE(text) << unlimited.text();
  EXPECT_STREQ(text.get(), "5");
  EXPECT_EQ(length, 1u);
  RustError context;
  EXPECT_FALSE(RustString(
      kvs_template_render(compiled, "[1]", 3, "2024-01-01", 99, &length, context.slot())));
  EXPECT_THAT(context.text(), HasSubstr("not a JSON object"));
  kvs_template_free(compiled);
}

}  // namespace
}  // namespace kvsweep::text
