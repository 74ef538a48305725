"""tokenizer.json and tokenizer_config.json from GGUF metadata."""
from .reading import ConversionError

TOKEN_CONTROL, TOKEN_USER_DEFINED = 3, 4  # gguf.TokenType


def added_tokens(gguf):
    """Control and user-defined tokens, which are cut out of the text before any merging."""
    texts, kinds = gguf.need("tokenizer.ggml.tokens"), gguf.need("tokenizer.ggml.token_type")
    if len(texts) != len(kinds):
        raise ConversionError(f"{gguf.path} names {len(texts)} tokens but types for {len(kinds)}")
    return [
        {"id": i, "content": texts[i], "single_word": False, "lstrip": False, "rstrip": False,
         "normalized": False, "special": kind == TOKEN_CONTROL}
        for i, kind in enumerate(kinds) if kind in (TOKEN_CONTROL, TOKEN_USER_DEFINED)
    ]


def make_tokenizer(gguf):
    """Byte-level BPE. 'smollm' = every digit alone, then GPT-2's pattern (ByteLevel's own)."""
    texts = gguf.need("tokenizer.ggml.tokens")
    vocab = {text: i for i, text in enumerate(texts)}
    if len(vocab) != len(texts):
        raise ConversionError(f"{gguf.path} names {len(texts) - len(vocab)} tokens twice")
    merges = [merge.split(" ") for merge in gguf.need("tokenizer.ggml.merges")]
    for rank, pair in enumerate(merges):
        if len(pair) != 2 or any(part not in vocab for part in pair) or "".join(pair) not in vocab:
            raise ConversionError(f"{gguf.path}: merge {rank} is not made of tokens: {pair}")
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
                  "use_regex": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added_tokens(gguf),
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [{"type": "Digits", "individual_digits": True}, byte_level],
        },
        "post_processor": make_post_processor(gguf, texts),
        "decoder": byte_level,
        "model": {
            "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
            "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
            "ignore_merges": False, "vocab": vocab, "merges": merges,
        },
    }


def make_post_processor(gguf, texts):
    if not gguf.get("tokenizer.ggml.add_bos_token", False):
        return None
    bos_id = gguf.need("tokenizer.ggml.bos_token_id")
    bos = texts[bos_id]
    first = {"SpecialToken": {"id": bos, "type_id": 0}}
    return {
        "type": "TemplateProcessing",
        "single": [first, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [first, {"Sequence": {"id": "A", "type_id": 0}},
                 {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {bos: {"id": bos, "ids": [bos_id], "tokens": [bos]}},
    }


def make_tokenizer_config(gguf, config):
    texts = gguf.need("tokenizer.ggml.tokens")
    result = {
        # The generic class reads tokenizer.json as it stands; "GPT2Tokenizer" would rebuild it
        # without the digit rule.
        "tokenizer_class": "PreTrainedTokenizerFast",
        "add_prefix_space": False,
        "clean_up_tokenization_spaces": False,
        "model_max_length": config["max_position_embeddings"],
    }
    ids = {"bos_token": config["bos_token_id"], "eos_token": config["eos_token_id"],
           "pad_token": config["pad_token_id"],
           "unk_token": gguf.get("tokenizer.ggml.unknown_token_id")}
    for key, token in ids.items():
        if token is not None and token >= len(texts):
            raise ConversionError(f"{gguf.path}: {key} {token} is outside the {len(texts)} tokens")
        if token is not None:
            result[key] = texts[token]
    result["chat_template"] = gguf.need("tokenizer.chat_template")
    return result
