#include "worker/text/tokenizer.hpp"

#include <gmock/gmock.h>

#include <thread>

#include "tests/worker/text/support.hpp"

namespace kvsweep::text {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tokenizer load_tiny() {
  auto tokenizer = Tokenizer::load(data_path("tiny"));
  if (!tokenizer.ok()) throw std::runtime_error(tokenizer.error().message);
  return std::move(tokenizer).value();
}

void expect_rows(const Tokenizer& tokenizer, const Json& rows) {
  ASSERT_GE(rows.size(), 30u);
  for (const Json& row : rows) {
    SCOPED_TRACE(row["text"].dump());
    const auto text = row["text"].get<std::string>();
    const auto ids = row["ids"].get<std::vector<int32_t>>();
    EXPECT_EQ(*tokenizer.encode(text, false), ids);
    EXPECT_EQ(*tokenizer.encode(text, true), row["ids_with_special"].get<std::vector<int32_t>>());
    EXPECT_EQ(*tokenizer.count(text, false), static_cast<int64_t>(ids.size()));
    EXPECT_EQ(*tokenizer.count(text, true), static_cast<int64_t>(row["ids_with_special"].size()));
    EXPECT_EQ(*tokenizer.decode(ids, false), row["decoded"].get<std::string>());
    EXPECT_EQ(*tokenizer.decode(ids, true), row["decoded_without_special"].get<std::string>());
  }
}

TEST(Tokenizer, MergesInTheOrderOfTheFile) {
  const Tokenizer tokenizer = load_tiny();
  // data/tiny: ids 0-255 are bytes, of which the 188 printable ones come first ('!' = 0, so
  // 'a' = 64, 'b' = 65); the other bytes follow in order, so the space is 188 + 32 = 220. Merges:
  // 256 he, 257 ll, 258 hell, 259 hello, 260 " w", 261 or, 262 " wor", 263 " worl", 264 " world",
  // 265 two spaces. Special: 266 <s>, 267 </s>, 268 <|im_end|>.
  EXPECT_THAT(*tokenizer.encode("hello world", false), ElementsAre(259, 264));
  EXPECT_THAT(*tokenizer.encode("hell or", false), ElementsAre(258, 220, 261));
  EXPECT_THAT(*tokenizer.encode("ab", true), ElementsAre(266, 64, 65));
  EXPECT_THAT(*tokenizer.encode("a<|im_end|>", false), ElementsAre(64, 268));
  EXPECT_EQ(tokenizer.vocab_size(), 269);
}

TEST(Tokenizer, EqualsTransformersOnOddTexts) {
  expect_rows(load_tiny(), golden("tiny_golden.json"));
}

TEST(Tokenizer, EqualsTransformersOnSmolLM2) {
  if (!std::filesystem::exists(smollm2_path())) {
    GTEST_SKIP() << smollm2_path() << " is absent; scripts/setup fetches it";
  }
  const auto tokenizer = Tokenizer::load(smollm2_path());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  expect_rows(*tokenizer, golden("smollm2_golden.json")["tokens"]);
  EXPECT_EQ(tokenizer->vocab_size(), 49152);
  EXPECT_THAT(tokenizer->eos_ids(), ElementsAre(2));
  EXPECT_EQ(tokenizer->eos_text(), "<|im_end|>");
}

TEST(Tokenizer, NeverCutsOrPads) {
  // tokenizer.json of data/tiny asks for at most 4 tokens and for padding to 32.
  const auto ids = load_tiny().encode(std::string(1000, 'b'), false);
  EXPECT_EQ(*ids, std::vector<int32_t>(1000, 65));
}

TEST(Tokenizer, RefusesInvalidUtf8) {
  const Tokenizer tokenizer = load_tiny();
  for (const std::string text :
       {"\xff", "ab\xc3", "\xed\xa0\x80", "\xc0\xaf", "\xf4\x90\x80\x80"}) {
    const auto ids = tokenizer.encode(text, false);
    ASSERT_FALSE(ids.ok());
    EXPECT_FALSE(tokenizer.count(text, false).ok());
    EXPECT_EQ(ids.error().code, ErrorCode::bad_input);
    EXPECT_THAT(ids.error().message, HasSubstr("not valid UTF-8"));
  }
}

TEST(Tokenizer, DecodesPartsOfCharactersAndUnknownIds) {
  const Tokenizer tokenizer = load_tiny();
  // U+1F600 is four bytes; three of them are no character.
  EXPECT_EQ(*tokenizer.decode({172, 253, 246}, false), "\xef\xbf\xbd");
  EXPECT_EQ(*tokenizer.decode({}, false), "");
  EXPECT_EQ(*tokenizer.decode({64, 269, 2147483647, 65}, false), "ab");
  const auto negative = tokenizer.decode({64, -1}, false);
  ASSERT_FALSE(negative.ok());
  EXPECT_EQ(negative.error().code, ErrorCode::bad_input);
  EXPECT_THAT(negative.error().message, HasSubstr("-1"));
}

TEST(Tokenizer, KeepsZeroBytes) {
  const Tokenizer tokenizer = load_tiny();
  const std::string text("a\0b", 3);
  EXPECT_EQ(*tokenizer.decode(*tokenizer.encode(text, false), false), text);
}

TEST(Tokenizer, NamesTheFileThatIsWrong) {
  const auto absent = Tokenizer::load("/nonexistent/model");
  ASSERT_FALSE(absent.ok());
  EXPECT_EQ(absent.error().code, ErrorCode::bad_input);
  EXPECT_THAT(absent.error().message, HasSubstr("/nonexistent/model/tokenizer.json is missing"));

  const TempDir dir;
  for (const std::string bytes : {"", "{", "[]", "{\"model\": 3}", "\xff\xfe", "null",
                                  "{\"version\": \"1.0\", \"model\": {\"type\": \"BPE\", "
                                  "\"vocab\": {\"a\": 0}, \"merges\": [[\"a\", \"b\"]]}}"}) {
    const std::string path = dir.write("tokenizer.json", bytes);
    const auto tokenizer = Tokenizer::load(dir.path());
    ASSERT_FALSE(tokenizer.ok()) << bytes;
    EXPECT_EQ(tokenizer.error().code, ErrorCode::bad_input);
    EXPECT_THAT(tokenizer.error().message, HasSubstr(path));
  }
}

TEST(Tokenizer, RefusesAFileCutShort) {
  const TempDir dir;
  std::ifstream file(data_path("tiny/tokenizer.json"), std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(file), {}};
  for (size_t size = 0; size + 2 < whole.size(); size += 97) {
    const std::string path = dir.write("tokenizer.json", whole.substr(0, size));
    const auto tokenizer = Tokenizer::load(dir.path());
    ASSERT_FALSE(tokenizer.ok()) << size;
    EXPECT_THAT(tokenizer.error().message, AllOf(HasSubstr(path), HasSubstr("line 1")));
  }
}

// Sound JSON with one value changed: refused with the name of the file, also where the tokenizers
// library itself panics, or still a tokenizer.
TEST(Tokenizer, SurvivesDamagedValues) {
  auto whole = read_json_file(data_path("tiny/tokenizer.json"));
  ASSERT_TRUE(whole.ok());
  whole->at("model")["vocab"] = {{"a", 0}, {"b", 1}, {"ab", 2}};
  whole->at("model")["merges"] = Json::array({Json::array({"a", "b"})});
  const TempDir dir;
  const Json flat = whole->flatten();
  int refused = 0;
  for (const auto& [pointer, value] : flat.items()) {
    for (const Json& other : {Json(), Json(-1), Json("odd"), Json::array(), Json(true)}) {
      Json damaged = *whole;
      damaged[Json::json_pointer(pointer)] = other;
      const std::string path = dir.write("tokenizer.json", damaged.dump());
      const auto tokenizer = Tokenizer::load(dir.path());
      if (tokenizer.ok()) {
        (void)tokenizer->encode("abba <s>", true);
        continue;
      }
      ++refused;
      EXPECT_THAT(tokenizer.error().message, HasSubstr(path));
    }
  }
  EXPECT_GT(refused, 50);
}

TEST(Tokenizer, RefusesATokenizerWithoutTokens) {
  const TempDir dir;
  dir.write("tokenizer.json", R"({"version": "1.0", "added_tokens": [],
      "model": {"type": "BPE", "vocab": {}, "merges": []}})");
  const auto tokenizer = Tokenizer::load(dir.path());
  ASSERT_FALSE(tokenizer.ok());
  EXPECT_EQ(tokenizer.error().code, ErrorCode::bad_input);
}

TEST(Tokenizer, ServesThreadsAtOnce) {
  const Tokenizer tokenizer = load_tiny();
  const auto expected = *tokenizer.encode("hello world, hello", false);
  std::vector<int> wrong(4, 0);
  std::vector<std::thread> threads;
  for (int& count : wrong) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        count += *tokenizer.encode("hello world, hello", false) != expected;
        count += *tokenizer.decode(expected, false) != "hello world, hello";
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(wrong, ElementsAre(0, 0, 0, 0));
}

}  // namespace
}  // namespace kvsweep::text
