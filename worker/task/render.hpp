// What an example becomes for one model: token ids. The only place where prompts meet tokenizer,
// chat template and context, for all tasks.
#pragma once

#include <cstdint>
#include <vector>

#include "core/result.hpp"
#include "worker/task/task.hpp"
#include "worker/text/chat_template.hpp"
#include "worker/text/tokenizer.hpp"

namespace kvsweep::task {

// A model as seen from its texts. Both pointers outlive the calls.
struct ModelText {
  const text::Tokenizer* tokenizer = nullptr;
  const text::ChatTemplate* chat = nullptr;  // nullptr: it has none
  int64_t max_context = 0;                   // tokens of prompt and answer together
};

// One sequence to run: `prompt` is read; then `reference` is read and scored, but for its first
// `unscored` tokens. Empty `reference`: an answer is generated.
struct Sequence {
  std::vector<int32_t> prompt;
  std::vector<int32_t> reference;
  int64_t unscored = 0;
};

// Of kind generate one sequence, of choices one per choice, of rolling one per window.
//
//   text       the prompt and its answer prefix, tokenized with special tokens
//   chat       turns and prompt as messages through the model's template with its generation
//              prompt, then the answer prefix; tokenized without special tokens, which the template
//              writes itself
//   choices    prompt + " " + choice, tokenized whole; what is behind the tokens of the prompt
//   alone
//              is the reference. Blanks at the prompt's end count to the continuation. In a chat
//              the blank stands only after an answer prefix (all as in lm-eval)
//   rolling    `tokens` as they are; else the prompt without special tokens in windows of
//              protocol.length (lm-eval's rolling windows): each token scored once, the first one
//              after the model's BOS, or its end of sequence where it has none
//
// A prompt may have protocol.context tokens, and no more than leave room for the answer; what is
// longer is cut as the example says. Errors (bad_input): such a prompt that may not be cut, a chat
// without a template, an empty prompt.
Result<std::vector<Sequence>> render(const Example& example, const TaskProtocol& protocol,
                                     const ModelText& model);

}  // namespace kvsweep::task
