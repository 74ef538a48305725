// The tokenizer of a GGUF file in the form of Hugging Face's files.
#pragma once

#include <cstdint>
#include <vector>

#include "core/gguf.hpp"
#include "core/json.hpp"

namespace kvsweep::text {

// tokenizer.json from tokenizer.ggml.*. Two models are known:
//   gpt2    byte-level BPE, with one of the pre-tokenizers of gguf_pretokenizers.hpp
//   llama   SentencePiece BPE: merges follow from the scores, bytes stand for unknown characters
// bad_input names file and key: another model, an unknown pre-tokenizer, lists of unequal length, a
// token that is there twice, a merge of things that are no tokens.
Result<Json> gguf_tokenizer(const GgufFile& file);

// tokenizer_config.json: bos_token, eos_token, unk_token, pad_token and chat_template, where the
// file says them.
Result<Json> gguf_tokenizer_config(const GgufFile& file);

// generation_config.json: eos_token_id. GGUF has one end of sequence and, in some files, ends of
// turn and message; where it has none, these are recognised by their text, as llama.cpp does.
Result<Json> gguf_generation_config(const GgufFile& file);

}  // namespace kvsweep::text
