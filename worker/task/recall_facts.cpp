#include "worker/task/recall_facts.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <stdexcept>
#include <unordered_set>

namespace kvsweep::task {
namespace {

// People of word_problems, then towns.
constexpr std::array<const char*, RecallFacts::kMaxFacts> kKeys = {
    "Ada",    "Amir",     "Bela",   "Carla",  "Dario",    "Elena",  "Farid",   "Greta",   "Hugo",
    "Ines",   "Jonas",    "Kira",   "Liam",   "Mona",     "Nils",   "Olga",    "Pavel",   "Rosa",
    "Sami",   "Tessa",    "Umar",   "Vera",   "Willem",   "Yara",   "Oslo",    "Paris",   "Lima",
    "Cairo",  "Tokyo",    "Delhi",  "Quito",  "Accra",    "Lagos",  "Dakar",   "Tunis",   "Rabat",
    "Turin",  "Milan",    "Genoa",  "Naples", "Vienna",   "Graz",   "Basel",   "Geneva",  "Lyon",
    "Nantes", "Dijon",    "Ghent",  "Leuven", "Utrecht",  "Leiden", "Bremen",  "Kiel",    "Essen",
    "Ulm",    "Mainz",    "Gdansk", "Lublin", "Warsaw",   "Prague", "Brno",    "Zagreb",  "Split",
    "Sofia",  "Varna",    "Athens", "Patras", "Izmir",    "Ankara", "Adana",   "Tbilisi", "Baku",
    "Tehran", "Shiraz",   "Kabul",  "Lahore", "Mumbai",   "Pune",   "Chennai", "Dhaka",   "Hanoi",
    "Manila", "Jakarta",  "Osaka",  "Kyoto",  "Sapporo",  "Seoul",  "Busan",   "Perth",   "Darwin",
    "Sydney", "Auckland", "Bogota", "Cali",   "Santiago", "Rosario"};

constexpr int kFirstCode = 1000;
constexpr int kLastCode = 9999;

std::string statement(const char* key, int code) {
  return std::string("he code of ") + key + " is " + std::to_string(code) + ".";
}

constexpr int length_of(int facts) {
  return kTokensAround + facts * kTokensPerFact;
}

}  // namespace

RecallFacts::RecallFacts(int facts, Rng& rng) : keys_(kKeys.begin(), kKeys.end()) {
  if (facts < kMinFacts || facts > kMaxFacts) {
    throw std::logic_error("recall: " + std::to_string(facts) + " facts");
  }
  // The head of a Fisher-Yates shuffle.
  for (size_t i = 0; i < static_cast<size_t>(facts); ++i) {
    std::swap(keys_[i], keys_[i + rng.below(keys_.size() - i)]);
  }
  keys_.resize(static_cast<size_t>(facts));
  std::unordered_set<int> taken;
  while (codes_.size() < keys_.size()) {
    const auto code = static_cast<int>(rng.between(kFirstCode, kLastCode));
    if (taken.insert(code).second) codes_.push_back(code);
  }
  for (size_t i = 0; i < keys_.size(); ++i) {
    text_ += (i == 0 ? "T" : " T") + statement(keys_[i], codes_[i]);
  }
}

Problem RecallFacts::ask(int fact) const {
  const char* key = keys_.at(static_cast<size_t>(fact));
  const int code = codes_.at(static_cast<size_t>(fact));
  return {std::string("What is the code of ") + key + "?",
          "T" + statement(key, code) + "\n#### " + std::to_string(code)};
}

int facts_in(int length) {
  return std::clamp((length - kTokensAround) / kTokensPerFact, 0, RecallFacts::kMaxFacts + 1);
}

Status check_recall_length(int length) {
  const int facts = facts_in(length);
  if (facts >= RecallFacts::kMinFacts && facts <= RecallFacts::kMaxFacts) return {};
  return bad_input("recall: length is " + std::to_string(length) + " tokens; allowed are " +
                   std::to_string(length_of(RecallFacts::kMinFacts)) + " to " +
                   std::to_string(length_of(RecallFacts::kMaxFacts + 1) - 1));
}

}  // namespace kvsweep::task
