/* C interface of the Rust static library (tokenizers, minijinja, safetensors). Every function
 * catches panics. On failure functions return NULL or a negative number and set *error to a
 * message that the caller frees with kvs_string_free. Strings are UTF-8 with explicit lengths. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct KvsTokenizer KvsTokenizer;
typedef struct KvsTemplate KvsTemplate;
typedef struct KvsSafetensors KvsSafetensors;

void kvs_string_free(char* text);

/* Lowers the memory that loading, encoding, compiling and rendering may each use, for programs that
 * try many hostile files. What goes beyond stays allocated until the process ends. */
void kvs_limit_memory(uint64_t bytes);

/* --- tokenizers */
KvsTokenizer* kvs_tokenizer_load(const char* path, char** error);
/* The same from the contents of a tokenizer.json; `path` names their origin in errors. */
KvsTokenizer* kvs_tokenizer_from_json(const char* json, size_t length, const char* path,
                                      char** error);
/* Applies a JSON object: add_bos_token, add_eos_token (with bos_token, eos_token), prepend_scheme.
 * Right after loading only, before any other call. 0, or -1 with *error. */
int kvs_tokenizer_configure(KvsTokenizer* tokenizer, const char* settings, size_t length,
                            char** error);
void kvs_tokenizer_free(KvsTokenizer* tokenizer);
/* Allocates *ids and *offsets (2 per id: byte start, byte end); free with kvs_ids_free. */
int64_t kvs_tokenizer_encode(const KvsTokenizer* tokenizer, const char* text, size_t length,
                             int add_special_tokens, uint32_t** ids, uint64_t** offsets,
                             char** error);
/* How many ids that would be; -1 with *error. */
int64_t kvs_tokenizer_count(const KvsTokenizer* tokenizer, const char* text, size_t length,
                            int add_special_tokens, char** error);
void kvs_ids_free(uint32_t* ids, uint64_t* offsets, int64_t count);
/* Returns a string of *length bytes; free with kvs_string_free. */
char* kvs_tokenizer_decode(const KvsTokenizer* tokenizer, const uint32_t* ids, size_t count,
                           int skip_special_tokens, size_t* length, char** error);
/* "BPE, byte-level"; free with kvs_string_free. */
char* kvs_tokenizer_kind(const KvsTokenizer* tokenizer, char** error);
int64_t kvs_tokenizer_vocab_size(const KvsTokenizer* tokenizer);
/* -1 when the token is not in the vocabulary. */
int64_t kvs_tokenizer_token_id(const KvsTokenizer* tokenizer, const char* token, size_t length);

/* --- chat templates; `context` is a JSON object with messages, add_generation_prompt, bos_token,
 * ...; `now` is an ISO date for strftime_now; `fuel` bounds the steps. */
KvsTemplate* kvs_template_compile(const char* source, size_t length, char** error);
void kvs_template_free(KvsTemplate* compiled);
char* kvs_template_render(const KvsTemplate* compiled, const char* context, size_t context_length,
                          const char* now, uint64_t fuel, size_t* length, char** error);

/* --- safetensors: the file is mapped; the header is validated (sizes, overlaps, end of file). */
typedef struct {
  const char* name;      /* owned by the handle */
  const char* dtype;     /* "F32", "F16", "BF16", ... */
  const uint64_t* shape; /* owned by the handle */
  size_t rank;
  const uint8_t* data;   /* into the mapping; not always aligned to its type */
  uint64_t bytes;
} KvsTensor;
KvsSafetensors* kvs_safetensors_open(const char* path, char** error);
void kvs_safetensors_free(KvsSafetensors* file);
size_t kvs_safetensors_count(const KvsSafetensors* file);
/* 0 on success, -1 when index is out of range. */
int kvs_safetensors_tensor(const KvsSafetensors* file, size_t index, KvsTensor* tensor);

#ifdef __cplusplus
}
#endif
