// Files made to break the worker: every one ends in an error that names the file and the field or
// the limit, in bounded time and memory.
#include <gmock/gmock.h>

#include <chrono>

#include "tests/worker/text/support.hpp"
#include "worker/text/chat_template.hpp"
#include "worker/text/tokenizer.hpp"

namespace kvsweep::text {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string repeated(const std::string& unit, size_t count) {
  std::string text;
  text.reserve(unit.size() * count);
  for (size_t i = 0; i < count; ++i) text += unit;
  return text;
}

// data/tiny/tokenizer.json with one member replaced.
std::string tiny_with(const std::string& pointer, const Json& value) {
  Json file = golden("tiny/tokenizer.json");
  file[Json::json_pointer(pointer)] = value;
  return file.dump();
}

std::string tokenizer_refusal(const std::string& bytes) {
  const TempDir dir;
  const std::string path = dir.write("tokenizer.json", bytes);
  const auto tokenizer = Tokenizer::load(dir.path());
  if (tokenizer.ok()) return "accepted";
  EXPECT_EQ(tokenizer.error().code, ErrorCode::bad_input);
  EXPECT_THAT(tokenizer.error().message, HasSubstr(path));
  EXPECT_LT(tokenizer.error().message.size(), 600u);
  return tokenizer.error().message;
}

struct Fault {
  const char* pointer;
  Json value;
  const char* part;  // of the message
};

TEST(HostileTokenizer, NamesTheField) {
  const Json vocab_of_lists = {{"a", Json::array({1})}};
  const std::vector<Fault> faults = {
      {"/version", "2.0", "version is \"2.0\""},
      {"/added_tokens", 7, "added_tokens is 7, not a list"},
      {"/added_tokens/1/id", "five", "added_tokens[1].id is \"five\""},
      {"/added_tokens/1/id", -1, "added_tokens[1].id is -1"},
      {"/added_tokens/1/id", int64_t{1} << 32, "added_tokens[1].id is 4294967296"},
      {"/added_tokens/0/content", nullptr, "added_tokens[0].content is missing"},
      {"/added_tokens/2/special", "yes", "added_tokens[2].special is \"yes\""},
      {"/normalizer", "NFC", "normalizer is \"NFC\""},
      {"/normalizer", {{"type", "Nonsense"}}, "normalizer is an object of type Nonsense"},
      {"/normalizer",
       {{"type", "Sequence"}, {"normalizers", {{{"type", "NFC"}}, {{"type", "Prepend"}}}}},
       "normalizer.normalizers[1] is an object of type Prepend"},
      {"/pre_tokenizer", Json::array(), "pre_tokenizer is a list of 0"},
      {"/pre_tokenizer",
       {{"type", "Split"},
        {"pattern", {{"Regex", "(unclosed"}}},
        {"behavior", "Isolated"},
        {"invert", false}},
       "pre_tokenizer is an object of type Split"},
      {"/post_processor/single/0", {{"SpecialToken", {{"id", 5}}}}, "post_processor is"},
      {"/decoder", {{"type", "Strip"}, {"content", "long"}, {"start", 0}, {"stop", 0}}, "decoder"},
      {"/model", nullptr, "model is missing"},
      {"/model/type", "GPT", "model.type is \"GPT\"; known are BPE"},
      {"/model/vocab", Json::array(), "model.vocab is a list of 0, not an object"},
      {"/model/vocab/hello", "five", "token \"hello\" has the id \"five\""},
      {"/model/vocab/hello", -3, "token \"hello\" has the id -3"},
      {"/model/vocab/hello", 1e30, "token \"hello\" has the id 1e+30"},
      {"/model/vocab", vocab_of_lists, "token \"a\" has the id a list of 1"},
      {"/model/merges", 3, "model.merges is 3"},
      {"/model/merges/4", Json::array({"a"}), "model.merges[4] is a list of 1"},
      {"/model/merges/4", Json::array({"qq", "zz"}), "model: "},
      {"/model/vocab/hello", 1'000'000'000, "token \"hello\" has the id 1000000000"},
      {"/model/vocab/hello", 4294967295u, "token \"hello\" has the id 4294967295"},
      {"/model/dropout", 0.1, "model.dropout is 0.1"},
      {"/decoder",
       {{"type", "Replace"}, {"pattern", {{"Regex", "(a*)*"}}}, {"content", "x"}},
       "decoder.pattern is a regular expression"},
      {"/decoder",
       {{"type", "Replace"}, {"pattern", {{"String", ""}}}, {"content", repeated("x", 1000)}},
       "1001 times as long"},
  };
  for (const Fault& fault : faults) {
    EXPECT_THAT(tokenizer_refusal(tiny_with(fault.pointer, fault.value)), HasSubstr(fault.part))
        << fault.pointer;
  }
}

TEST(HostileTokenizer, CutShortAnywhereIsAnError) {
  std::ifstream file(data_path("tiny/tokenizer.json"), std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(file), {}};
  for (size_t length = 0; length + 2 < whole.size(); length += 1 + whole.size() / 40) {
    EXPECT_THAT(tokenizer_refusal(whole.substr(0, length)), HasSubstr("column")) << length;
  }
}

TEST(HostileTokenizer, NestedWithoutEndIsAnError) {
  const std::string step = R"({"type":"Sequence","pretokenizers":[)";
  const std::string before = R"({"version":"1.0","pre_tokenizer":)";
  for (const std::string& bytes :
       {repeated("[", 100'000'000), repeated("{\"a\":", 20'000'000),
        before + repeated("[", 100'000) + repeated("]", 100'000) + "}",
        before + repeated(step, 60) + repeated("]}", 60) + "}",
        before + repeated(step, 50'000) + repeated("]}", 50'000) + "}"}) {
    EXPECT_NE(tokenizer_refusal(bytes), "accepted");
  }
}

TEST(HostileTokenizer, ThatIsNoFileIsAnError) {
  const TempDir dir;
  std::filesystem::create_symlink("/dev/zero", dir.path() + "/tokenizer.json");
  const auto endless = Tokenizer::load(dir.path());
  ASSERT_FALSE(endless.ok());
  EXPECT_THAT(endless.error().message, HasSubstr("it is not a file"));
}

// Some expressions need a time exponential in the length of the text.
TEST(HostileTokenizer, ExplodingExpressionIsAnErrorOfTheText) {
  for (const char* expression :
       {"(a*)*b", "(a|aa)+$c", "(?:(?:a?){1,40}){1,40}b", "(a+)+\\1{5}b"}) {
    const TempDir dir;
    dir.write("tokenizer.json", tiny_with("/pre_tokenizer", {{"type", "Split"},
                                                             {"pattern", {{"Regex", expression}}},
                                                             {"behavior", "Isolated"},
                                                             {"invert", false}}));
    const auto tokenizer = Tokenizer::load(dir.path());
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
    const auto start = std::chrono::steady_clock::now();
    const auto ids = tokenizer->encode(std::string(5000, 'a'), false);
    if (!ids.ok()) {
      EXPECT_EQ(ids.error().code, ErrorCode::bad_input);
      EXPECT_THAT(ids.error().message, HasSubstr("the text cannot be tokenized"));
    }
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    EXPECT_LT(taken.count(), 60.0) << expression;
  }
}

TEST(HostileTokenizer, NormalizerThatGrowsATextIsStopped) {
  Json steps = Json::array();
  for (int i = 0; i < 60; ++i) {
    steps.push_back({{"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", "aa"}});
  }
  const TempDir dir;
  dir.write("tokenizer.json",
            tiny_with("/normalizer", {{"type", "Sequence"}, {"normalizers", steps}}));
  const auto tokenizer = Tokenizer::load(dir.path());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  EXPECT_TRUE(tokenizer->encode("b", false).ok());
  const auto grown = tokenizer->encode("a", false);
  ASSERT_FALSE(grown.ok());
  EXPECT_THAT(grown.error().message, HasSubstr("needs more than 256 MiB of memory"));
  EXPECT_FALSE(tokenizer->encode("b", false).ok());  // not tried again
}

std::string template_refusal(const std::string& source) {
  const TempDir dir;
  dir.copy_tiny();
  dir.write("chat_template.jinja", source);
  const auto compiled = ChatTemplate::load(dir.path());
  const auto prompt = compiled.ok() ? compiled->render({{"user", "hi"}}, true)
                                    : Result<std::string>(compiled.error());
  if (prompt.ok()) return "accepted";
  EXPECT_EQ(prompt.error().code, ErrorCode::bad_input);
  EXPECT_THAT(prompt.error().message, HasSubstr(dir.path()));
  EXPECT_LT(prompt.error().message.size(), 2000u);
  return prompt.error().message;
}

TEST(HostileTemplate, ThatGrowsIsStoppedByTheMemoryLimit) {
  const std::string start = "{% set ns = namespace(s='xxxxxxxx', l=[1]) %}{% for i in range(60) %}";
  std::string straight = "{% set a = 'xxxxxxxxxx' %}";
  for (int i = 0; i < 12; ++i) straight += "{% set a = a~a~a~a~a~a~a~a~a~a %}";
  for (const std::string& source :
       {start + "{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
        start + "{% set ns.s = ns.s + ns.s %}{% endfor %}",
        start + "{% set ns.s = ns.s | replace('x', 'xx') %}{% endfor %}",
        start + "{% set ns.s = ns.s.replace('x', 'xx') %}{% endfor %}",
        start + "{% set ns.s = [ns.s, ns.s] | join %}{% endfor %}",
        start + "{% set ns.l = (ns.l + ns.l) | list %}{% endfor %}", straight,
        std::string("{% set a = ('x' * 100000000) | replace('x', 'yyyyyyyy') %}")}) {
    EXPECT_THAT(template_refusal(source), HasSubstr("needs more than 512 MiB of memory")) << source;
  }
}

TEST(HostileTemplate, NamesTheOtherLimits) {
  const std::string loop = "{% for i in range(90000) %}";
  const std::vector<std::pair<std::string, const char*>> cases = {
      {loop + loop + "{% set a = i %}{% endfor %}{% endfor %}", "2000000 steps"},
      {loop + "{{ 'x' * 100000 }}{% endfor %}", "more than 67108864 bytes"},
      {"{% macro f(n) %}{{ f(n) }}{% endmacro %}{{ f(0) }}", "recursion limit"},
      {"{% set f = 1 %}{{ 'x' * 100000000000 }}", "too large"},
      {"{% for i in range(1000000000) %}{% endfor %}", "range"},
      {"{{ " + repeated("(", 5000) + "1" + repeated(")", 5000) + " }}", "recursion"},
      {"{{ " + repeated("[", 100000) + repeated("]", 100000) + " }}", "recursion"},
      {repeated("{% if 1 %}", 20000) + repeated("{% endif %}", 20000), "recursion"},
      {repeated("{{ 1 }}", 200000), "at most 1048576"},
      {"{{ raise_exception('x' * 10000000) }}", "xxx"},
  };
  for (const auto& [source, part] : cases) {
    EXPECT_THAT(template_refusal(source), HasSubstr(part)) << source.substr(0, 80);
  }
}

// Dropping, comparing and printing nested values recurses.
TEST(HostileTemplate, DeepValuesDoNotOverflowTheStack) {
  const std::string nest =
      "{% set ns = namespace(l=[], d={}) %}{% for i in range(5) %}{% for j in range(90000) %}"
      "{% set ns.l = [ns.l] %}{% endfor %}{% endfor %}";
  for (const char* use : {"", "{{ ns.l }}", "{{ ns.l | tojson }}", "{{ ns.l ~ '' }}",
                          "{{ ns.l == [ns.l] }}", "{{ ns.l | string | length }}",
                          "{{ [ns.l, [ns.l]] | sort | length }}", "{{ ns.l in [ns.l] }}"}) {
    template_refusal(nest + use);  // no crash
  }
  const std::string small =
      "{% set ns = namespace(l=[]) %}{% for j in range(80000) %}{% set ns.l = [ns.l] %}{% endfor "
      "%}";
  for (const char* use :
       {"", "{{ ns.l ~ '' }}", "{{ ns.l == [ns.l] }}", "{{ ns.l < [ns.l] }}", "{{ {ns.l: 1} }}",
        "{{ ns.l | pprint }}", "{{ debug() }}", "{{ [ns.l, [ns.l]] | unique | list | length }}",
        "{{ raise_exception(ns.l) }}", "{{ ns.l.foo() }}", "{{ -ns.l }}"}) {
    template_refusal(small + use);  // no crash
  }
}

}  // namespace
}  // namespace kvsweep::text
