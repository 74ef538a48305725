// Logits and greedy tokens against transformers in fp32. The reference numbers are made by
// tests/worker/model/make_tiny_models.py, and make_parity_goldens.py and make_reference_goldens.py
// here.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "tests/worker/engine/support.hpp"

namespace kvsweep {
namespace {

constexpr float kTolerance = 1e-3f;

std::unique_ptr<model::Model> load(const std::string& dir, int threads = 1) {
  auto loaded = model::load_model(dir, {threads});
  EXPECT_TRUE(loaded.ok()) << loaded.error().message;
  return std::move(loaded).value();
}

test::BatchSpec exact_spec(const model::Model& model) {
  test::BatchSpec spec;
  spec.map = test::make_map("baseline", model.geometry().num_layers());
  spec.base = BaseType::fp32;
  return spec;
}

std::vector<std::vector<int32_t>> prompts_of(const Json& cases) {
  std::vector<std::vector<int32_t>> prompts;
  for (const Json& one : cases) prompts.push_back(one.at("tokens").get<std::vector<int32_t>>());
  return prompts;
}

// All prompts decode together; each must give transformers' tokens.
void expect_greedy(const std::string& dir, const Json& cases) {
  engine::Engine engine = test::load_engine(dir);
  std::vector<engine::SequenceRequest> requests;
  for (const Json& one : cases) {
    engine::SequenceRequest request;
    request.prompt = one.at("tokens").get<std::vector<int32_t>>();
    request.max_new_tokens = static_cast<int>(one.at("greedy").size());
    requests.push_back(request);
  }
  engine::RunOptions options;
  options.base = BaseType::fp32;
  const auto outputs =
      engine.run(test::make_map("baseline", engine.geometry().num_layers()), requests, options);
  ASSERT_TRUE(outputs.ok()) << outputs.error().message;
  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ((*outputs)[i].tokens, cases[i].at("greedy").get<std::vector<int32_t>>())
        << "prompt of " << requests[i].prompt.size() << " tokens";
  }
}

class TinyParity : public testing::TestWithParam<std::string> {};

TEST_P(TinyParity, LogitsOfAllPromptsInOneBatch) {
  const Json golden = test::read_golden("worker/model/tiny/golden.json").at(GetParam());
  const auto model = load(test::tiny_dir(GetParam()));
  const auto logits =
      test::batch_logits(*model, exact_spec(*model), prompts_of(golden.at("cases")));
  const int64_t vocab = model->vocab_size();
  for (size_t i = 0; i < logits.size(); ++i) {
    const Json& one = golden.at("cases")[i];
    for (size_t row = 0; row < one.at("positions").size(); ++row) {
      const int64_t position = one.at("positions")[row].get<int64_t>();
      const auto expected = one.at("logits")[row].get<std::vector<float>>();
      const std::vector<float> found(logits[i].begin() + position * vocab,
                                     logits[i].begin() + (position + 1) * vocab);
      EXPECT_LE(test::largest_difference(found, expected), kTolerance)
          << one.at("tokens").size() << " tokens, position " << position;
    }
  }
}

TEST_P(TinyParity, GreedyTokens) {
  const Json golden = test::read_golden("worker/model/tiny/golden.json").at(GetParam());
  expect_greedy(test::tiny_dir(GetParam()), golden.at("cases"));
}

INSTANTIATE_TEST_SUITE_P(Variants, TinyParity,
                         testing::Values("tied_linear", "untied_llama3", "plain"));

float row_difference(const Json& row, const std::vector<int32_t>& columns, const float* logits) {
  float largest = 0;
  const auto compare = [&](int64_t column, float expected) {
    largest = std::max(largest, std::fabs(logits[column] - expected));
  };
  for (size_t i = 0; i < columns.size(); ++i) {
    compare(columns[i], row.at("columns")[i].get<float>());
  }
  for (size_t i = 0; i < row.at("top").size(); ++i) {
    compare(row.at("top_ids")[i].get<int64_t>(), row.at("top")[i].get<float>());
  }
  return largest;
}

void expect_rows(const Json& one, const std::vector<int32_t>& columns, int64_t vocab,
                 const std::vector<float>& logits, const std::string& what) {
  for (const Json& row : one.at("rows")) {
    const int64_t position = row.at("position").get<int64_t>();
    EXPECT_LE(row_difference(row, columns, logits.data() + position * vocab), kTolerance)
        << what << ": " << one.at("tokens").size() << " tokens, position " << position;
  }
}

TEST(SmolLm2Parity, LogitsAloneChunkedAndInABatch) {
  const std::string dir = test::smollm2_path();
  if (dir.empty()) GTEST_SKIP() << test::no_smollm2();
  const Json golden = test::read_golden("worker/engine/golden/smollm2.json");
  const auto columns = golden.at("columns").get<std::vector<int32_t>>();
  const auto model = load(dir);
  const int64_t vocab = model->vocab_size();
  test::BatchSpec spec = exact_spec(*model);
  const Json& cases = golden.at("cases");
  const auto prompts = prompts_of(cases);

  const auto together = test::batch_logits(*model, spec, prompts);
  for (size_t i = 0; i < prompts.size(); ++i) {
    expect_rows(cases[i], columns, vocab, together[i], "batch");
  }
  spec.chunk = 600;
  expect_rows(cases[3], columns, vocab, test::batch_logits(*model, spec, {prompts[3]})[0], "alone");
  spec.chunk = 13;
  expect_rows(cases[2], columns, vocab, test::batch_logits(*model, spec, {prompts[2]})[0], "13s");
}

TEST(SmolLm2Parity, GreedyTokens) {
  const std::string dir = test::smollm2_path();
  if (dir.empty()) GTEST_SKIP() << test::no_smollm2();
  expect_greedy(dir, test::read_golden("worker/engine/golden/smollm2.json").at("cases"));
}

// Prompts of word_problems and recall, of 20 to 1,000 tokens, all in one batch.
TEST(ReferenceModel, GreedyTokens) {
  const Json cases = test::read_golden("worker/engine/golden/reference.json").at("cases");
  ASSERT_EQ(cases.size(), 50u);
  expect_greedy(test::reference_dir(), cases);
}

}  // namespace
}  // namespace kvsweep
