#!/usr/bin/env python3
"""Write corpus/: what the fuzzers start from, a few small files for each. Standard library only.

    python3 make_corpus.py
"""
import json
import struct
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
TEXT_TESTS = FOLDER.parent / "worker" / "text"


def write(fuzzer, name, content):
    path = FOLDER / "corpus" / fuzzer / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def compact(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def safetensors():
    def file(header, data=b""):
        text = header if isinstance(header, bytes) else compact(header).encode()
        return struct.pack("<Q", len(text)) + text + data

    tensor = {"dtype": "F16", "shape": [2, 2], "data_offsets": [12, 20]}
    two = {"__metadata__": {"format": "pt"}, "b.weight": tensor,
           "a": {"dtype": "F32", "shape": [3], "data_offsets": [0, 12]}}
    write("safetensors", "two", file(two, bytes(range(20))))
    write("safetensors", "none", file({}))
    write("safetensors", "scalar", file(
        {"x": {"dtype": "U8", "shape": [], "data_offsets": [0, 1]}}, b"x"))
    write("safetensors", "empty_tensor", file(
        {"x": {"dtype": "BF16", "shape": [0, 7], "data_offsets": [0, 0]}}))
    write("safetensors", "huge_length", struct.pack("<Q", 1 << 63) + b"{}")
    write("safetensors", "overlap", file(
        {"a": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]},
         "b": {"dtype": "U8", "shape": [4], "data_offsets": [2, 6]}}, b"abcdef"))
    write("safetensors", "wrapping_shape", file(
        {"a": {"dtype": "F32", "shape": [1 << 62, 4], "data_offsets": [0, 0]}}))


def config():
    llama = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 576,
             "num_hidden_layers": 30, "num_attention_heads": 9, "num_key_value_heads": 3,
             "max_position_embeddings": 8192, "vocab_size": 49152, "rope_theta": 100000,
             "torch_dtype": "bfloat16", "rope_scaling": None}
    write("config", "llama", json.dumps(llama, indent=1))
    write("config", "head_dim", compact({**llama, "head_dim": 64, "num_key_value_heads": None}))
    write("config", "layers", compact({**llama, "num_hidden_layers": 10 ** 9}))
    write("config", "text", compact({**llama, "hidden_size": "576"}))
    write("config", "unknown", compact({"architectures": ["MixtralForCausalLM"]}))
    for family in ("Qwen2", "Qwen3", "Mistral", "Phi3", "Gemma2", "Gemma3", "SmolLM3", "Olmo2"):
        more = {"architectures": [f"{family}ForCausalLM"], "sliding_window": 512,
                "layer_types": ["sliding_attention", "full_attention"] * 15, "head_dim": 64,
                "no_rope_layers": [1, 0] * 15, "query_pre_attn_scalar": 64}
        write("config", family.lower(), compact({**llama, **more}))


def gguf():
    def text(value):
        raw = value.encode()
        return struct.pack("<Q", len(raw)) + raw

    def file(keys, tensors, data=b"", version=3, count=None):
        head = b"GGUF" + struct.pack("<IQQ", version, len(tensors),
                                     len(keys) if count is None else count)
        head += b"".join(keys) + b"".join(tensors)
        return head + b"\0" * (-len(head) % 32) + data

    def key(name, kind, packed):
        return text(name) + struct.pack("<I", kind) + packed

    def array(name, kind, packed):
        return key(name, 9, struct.pack("<IQ", kind, len(packed)) + b"".join(packed))

    def tensor(name, shape, kind, offset):
        return (text(name) + struct.pack(f"<I{len(shape)}Q", len(shape), *shape) +
                struct.pack("<IQ", kind, offset))

    keys = [key("general.architecture", 8, text("llama")),
            key("llama.block_count", 4, struct.pack("<I", 1)),
            key("llama.rope.freq_base", 6, struct.pack("<f", 10000.0)),
            key("general.quantized", 7, b"\1"), key("big", 10, struct.pack("<Q", 1 << 40)),
            array("tokenizer.ggml.tokens", 8, [text("<s>"), text("a")]),
            array("tokenizer.ggml.scores", 6, [struct.pack("<f", -1.0)] * 2)]
    tensors = [tensor("token_embd.weight", [32, 2], 8, 0), tensor("norm", [4], 0, 96)]
    write("gguf", "two_tensors", file(keys, tensors, bytes(range(112))))
    write("gguf", "version_2", file(keys[:1], [], version=2))
    write("gguf", "nothing", file([], []))
    write("gguf", "many_keys", file(keys[:1], [], count=1 << 62))
    write("gguf", "long_text", b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, (1 << 63) + 5) + b"abc")
    write("gguf", "wrapping_shape", file([], [tensor("x", [1 << 62, 8], 0, 0)]))
    write("gguf", "far_offset", file([], [tensor("x", [32], 2, 1 << 63)]))
    write("gguf", "nested", file([array("a", 9, [struct.pack("<IQ", 9, 1)])], []))


def tokenizer():
    tiny = json.loads((TEXT_TESTS / "data" / "tiny" / "tokenizer.json").read_text("utf-8"))
    vocab = {chr(ord("a") + i): i for i in range(26)} | {"<unk>": 26, "▁": 27, "▁a": 28, "bc": 29}
    base = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [],
            "normalizer": None, "pre_tokenizer": None, "post_processor": None, "decoder": None}
    bpe = {"type": "BPE", "dropout": None, "unk_token": "<unk>", "fuse_unk": True,
           "byte_fallback": True, "ignore_merges": False, "vocab": vocab,
           "merges": [["▁", "a"], ["b", "c"]]}
    replace = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
    back = {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}
    token = {"id": 30, "content": "<s>", "single_word": False, "lstrip": False, "rstrip": True,
             "normalized": False, "special": True}
    write("tokenizer", "byte_level", compact({**tiny, "model": {**bpe, "vocab": {
        "a": 0, "Ġ": 1, "Ġa": 2}, "merges": ["Ġ a"], "byte_fallback": False}}))
    write("tokenizer", "sentencepiece", compact({
        **base, "model": bpe, "added_tokens": [token],
        "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "Prepend", "prepend": "▁"}, replace, {"type": "NFKC"}]},
        "decoder": {"type": "Sequence", "decoders": [
            back, {"type": "ByteFallback"}, {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}}))
    write("tokenizer", "split", compact({
        **base, "model": bpe, "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": "\\p{N}{1,3}|\\s+(?!\\S)|[^\\s]+"},
             "behavior": "Isolated", "invert": False},
            {"type": "Digits", "individual_digits": True}, {"type": "Punctuation",
                                                            "behavior": "Isolated"}]}}))
    write("tokenizer", "metaspace", compact({
        **base, "model": bpe, "pre_tokenizer": {
            "type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": True},
        "decoder": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first",
                    "split": True},
        "post_processor": {"type": "TemplateProcessing", "single": [
            {"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "B", "type_id": 1}}], "special_tokens": {
                "<s>": {"id": "<s>", "ids": [30], "tokens": ["<s>"]}}}}))
    write("tokenizer", "wordpiece", compact({
        **base, "normalizer": {"type": "BertNormalizer", "clean_text": True, "lowercase": True,
                               "handle_chinese_chars": True, "strip_accents": None},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {"type": "WordPiece", "unk_token": "<unk>", "continuing_subword_prefix": "##",
                  "max_input_chars_per_word": 100, "vocab": vocab}}))
    write("tokenizer", "unigram", compact({
        **base, "model": {"type": "Unigram", "unk_id": 0, "byte_fallback": False,
                          "vocab": [["<unk>", 0.0], ["a", -1.5], ["▁", -2.0], ["ab", -3.25]]}}))
    write("tokenizer", "wordlevel", compact({
        **base, "pre_tokenizer": {"type": "WhitespaceSplit"},
        "model": {"type": "WordLevel", "unk_token": "<unk>", "vocab": vocab}}))


def chat_template():
    import sys
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(TEXT_TESTS))
    from template_cases import CASES
    for name, source in CASES.items():
        write("chat_template", name, source)


def tokenizer_config():
    write("tokenizer_config", "tokens", compact(
        {"bos_token": "<s>", "eos_token": {"__type": "AddedToken", "content": "</s>"},
         "pad_token": None, "add_bos_token": True, "add_eos_token": False, "eos_token_id": [2, 5]}))
    write("tokenizer_config", "llama", compact(
        {"tokenizer_class": "LlamaTokenizerFast", "legacy": True, "add_prefix_space": None,
         "chat_template": [{"name": "default", "template": "x"}], "eos_token_id": 2}))


def kvmap():
    write("kvmap", "kvtuner", "0:\n  nbits_key: 8\n  nbits_value: 4\n"
                              "1:\n  nbits_key: 4\n  nbits_value: 2\n")
    scheme = {"name": "per-token", "group": 32, "residual": 0, "sinks": 0, "prefill": "stepwise"}
    write("kvmap", "map", compact({"scheme": scheme, "layers": ["K8V4", "K8V4|K16V2"]}))
    form = {"codec": "affine-int", "axis": "token", "group": "head", "effective_bits": 4.5}
    formats = {"f": {**form, "bits": 4}, "e": {**form, "bits": 8, "effective_bits": 8.5}}
    write("kvmap", "kvmap", compact(
        {"schema": "kvmap", "schema_version": 1, "must_understand": ["head_formats"],
         "model": {"hash": "0" * 64}, "formats": formats,
         "geometry": {"num_layers": 2, "kv_heads": 2, "head_dim_k": 64, "head_dim_v": 64},
         "policy": {"residual_tokens": 0, "sink_tokens": 0, "prefill_quantized": True},
         "layers": [{"index": 0, "k": "f", "v": "f"}, {"index": 1, "k": ["e", "f"], "v": "f"}],
         "cost": {"nominal_bits": 4.5}}))


def wire():
    def cbor(value):
        if isinstance(value, bool):
            return b"\xf5" if value else b"\xf4"
        if value is None:
            return b"\xf6"
        if isinstance(value, float):
            return b"\xfb" + struct.pack(">d", value)
        if isinstance(value, int):
            return head(0, value) if value >= 0 else head(1, -1 - value)
        if isinstance(value, str):
            return head(3, len(value.encode())) + value.encode()
        if isinstance(value, list):
            return head(4, len(value)) + b"".join(map(cbor, value))
        return head(5, len(value)) + b"".join(cbor(k) + cbor(v) for k, v in value.items())

    def head(kind, number):
        for extra, limit, code in ((0, 24, None), (1, 1 << 8, "B"), (2, 1 << 16, "H"),
                                   (4, 1 << 32, "I"), (8, 1 << 64, "Q")):
            if number < limit:
                if extra == 0:
                    return bytes([kind << 5 | number])
                return bytes([kind << 5 | {1: 24, 2: 25, 4: 26, 8: 27}[extra]]) + struct.pack(
                    ">" + code, number)
        raise ValueError(number)

    messages = {
        "hello": {"worker_id": "w", "host": "h", "pid": 7, "version": "0.1.0", "device": "cpu",
                  "device_name": "cpu", "numerics_class": "c", "threads": 2, "memory_bytes": 1 << 33},
        "welcome": {"session": "s", "heartbeat_ms": 1000, "lease_ms": 30000},
        "refuse": {"reason": "no"}, "ready": {}, "drain": {}, "bye": {"reason": "done"},
        "ack": {"lease_id": "l", "accepted": 3}, "release": {"lease_id": "l"},
        "progress": {"lease_id": "l", "done": 1, "total": 4, "tokens_per_second": 12.5},
        "result": {"lease_id": "l", "measurements": [], "final": True},
        "lease": {"lease_id": "l", "kind": "measure", "maps": [], "examples": [0, 1, -5]},
    }
    for name, members in messages.items():
        write("wire", name, cbor({"v": 1, "t": name, **members}))


if __name__ == "__main__":
    for make in (safetensors, config, gguf, tokenizer, chat_template, tokenizer_config, kvmap, wire):
        make()
