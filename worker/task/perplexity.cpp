// Perplexity of a text file, in three conventions whose numbers must not be compared. FILE is a
// path below the folder of data sets; `length` the tokens of a window.
//
//   perplexity/FILE       as in GPTQ (Frantar et al., arXiv 2210.17323) and the papers after it:
//   rows
//                         joined by "\n\n", tokenized whole with special tokens, windows of
//                         `length` tokens without overlap; all but the first token of each are
//                         scored. What is left over is not. Perplexity is exp of the mean over
//                         windows.
//   half_perplexity/FILE  as llama.cpp's tool: the file as it is, windows of `length` tokens, the
//                         first replaced by BOS where the tokenizer adds one; the second half of
//                         each is scored (of 512 tokens the last 255).
//   word_perplexity/FILE  as lm-eval's wikitext: per page, its text with the blanks around
//   punctuation
//                         undone, every token scored once in windows of `length` (rolling); exp of
//                         the sum over all pages divided by the words of the pages as they were.
//
// A window or page is an example; a prompt of one token is read first, so that every scored token
// sees the cache as decoding would have built it.
#include <algorithm>
#include <utility>

#include "core/file.hpp"
#include "worker/task/data_path.hpp"
#include "worker/task/task.hpp"
#include "worker/task/wikitext.hpp"

namespace kvsweep::task {
namespace {

constexpr int kLeastLength = 8;

class Windows final : public Task {
 public:
  Windows(TaskProtocol protocol, std::vector<int32_t> ids, int64_t unscored)
      : protocol_(std::move(protocol)), ids_(std::move(ids)), unscored_(unscored) {}

  int64_t size() const override { return static_cast<int64_t>(ids_.size()) / protocol_.length; }

  Result<Example> example(int64_t index) const override {
    if (index < 0 || index >= size()) return no_example(protocol_, index, size());
    const auto begin = ids_.begin() + index * protocol_.length;
    Example example;
    example.tokens.assign(begin, begin + protocol_.length);
    // Where the tokenizer adds BOS, every window of llama.cpp's begins with it.
    if (start_) example.tokens.front() = *start_;
    example.unscored = unscored_;
    example.hash = example_hash(example);
    return example;
  }

  void begin_with(int32_t start) { start_ = start; }

 private:
  TaskProtocol protocol_;
  std::vector<int32_t> ids_;
  int64_t unscored_;
  std::optional<int32_t> start_;
};

class Pages final : public Task {
 public:
  Pages(TaskProtocol protocol, std::vector<std::string> pages)
      : protocol_(std::move(protocol)), pages_(std::move(pages)) {}

  int64_t size() const override { return static_cast<int64_t>(pages_.size()); }

  Result<Example> example(int64_t index) const override {
    if (index < 0 || index >= size()) return no_example(protocol_, index, size());
    const std::string& page = pages_[static_cast<size_t>(index)];
    Example example;
    example.prompt = detokenized(page);
    example.words = words_of(page);
    example.hash = example_hash(example);
    return example;
  }

 private:
  TaskProtocol protocol_;
  std::vector<std::string> pages_;
};

Error too_short(const TaskProtocol& protocol, const std::string& path, size_t tokens) {
  return bad_input("task " + protocol.name + ": " + path + " has " + std::to_string(tokens) +
                   " tokens, which is less than one window of " + std::to_string(protocol.length) +
                   "; give a smaller length");
}

Result<std::unique_ptr<Task>> open_paper(const TaskProtocol& protocol, const TaskInputs& inputs,
                                         const std::string& path, const std::string& text) {
  KVSWEEP_ASSIGN(auto ids, inputs.tokenizer->encode(joined_rows(text), true));
  if (static_cast<int64_t>(ids.size()) < protocol.length) {
    return too_short(protocol, path, ids.size());
  }
  return std::unique_ptr<Task>(std::make_unique<Windows>(protocol, std::move(ids), 0));
}

Result<std::unique_ptr<Task>> open_halves(const TaskProtocol& protocol, const TaskInputs& inputs,
                                          const std::string& path, const std::string& text) {
  KVSWEEP_ASSIGN(auto ids, inputs.tokenizer->encode(text, true));
  if (static_cast<int64_t>(ids.size()) < protocol.length) {
    return too_short(protocol, path, ids.size());
  }
  KVSWEEP_ASSIGN(const auto bare, inputs.tokenizer->encode("a", false));
  KVSWEEP_ASSIGN(const auto framed, inputs.tokenizer->encode("a", true));
  auto task = std::make_unique<Windows>(protocol, std::move(ids), protocol.length / 2);
  if (framed.size() > bare.size() && framed.front() != bare.front()) {
    task->begin_with(framed.front());
  }
  return std::unique_ptr<Task>(std::move(task));
}

}  // namespace

Result<std::unique_ptr<Task>> open_perplexity(const TaskProtocol& protocol,
                                              const TaskInputs& inputs) {
  if (protocol.length < kLeastLength) {
    return bad_input("task " + protocol.name + ": length is " + std::to_string(protocol.length) +
                     "; allowed are at least " + std::to_string(kLeastLength) + " tokens");
  }
  if (protocol.shots != 0) {
    return bad_input("task " + protocol.name + ": shots is " + std::to_string(protocol.shots) +
                     "; it must be 0, since a text is scored as it is");
  }
  KVSWEEP_ASSIGN(const std::string path, data_path(protocol, inputs.data_dir));
  KVSWEEP_ASSIGN(const std::string text, read_file(path));
  if (protocol.name.starts_with("perplexity/")) return open_paper(protocol, inputs, path, text);
  if (protocol.name.starts_with("half_")) return open_halves(protocol, inputs, path, text);
  std::vector<std::string> pages = wikitext_pages(text);
  return std::unique_ptr<Task>(std::make_unique<Pages>(protocol, std::move(pages)));
}

}  // namespace kvsweep::task
