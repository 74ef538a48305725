#include "worker/text/chat_template.hpp"

#include <gmock/gmock.h>

#include <chrono>

#include "core/hash.hpp"
#include "tests/worker/text/support.hpp"

namespace kvsweep::text {
namespace {

using ::testing::HasSubstr;

std::vector<ChatMessage> messages_of(const Json& rows) {
  std::vector<ChatMessage> messages;
  for (const Json& row : rows) messages.push_back({row["role"], row["content"]});
  return messages;
}

// A folder with the tokens of data/tiny and this template.
Result<ChatTemplate> load(const TempDir& dir, const std::string& source,
                          const std::string& now = kTemplateDate) {
  dir.copy_tiny();
  dir.write("chat_template.jinja", source);
  return ChatTemplate::load(dir.path(), now);
}

Result<std::string> render(const std::string& source, std::vector<ChatMessage> messages = {}) {
  const TempDir dir;
  KVSWEEP_ASSIGN(const ChatTemplate compiled, load(dir, source));
  return compiled.render(messages, false);
}

TEST(ChatTemplate, EqualsTransformers) {
  const Json expected = golden("template_golden.json");
  ASSERT_GE(expected["rows"].size(), 50u);
  for (const Json& row : expected["rows"]) {
    SCOPED_TRACE(row["name"].get<std::string>());
    const TempDir dir;
    const auto compiled = load(dir, row["template"], expected["now"]);
    ASSERT_TRUE(compiled.ok()) << compiled.error().message;
    const auto prompt =
        compiled->render(messages_of(row["messages"]), row["add_generation_prompt"].get<bool>());
    if (row.contains("prompt")) {
      ASSERT_TRUE(prompt.ok()) << prompt.error().message;
      EXPECT_EQ(*prompt, row["prompt"].get<std::string>());
    } else {
      ASSERT_FALSE(prompt.ok());
      EXPECT_EQ(prompt.error().code, ErrorCode::bad_input);
      EXPECT_THAT(prompt.error().message, HasSubstr(row["error"].get<std::string>()));
      EXPECT_THAT(prompt.error().message, HasSubstr(dir.path()));
    }
  }
}

TEST(ChatTemplate, EqualsTransformersOnSmolLM2) {
  if (!std::filesystem::exists(smollm2_path())) {
    GTEST_SKIP() << smollm2_path() << " is absent; scripts/setup fetches it";
  }
  const auto compiled = ChatTemplate::load(smollm2_path());
  ASSERT_TRUE(compiled.ok()) << compiled.error().message;
  const Json prompts = golden("smollm2_golden.json")["prompts"];
  ASSERT_FALSE(prompts.empty());
  for (const Json& row : prompts) {
    const auto prompt = compiled->render(messages_of(row["messages"]), true);
    ASSERT_TRUE(prompt.ok()) << prompt.error().message;
    EXPECT_EQ(prompt->size(), row["bytes"].get<size_t>());
    EXPECT_EQ(sha256_hex(*prompt), row["sha256"].get<std::string>());
  }
}

TEST(ChatTemplate, TellsTheSameDateEveryDay) {
  EXPECT_EQ(*render("{{ strftime_now('%d %b %Y, %A') }}"), "26 Jul 2024, Friday");
}

TEST(ChatTemplate, RefusesDatesThatDoNotExist) {
  for (const char* now : {"", "2023-02-29", "2024-13-01", "2024-1", "24-07-26T25:00:00", "x",
                          "2024-07-26T12", "99999-01-01", "2024-04-31", "2024-07-26T12:00:\xff"}) {
    const TempDir dir;
    const auto compiled = load(dir, "x", now);
    ASSERT_TRUE(compiled.ok());
    EXPECT_FALSE(compiled->render({}, false).ok()) << now;
  }
}

TEST(ChatTemplate, OfTokenizerConfigIsFound) {
  const TempDir dir;
  dir.write("tokenizer_config.json", R"({"chat_template": "[{{ messages[0].content }}]"})");
  EXPECT_EQ(*ChatTemplate::load(dir.path())->render({{"user", "hi"}}, false), "[hi]");
  dir.write("tokenizer_config.json", R"({"chat_template": [
      {"name": "tool_use", "template": "wrong"}, {"name": "default", "template": "right"}]})");
  EXPECT_EQ(*ChatTemplate::load(dir.path())->render({}, false), "right");
  dir.write("chat_template.jinja", "file");
  EXPECT_EQ(*ChatTemplate::load(dir.path())->render({}, false), "file");
}

TEST(ChatTemplate, ThatIsAbsentIsNotFound) {
  const TempDir dir;
  const auto expect = [&](ErrorCode code, const std::string& part) {
    const auto compiled = ChatTemplate::load(dir.path());
    ASSERT_FALSE(compiled.ok());
    EXPECT_EQ(compiled.error().code, code);
    EXPECT_THAT(compiled.error().message, HasSubstr(dir.path()));
    EXPECT_THAT(compiled.error().message, HasSubstr(part));
  };
  expect(ErrorCode::not_found, "has no chat template");
  dir.write("tokenizer_config.json", "{}");
  expect(ErrorCode::not_found, "has no chat template");
  dir.write("tokenizer_config.json", R"({"chat_template": 3})");
  expect(ErrorCode::bad_input, "neither text nor a list");
  dir.write("tokenizer_config.json", R"({"chat_template": [{"name": "rag", "template": "x"}]})");
  expect(ErrorCode::bad_input, "'default'");
  dir.write("tokenizer_config.json", "{");
  expect(ErrorCode::bad_input, "tokenizer_config.json");
}

TEST(ChatTemplate, WithAMistakeNamesTheLine) {
  for (const char* source :
       {"a\n{% if %}", "\n{{ 'open }}", "\n{% for x in y %}", "\n{{ x | nofilter }}",
        "\n{% endgeneration %}", "\n{{ (((", "\n{% nosuchtag %}"}) {
    const auto prompt = render(source);
    ASSERT_FALSE(prompt.ok()) << source;
    EXPECT_EQ(prompt.error().code, ErrorCode::bad_input);
    EXPECT_THAT(prompt.error().message, HasSubstr("chat template"));
    EXPECT_THAT(prompt.error().message, HasSubstr("line 2")) << source;
  }
}

TEST(ChatTemplate, ThatNeverEndsIsBadInput) {
  const auto start = std::chrono::steady_clock::now();
  const std::string loop = "{% for i in range(90000) %}";
  const auto silent =
      render(loop + loop + loop + "{% set x = i %}" + "{% endfor %}{% endfor %}{% endfor %}");
  ASSERT_FALSE(silent.ok());
  EXPECT_EQ(silent.error().code, ErrorCode::bad_input);
  EXPECT_THAT(silent.error().message, HasSubstr("2000000 steps"));

  const auto recursive = render("{% macro f(n) %}{{ f(n + 1) }}{% endmacro %}{{ f(0) }}");
  ASSERT_FALSE(recursive.ok());
  EXPECT_EQ(recursive.error().code, ErrorCode::bad_input);

  const auto loud = render(loop + "{{ 'x' * 100000 }}{% endfor %}");
  ASSERT_FALSE(loud.ok());
  EXPECT_THAT(loud.error().message, HasSubstr("more than 67108864 bytes"));
  const auto seconds = std::chrono::steady_clock::now() - start;
  EXPECT_LT(std::chrono::duration<double>(seconds).count(), 30.0);
}

TEST(ChatTemplate, ThatNestsWithoutEndIsBadInput) {
  const std::string nest =
      "{% set ns = namespace(x=[]) %}{% for i in range(1000) %}{% set ns.x = [ns.x] %}{% endfor %}";
  for (const char* use : {"{{ ns.x | tojson }}", "{{ ns.x }}"}) {
    const auto prompt = render(nest + use);
    ASSERT_FALSE(prompt.ok());
    EXPECT_EQ(prompt.error().code, ErrorCode::bad_input);
    EXPECT_THAT(prompt.error().message, HasSubstr("nested deeper"));
  }
  EXPECT_FALSE(render("{{ " + std::string(5000, '(') + "1" + std::string(5000, ')') + " }}").ok());
}

TEST(ChatTemplate, RefusesInvalidUtf8) {
  const auto prompt = render("{{ messages }}", {{"user", "fine"}, {"user", "\xff"}});
  ASSERT_FALSE(prompt.ok());
  EXPECT_EQ(prompt.error().code, ErrorCode::bad_input);
  EXPECT_THAT(prompt.error().message, HasSubstr("message 2"));
  EXPECT_FALSE(render("\xff").ok());
}

TEST(ChatTemplate, KeepsZeroBytesAndUnicode) {
  const std::string content("a\0\xf0\x9f\x98\x80\xe6\x97\xa5", 9);
  EXPECT_EQ(*render("<{{ messages[0].content }}>", {{"user", content}}), "<" + content + ">");
}

TEST(ChatTemplate, CannotReadFilesOrOtherTemplates) {
  for (const char* source :
       {"{% include '/etc/passwd' %}", "{% extends 'x' %}", "{% import 'os' as os %}{{ os }}"}) {
    EXPECT_FALSE(render(source).ok()) << source;
  }
}

}  // namespace
}  // namespace kvsweep::text
