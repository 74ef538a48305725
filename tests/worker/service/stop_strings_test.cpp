#include "worker/service/stop_strings.hpp"

#include <gtest/gtest.h>

namespace kvsweep::service {
namespace {

text::Tokenizer tokenizer() {
  return std::move(
      text::Tokenizer::load(std::string(KVSWEEP_TESTS_DIR) + "/worker/text/data/tiny").value());
}

// First length at which the generation of `text` would end; 0 = never. Asked after every token, as
// the engine does.
size_t ends_at(const text::Tokenizer& tokenizer, const std::string& text,
               const std::vector<std::string>& stops) {
  const std::vector<int32_t> tokens = *tokenizer.encode(text, false);
  for (size_t length = 1; length <= tokens.size(); ++length) {
    const std::vector<int32_t> so_far(tokens.begin(),
                                      tokens.begin() + static_cast<std::ptrdiff_t>(length));
    if (ends_with_stop(tokenizer, so_far, stops)) return length;
  }
  return 0;
}

// By the definition: the shortest prefix of tokens whose whole text contains a stop.
size_t by_definition(const text::Tokenizer& tokenizer, const std::string& text,
                     const std::vector<std::string>& stops) {
  const std::vector<int32_t> tokens = *tokenizer.encode(text, false);
  for (size_t length = 1; length <= tokens.size(); ++length) {
    const std::vector<int32_t> so_far(tokens.begin(),
                                      tokens.begin() + static_cast<std::ptrdiff_t>(length));
    const std::string decoded = *tokenizer.decode(so_far, true);
    for (const std::string& stop : stops) {
      if (decoded.find(stop) != std::string::npos) return length;
    }
  }
  return 0;
}

TEST(StopStrings, EndsWhereTheWholeTextWould) {
  const text::Tokenizer tokens = tokenizer();
  std::string longer;
  for (int i = 0; i < 40; ++i) longer += "so we add " + std::to_string(i) + " and go on. ";
  const std::vector<std::string> stops = {"Question:", "\n\n", "###"};
  for (const std::string& text :
       {std::string("Question: at once"), longer + "Question: later", longer + "\n\nQ",
        longer + "Quest ion: # ## not yet",
        longer + "caf\xc3\xa9 \xe2\x82\xac Question:", std::string("## ###")}) {
    EXPECT_EQ(ends_at(tokens, text, stops), by_definition(tokens, text, stops)) << text;
  }
  EXPECT_GT(ends_at(tokens, longer + "Question:", stops), 0u);
}

TEST(StopStrings, NoStopsNoEnd) {
  const text::Tokenizer tokens = tokenizer();
  EXPECT_EQ(ends_at(tokens, "anything", {}), 0u);
  EXPECT_EQ(ends_at(tokens, "anything", {""}), 0u);
  EXPECT_FALSE(ends_with_stop(tokens, {}, {"x"}));
}

}  // namespace
}  // namespace kvsweep::service
