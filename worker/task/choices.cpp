#include "worker/task/choices.hpp"

#include <algorithm>

namespace kvsweep::task {
namespace {

double characters(const std::string& text) {
  const auto count = std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;  // not inside a character
  });
  return static_cast<double>(std::max<std::ptrdiff_t>(1, count));
}

size_t first_largest(const std::vector<double>& values) {
  return static_cast<size_t>(std::max_element(values.begin(), values.end()) - values.begin());
}

bool is_gold(const Example& example, const std::string& choice) {
  return std::find(example.golds.begin(), example.golds.end(), choice) != example.golds.end();
}

}  // namespace

Score score_choices(const Example& example, const std::vector<Likelihood>& likelihoods) {
  std::vector<double> whole;
  std::vector<double> per_character;
  for (size_t i = 0; i < likelihoods.size(); ++i) {
    whole.push_back(likelihoods[i].log_likelihood);
    per_character.push_back(whole.back() / characters(example.choices[i]));
  }
  const std::string& answer = example.choices[first_largest(whole)];
  Score score;
  score.answer = answer;
  score.exact_match = is_gold(example, answer) ? 1 : 0;
  score.strict_match = is_gold(example, example.choices[first_largest(per_character)]) ? 1 : 0;
  return score;
}

double gold_nll(const Example& example, const std::vector<Likelihood>& likelihoods) {
  size_t gold = 0;
  for (size_t i = 0; i < example.choices.size(); ++i) {
    if (!is_gold(example, example.choices[i])) continue;
    gold = i;
    break;
  }
  const Likelihood& said = likelihoods[gold];
  return -said.log_likelihood / static_cast<double>(std::max<int64_t>(1, said.tokens));
}

Likelihood sum(const std::vector<Likelihood>& windows) {
  Likelihood all{.greedy = true};
  for (const Likelihood& window : windows) {
    all.log_likelihood += window.log_likelihood;
    all.tokens += window.tokens;
    all.greedy = all.greedy && window.greedy;
  }
  return all;
}

Json figures_of_choices(const std::vector<Likelihood>& likelihoods) {
  Json json = {
      {"log_likelihoods", Json::array()}, {"tokens", Json::array()}, {"greedy", Json::array()}};
  for (const Likelihood& one : likelihoods) {
    json["log_likelihoods"].push_back(one.log_likelihood);
    json["tokens"].push_back(one.tokens);
    json["greedy"].push_back(one.greedy);
  }
  return json;
}

Json figures_of_text(const Example& example, const Likelihood& all) {
  Json json = {{"log_likelihood", all.log_likelihood}, {"tokens", all.tokens}};
  if (example.words > 0) json["words"] = example.words;
  return json;
}

}  // namespace kvsweep::task
