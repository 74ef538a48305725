// Prompts that are computed once for several sequences: the plan of what is shared, and that
// sharing, mixing maps and tight budgets change no bit of any result.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "tests/worker/engine/support.hpp"
#include "worker/engine/prompt_tree.hpp"

namespace kvsweep::engine {
namespace {

using Tokens = std::vector<int32_t>;

Tokens joined(Tokens a, const Tokens& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Job job_of(const Tokens& prompt, const CacheLayout* layout, const CacheLayout* originals) {
  Job job;
  job.layout = layout;
  job.originals = originals;
  job.tokens = prompt;
  job.prompt_tokens = static_cast<int64_t>(prompt.size());
  job.first_logit = job.prompt_tokens - 1;
  job.most_tokens = job.prompt_tokens + 5;
  return job;
}

bool begins_with(const Tokens& tokens, const Tokens& other, int64_t count) {
  return count <= static_cast<int64_t>(std::min(tokens.size(), other.size())) &&
         std::equal(other.begin(), other.begin() + count, tokens.begin());
}

int64_t tokens_computed(const PromptTree& tree, const std::vector<Job>& jobs) {
  const auto of = [&](int64_t p) { return p < 0 ? 0 : tree.prompts[p].tokens; };
  int64_t sum = 0;
  for (const SharedPrompt& prompt : tree.prompts) sum += prompt.tokens - of(prompt.parent);
  for (size_t i = 0; i < jobs.size(); ++i) sum += jobs[i].prompt_tokens - of(tree.start[i]);
  return sum;
}

bool all_agree(int64_t, int64_t) {
  return true;
}

TEST(PromptTree, SharesOnlyWhatIsEqual) {
  std::mt19937_64 rng(std::random_device{}());
  CacheLayout coded, plain, exact;
  exact.prefill = Prefill::exact;
  for (int round = 0; round < 200; ++round) {
    // Prompts made of few long pieces, so that many begin alike and some are equal.
    std::vector<Job> jobs;
    for (int i = 0; i < 12; ++i) {
      Tokens prompt;
      for (uint64_t piece = 0; piece < 1 + rng() % 4; ++piece) {
        prompt = joined(prompt, test::random_tokens(1 + rng() % 30, 50, rng() % 2));
      }
      if (rng() % 2 == 0) {
        jobs.push_back(job_of(prompt, &coded, nullptr));
      } else {
        jobs.push_back(job_of(prompt, &exact, rng() % 4 == 0 ? nullptr : &plain));
      }
    }
    const PromptTree tree = plan_prompts(jobs, all_agree);
    for (size_t p = 0; p < tree.prompts.size(); ++p) {
      const SharedPrompt& prompt = tree.prompts[p];
      if (prompt.parent < 0) continue;
      ASSERT_LT(prompt.parent, static_cast<int64_t>(p));
      const SharedPrompt& parent = tree.prompts[prompt.parent];
      EXPECT_LT(parent.tokens, prompt.tokens);
      EXPECT_EQ(parent.layout, prompt.layout);
      EXPECT_TRUE(begins_with(jobs[prompt.job].tokens, jobs[parent.job].tokens, parent.tokens));
    }
    for (size_t i = 0; i < jobs.size(); ++i) {
      if (tree.start[i] < 0) continue;
      const SharedPrompt& start = tree.prompts[tree.start[i]];
      EXPECT_TRUE(begins_with(jobs[i].tokens, jobs[start.job].tokens, start.tokens));
      if (jobs[i].originals != nullptr) {
        EXPECT_EQ(start.layout, jobs[i].originals);
        EXPECT_EQ(start.tokens, jobs[i].prompt_tokens);
      } else {
        EXPECT_EQ(jobs[i].layout, &coded) << "a prompt that sees originals alone shares nothing";
        EXPECT_EQ(start.layout, &coded);
        EXPECT_LT(start.tokens, jobs[i].prompt_tokens);
      }
    }
    std::vector<int64_t> order = tree.order();
    std::sort(order.begin(), order.end());
    std::vector<int64_t> every(tree.prompts.size() + jobs.size());
    std::iota(every.begin(), every.end(), -static_cast<int64_t>(tree.prompts.size()));
    EXPECT_EQ(order, every);
  }
}

// Worked example: 40 tokens in common to four prompts, 30 more to two of them.
TEST(PromptTree, ComputesEveryTokenOnce) {
  CacheLayout layout;
  const Tokens all = test::random_tokens(40, 50, 1);
  const Tokens two = joined(all, test::random_tokens(30, 50, 2));
  std::vector<Job> jobs;
  for (const Tokens& prompt :
       {joined(all, {1, 2}), joined(two, {3}), joined(all, {4, 5, 6}), joined(two, {7, 8})}) {
    jobs.push_back(job_of(prompt, &layout, nullptr));
  }
  const PromptTree tree = plan_prompts(jobs, all_agree);
  EXPECT_EQ(tree.prompts.size(), 2u);
  EXPECT_EQ(tokens_computed(tree, jobs), 40 + 30 + 2 + 1 + 3 + 2);
  const auto never = [](int64_t, int64_t) { return false; };
  EXPECT_TRUE(plan_prompts(jobs, never).prompts.empty());
}

TEST(PromptTree, PromptsSeenExactAreComputedOncePerExample) {
  CacheLayout plain, first, second;
  first.prefill = second.prefill = Prefill::exact;
  std::vector<Job> jobs;
  for (const CacheLayout* layout : {&first, &second, &plain}) {
    for (uint64_t example = 0; example < 3; ++example) {
      jobs.push_back(job_of(test::random_tokens(50 + example, 60, example), layout, &plain));
    }
  }
  const PromptTree tree = plan_prompts(jobs, all_agree);
  EXPECT_EQ(tree.prompts.size(), 3u);
  EXPECT_EQ(tokens_computed(tree, jobs), 50 + 51 + 52);
}

// --- the engine ---

constexpr int kLayers = 3;

PrecisionMap map_of(SchemeOptions options, const std::string& pair) {
  return uniform_map(make_scheme(options).value(), kLayers, pair_from(pair).value());
}

std::vector<PrecisionMap> maps() {
  std::vector<PrecisionMap> out = {test::make_map("baseline", kLayers)};
  out.push_back(map_of({.name = "per-token"}, "K4V2"));
  out.push_back(map_of({.name = "per-token", .sinks = 3}, "K2V2"));
  out.push_back(map_of({.name = "kivi"}, "K4V2"));
  out.push_back(map_of({.name = "kivi", .sinks = 4}, "K2V2"));
  out.push_back(map_of({.name = "kivi", .prefill = Prefill::stepwise}, "K4V4"));
  out.push_back(map_of({.name = "kivi", .hadamard = Hadamard::both}, "K3V3"));
  out.push_back(map_of({.name = "kvmix"}, "K2V4"));
  out.push_back(map_of({.name = "kvmix-total"}, "K4V2"));
  out.push_back(map_of({.name = "fp8"}, "Kfp8Vfp8"));
  PrecisionMap mixed = map_of({.name = "kivi", .group = 128}, "K8V2");
  mixed.layers[1] = {};
  out.push_back(mixed);
  return out;
}

// Prompts that are equal, begin alike, contain each other, or have nothing in common; generated and
// forced.
std::vector<SequenceRequest> requests() {
  const Tokens shots = test::random_tokens(90, 67, 1);
  const Tokens more = joined(shots, test::random_tokens(45, 67, 2));
  std::vector<SequenceRequest> out;
  for (const Tokens& prompt :
       {joined(shots, {5}), joined(shots, {6, 7}), more, more, joined(more, {9}),
        test::random_tokens(20, 67, 3), Tokens{4}, shots}) {
    SequenceRequest request;
    request.prompt = prompt;
    request.max_new_tokens = 12;
    out.push_back(request);
    request.reference = test::random_tokens(25, 67, prompt.size());
    out.push_back(request);
  }
  return out;
}

void expect_equal(const SequenceOutput& a, const SequenceOutput& b) {
  EXPECT_EQ(a.tokens, b.tokens);
  EXPECT_EQ(a.argmax, b.argmax);
  EXPECT_EQ(a.kl, b.kl);
  EXPECT_EQ(a.nll, b.nll);
  EXPECT_EQ(a.token_agreement, b.token_agreement);
  EXPECT_EQ(a.cache_bytes, b.cache_bytes);
}

class Sharing : public testing::TestWithParam<int64_t> {};

// All maps and requests in one mixed batch against every request of every map alone.
TEST_P(Sharing, ChangesNoBit) {
  EngineOptions lone;
  lone.share_prompts = false;
  lone.max_batch = 1;
  Engine alone = test::load_engine(test::tiny_dir("untied_llama3"), lone);
  if (!alone.batch_invariant()) GTEST_SKIP() << "this processor's GEMM is not batch-invariant";
  EngineOptions options;
  options.max_batch = 40;
  options.prefill_chunk = 64;
  options.cache_budget_bytes = GetParam();
  Engine shared = test::load_engine(test::tiny_dir("untied_llama3"), options);
  const auto together = shared.run(maps(), requests(), {});
  ASSERT_TRUE(together.ok()) << together.error().message;
  for (size_t map = 0; map < maps().size(); ++map) {
    for (size_t r = 0; r < requests().size(); ++r) {
      SCOPED_TRACE("map " + std::to_string(map) + ", request " + std::to_string(r));
      const auto one = alone.run(maps()[map], {requests()[r]}, {});
      ASSERT_TRUE(one.ok()) << one.error().message;
      expect_equal((*together)[map][r], (*one)[0]);
    }
  }
}

// Ample; a few sequences at once; hardly the largest one, so that nothing can be shared.
INSTANTIATE_TEST_SUITE_P(Budgets, Sharing, testing::Values(1 << 30, 400 << 10, 120 << 10));

// 90 shared tokens once per map, or once for all where prompts see originals.
TEST(SharedPrompts, AreCountedOnce) {
  Engine engine = test::load_engine(test::tiny_dir("untied_llama3"));
  const Tokens shots = test::random_tokens(90, 67, 1);
  std::vector<SequenceRequest> prompts;
  for (int i = 0; i < 6; ++i) {
    SequenceRequest request;
    request.prompt = joined(shots, {10 + i, 3});
    request.max_new_tokens = 1;
    prompts.push_back(request);
  }
  const auto tokens = [&](const std::vector<PrecisionMap>& chosen) {
    int64_t seen = 0;
    RunOptions run;
    run.progress = [&](int64_t, int64_t count) { seen = count; };
    EXPECT_TRUE(engine.run(chosen, prompts, run).ok());
    return seen;
  };
  const PrecisionMap coded = map_of({.name = "per-token"}, "K4V2");
  EXPECT_EQ(tokens({coded}), 90 + 6 * 2);
  EXPECT_EQ(tokens({coded, map_of({.name = "per-token"}, "K8V2")}), 2 * (90 + 6 * 2));
  EXPECT_EQ(tokens({map_of({.name = "kivi"}, "K4V2"), map_of({.name = "kivi"}, "K2V2"),
                    test::make_map("baseline", kLayers)}),
            90 + 6 * 2);
}

}  // namespace
}  // namespace kvsweep::engine
