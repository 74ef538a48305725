// Engine::run in both modes against brute force from single-sequence logits, and its errors.
#include "worker/engine/engine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/worker/engine/support.hpp"

namespace kvsweep::engine {
namespace {

using testing::HasSubstr;

class EngineTest : public testing::Test {
 protected:
  static Engine make(EngineOptions options = {}) {
    return test::load_engine(test::tiny_dir("untied_llama3"), options);
  }
  static PrecisionMap map(const Engine& engine, const std::string& kind) {
    return test::make_map(kind, engine.geometry().num_layers());
  }
  static std::vector<SequenceRequest> forced_requests(const Engine& engine) {
    std::vector<SequenceRequest> requests;
    for (const auto& [prompt, reference] : {std::pair{40, 30}, {1, 1}, {70, 50}, {3, 20}}) {
      SequenceRequest request;
      request.prompt = test::random_tokens(prompt, engine.vocab_size(), requests.size());
      request.reference = test::random_tokens(reference, engine.vocab_size(), 90 + requests.size());
      requests.push_back(request);
    }
    return requests;
  }
  static std::vector<SequenceRequest> prompts(const Engine& engine, int count, int new_tokens) {
    std::vector<SequenceRequest> requests;
    for (int i = 0; i < count; ++i) {
      SequenceRequest request;
      request.prompt = test::random_tokens(5 + 3 * i, engine.vocab_size(), 10 + i);
      request.max_new_tokens = new_tokens;
      requests.push_back(request);
    }
    return requests;
  }
};

// log softmax of one row in 64 bits, by the definition.
std::vector<double> log_softmax(const float* row, int64_t vocab) {
  double sum = 0;
  for (int64_t i = 0; i < vocab; ++i) sum += std::exp(static_cast<double>(row[i]));
  std::vector<double> out;
  for (int64_t i = 0; i < vocab; ++i) out.push_back(row[i] - std::log(sum));
  return out;
}

struct Expected {
  double kl = 0;
  double nll = 0;
  double agreement = 0;
  std::vector<int32_t> argmax;
};

Expected brute_force(const SequenceRequest& request, const std::vector<float>& baseline,
                     const std::vector<float>& mapped, int64_t vocab) {
  Expected expected;
  const double count = static_cast<double>(request.reference.size());
  for (size_t i = 0; i < request.reference.size(); ++i) {
    const int64_t at = static_cast<int64_t>(request.prompt.size() - 1 + i) * vocab;
    const auto p = log_softmax(baseline.data() + at, vocab);
    const auto q = log_softmax(mapped.data() + at, vocab);
    for (int64_t j = 0; j < vocab; ++j) expected.kl += std::exp(p[j]) * (p[j] - q[j]) / count;
    expected.nll -= q[request.reference[i]] / count;
    const auto best_p = std::max_element(p.begin(), p.end()) - p.begin();
    const auto best_q = std::max_element(q.begin(), q.end()) - q.begin();
    expected.agreement += best_p == best_q ? 1 / count : 0;
    expected.argmax.push_back(static_cast<int32_t>(best_q));
  }
  return expected;
}

// What the forced pass of `request` feeds, scored one sequence and one token at a time.
std::vector<float> stepwise_logits(const SequenceRequest& request, const PrecisionMap& map) {
  auto model = model::load_model(test::tiny_dir("untied_llama3"), {});
  std::vector<int32_t> tokens = request.prompt;
  tokens.insert(tokens.end(), request.reference.begin(), request.reference.end() - 1);
  test::BatchSpec spec;
  spec.map = map;
  spec.chunk = 1;
  spec.prompt_tokens = static_cast<int64_t>(request.prompt.size());
  return test::batch_logits(**model, spec, {tokens})[0];
}

TEST_F(EngineTest, ForcedScoresEqualBruteForce) {
  for (const std::string kind : {"per-token", "kivi", "kivi-exact"}) {
    Engine engine = make();
    const auto requests = forced_requests(engine);
    const auto outputs = engine.run(map(engine, kind), requests, {});
    ASSERT_TRUE(outputs.ok()) << outputs.error().message;
    for (size_t i = 0; i < requests.size(); ++i) {
      const Expected expected =
          brute_force(requests[i], stepwise_logits(requests[i], map(engine, "baseline")),
                      stepwise_logits(requests[i], map(engine, kind)), engine.vocab_size());
      const SequenceOutput& found = (*outputs)[i];
      EXPECT_NEAR(found.kl, expected.kl, 2e-6) << kind << ", sequence " << i;
      EXPECT_NEAR(found.nll, expected.nll, 2e-6) << kind << ", sequence " << i;
      EXPECT_NEAR(found.token_agreement, expected.agreement, 1e-12);
      EXPECT_EQ(found.argmax, expected.argmax);
      EXPECT_GT(found.cache_bytes, 0);
    }
    EXPECT_GT((*outputs)[2].kl, 1e-4) << "2-bit values must show";
  }
}

TEST_F(EngineTest, BaselineAgreesWithItself) {
  Engine engine = make();
  const auto requests = forced_requests(engine);
  // Twice: the second run finds the first one's logits in the cache.
  for (int round = 0; round < 2; ++round) {
    for (const std::string scheme : {"per-token", "kivi"}) {
      PrecisionMap plain = map(engine, scheme);
      plain = baseline_map(plain.scheme, plain.num_layers());
      const auto outputs = engine.run(plain, requests, {});
      ASSERT_TRUE(outputs.ok()) << outputs.error().message;
      for (const SequenceOutput& output : *outputs) {
        EXPECT_EQ(output.kl, 0);
        EXPECT_EQ(output.token_agreement, 1);
        EXPECT_GT(output.nll, 0);
      }
    }
  }
}

// The greedy output of a map, forced on itself, is its argmax at every position.
TEST_F(EngineTest, ForcingTheOwnOutputReproducesIt) {
  Engine engine = make();
  for (const std::string kind :
       {"baseline", "per-token", "kivi", "kivi-exact", "kvtuner", "kvtuner-kivi", "kvmix-11pack"}) {
    auto requests = prompts(engine, 6, 40);
    const auto generated = engine.run(map(engine, kind), requests, {});
    ASSERT_TRUE(generated.ok()) << generated.error().message;
    for (size_t i = 0; i < requests.size(); ++i) requests[i].reference = (*generated)[i].tokens;
    const auto forced = engine.run(map(engine, kind), requests, {});
    ASSERT_TRUE(forced.ok()) << forced.error().message;
    for (size_t i = 0; i < requests.size(); ++i) {
      EXPECT_EQ((*forced)[i].argmax, (*generated)[i].tokens) << kind << ", sequence " << i;
      EXPECT_EQ((*forced)[i].cache_bytes, (*generated)[i].cache_bytes);
    }
  }
}

TEST_F(EngineTest, StopsAtEosStopCheckAndLimit) {
  Engine engine = make();
  const auto requests = prompts(engine, 3, 20);
  const auto free_run = engine.run(map(engine, "baseline"), requests, {});
  ASSERT_TRUE(free_run.ok());
  ASSERT_EQ((*free_run)[0].tokens.size(), 20u);

  const std::vector<int32_t>& first = (*free_run)[0].tokens;
  RunOptions options;
  options.eos_ids = {first[4]};
  const auto until_eos = engine.run(map(engine, "baseline"), {requests[0]}, options);
  const auto eos_at = std::find(first.begin(), first.end(), first[4]) - first.begin();
  EXPECT_EQ((*until_eos)[0].tokens,
            std::vector<int32_t>(first.begin(), first.begin() + eos_at + 1));

  options = {};
  options.stop = [](int64_t index, const std::vector<int32_t>& tokens) {
    return index == 1 && tokens.size() == 3;
  };
  const auto stopped = engine.run(map(engine, "baseline"), requests, options);
  EXPECT_EQ((*stopped)[0].tokens, first);
  EXPECT_EQ((*stopped)[1].tokens.size(), 3u);
  EXPECT_EQ((*stopped)[2].tokens, (*free_run)[2].tokens);
}

TEST_F(EngineTest, ReportsProgressAndCancels) {
  Engine engine = make();
  const auto requests = prompts(engine, 5, 10);
  std::vector<std::pair<int64_t, int64_t>> seen;
  std::atomic<bool> cancel = false;
  RunOptions options;
  options.cancel = &cancel;
  options.progress = [&](int64_t finished, int64_t tokens) { seen.emplace_back(finished, tokens); };
  ASSERT_TRUE(engine.run(map(engine, "per-token"), requests, options).ok());
  ASSERT_FALSE(seen.empty());
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
  // Prompts of 5, 8, 11, 14 and 17 tokens, and nine of the ten new tokens of each are fed.
  EXPECT_EQ(seen.back(), std::pair(int64_t{5}, int64_t{55 + 5 * 9}));

  const size_t before = seen.size();
  options.progress = [&](int64_t, int64_t) {
    cancel = true;
    seen.emplace_back();
  };
  const auto cancelled = engine.run(map(engine, "per-token"), requests, options);
  ASSERT_FALSE(cancelled.ok());
  EXPECT_EQ(cancelled.error().code, ErrorCode::preempted);
  EXPECT_EQ(seen.size(), before + 1);
}

// Room for one sequence at a time: the others wait, and results are those of an ample budget.
TEST_F(EngineTest, SmallBudgetOnlyQueues) {
  Engine ample = make();
  const auto requests = prompts(ample, 6, 30);
  const PrecisionMap chosen = map(ample, "kivi");
  const auto expected = ample.run(chosen, requests, {});
  ASSERT_TRUE(expected.ok());
  EngineOptions options;
  for (const SequenceOutput& output : *expected) {
    options.cache_budget_bytes = std::max(output.cache_bytes, int64_t{1});
  }
  options.cache_budget_bytes += options.cache_budget_bytes / 4;
  Engine tight = make(options);
  const auto found = tight.run(chosen, requests, {});
  ASSERT_TRUE(found.ok()) << found.error().message;
  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ((*found)[i].tokens, (*expected)[i].tokens);
  }

  options.cache_budget_bytes = 1000;
  Engine tiny = make(options);
  const auto failed = tiny.run(chosen, requests, {});
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code, ErrorCode::oom);
  EXPECT_THAT(failed.error().message, HasSubstr("sequence 0"));
}

void expect_refused(Engine& engine, const PrecisionMap& map, SequenceRequest request,
                    const std::string& part) {
  const auto outcome = engine.run(map, {std::move(request)}, {});
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().code, ErrorCode::bad_input);
  EXPECT_THAT(outcome.error().message, HasSubstr(part));
}

TEST_F(EngineTest, RefusesBadRequests) {
  Engine engine = make();
  const PrecisionMap plain = map(engine, "baseline");
  expect_refused(engine, plain, {{}, {}, 5}, "empty prompt");
  expect_refused(engine, plain, {{1, 2}, {}, 0}, "0 new tokens");
  expect_refused(engine, plain, {{1, 67}, {}, 5}, "67");
  expect_refused(engine, plain, {{1, -1}, {}, 5}, "-1");
  expect_refused(engine, plain, {{1}, {2, 99}, 0}, "reference token 1 is 99");
  // 500 + 14 - 1 = 513 tokens of context; the model has 512.
  expect_refused(engine, plain, {std::vector<int32_t>(500, 3), {}, 14}, "513");
  EXPECT_TRUE(engine.run(plain, {{std::vector<int32_t>(500, 3), {}, 13}}, {}).ok());
  expect_refused(engine, test::make_map("kivi", 2), {{1, 2}, {}, 5}, "2");
}

TEST_F(EngineTest, NamesItsNumerics) {
  const std::string name = Engine::numerics_class();
  EXPECT_THAT(name, testing::StartsWith("cpu/"));
  EXPECT_THAT(name, HasSubstr("/fp32/torch-2.11.0"));
}

}  // namespace
}  // namespace kvsweep::engine
