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


def safetensors_file(header, data=b""):
    text = header if isinstance(header, bytes) else compact(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def safetensors():
    file = safetensors_file
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


class Gguf:
    """The parts of a GGUF file."""

    @staticmethod
    def text(value):
        raw = value.encode()
        return struct.pack("<Q", len(raw)) + raw

    @staticmethod
    def file(keys, tensors, data=b"", version=3, count=None):
        head = b"GGUF" + struct.pack("<IQQ", version, len(tensors),
                                     len(keys) if count is None else count)
        head += b"".join(keys) + b"".join(tensors)
        return head + b"\0" * (-len(head) % 32) + data

    @staticmethod
    def key(name, kind, packed):
        return Gguf.text(name) + struct.pack("<I", kind) + packed

    @staticmethod
    def array(name, kind, packed):
        return Gguf.key(name, 9, struct.pack("<IQ", kind, len(packed)) + b"".join(packed))

    @staticmethod
    def tensor(name, shape, kind, offset):
        return (Gguf.text(name) + struct.pack(f"<I{len(shape)}Q", len(shape), *shape) +
                struct.pack("<IQ", kind, offset))


def gguf():
    text, file, key, array, tensor = Gguf.text, Gguf.file, Gguf.key, Gguf.array, Gguf.tensor
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


def model_config():
    base = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 4,
            "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 256,
            "vocab_size": 100, "head_dim": 16}
    ropes = {
        "linear": {"rope_type": "linear", "factor": 2.0},
        "dynamic": {"rope_type": "dynamic", "factor": 4.0},
        "yarn": {"rope_type": "yarn", "factor": 4.0, "beta_fast": 32, "beta_slow": 1,
                 "mscale": 0.7, "mscale_all_dim": 0.5, "truncate": False,
                 "original_max_position_embeddings": 64},
        "longrope": {"type": "longrope", "short_factor": [1.0] * 8, "long_factor": [2.0] * 8,
                     "original_max_position_embeddings": 64},
        "llama3": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                   "high_freq_factor": 4.0, "original_max_position_embeddings": 64}}
    for name, rope in ropes.items():
        write("model_config", name, compact(
            {**base, "architectures": ["LlamaForCausalLM"], "rope_theta": 10000.0,
             "rope_scaling": rope, "attention_bias": True, "mlp_bias": False}))
    quantized = {"awq": {"quant_method": "awq", "bits": 4, "group_size": 128, "version": "gemm"},
                 "gptq": {"quant_method": "gptq", "bits": 4, "group_size": -1, "dynamic": {},
                          "checkpoint_format": "gptq_v2"}}
    for name, settings in quantized.items():
        write("model_config", name, compact(
            {**base, "architectures": ["Qwen2ForCausalLM"], "quantization_config": settings,
             "use_sliding_window": True, "sliding_window": 32, "max_window_layers": 2}))
    families = {
        "Mistral": {"sliding_window": 32}, "Qwen3": {"layer_types": ["full_attention"] * 4},
        "Phi3": {"partial_rotary_factor": 0.75, "original_max_position_embeddings": 128,
                 "rope_scaling": {"type": "su", "short_factor": [1] * 6, "long_factor": [2] * 6}},
        "Gemma2": {"attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0,
                   "query_pre_attn_scalar": 16, "hidden_activation": "gelu_pytorch_tanh"},
        "Gemma3": {"sliding_window": 32, "sliding_window_pattern": 2, "rope_local_base_freq": 1e4,
                   "rope_parameters": {"full_attention": {"rope_type": "linear", "factor": 8.0},
                                       "sliding_attention": {"rope_type": "default"}},
                   "layer_types": ["sliding_attention", "full_attention"] * 2},
        "SmolLM3": {"no_rope_layers": [1, 1, 1, 0], "no_rope_layer_interval": 4},
        "Olmo2": {"rope_parameters": {"rope_theta": 5e5}, "attention_bias": False}}
    for family, more in families.items():
        write("model_config", family.lower(), compact(
            {**base, "architectures": [f"{family}ForCausalLM"], **more}))


def weights():
    """The first byte chooses the settings (weights_fuzz.cpp)."""
    def layout(parts):
        header, data = {}, b""
        for name, (dtype, shape, content) in parts.items():
            header[name] = {"dtype": dtype, "shape": shape,
                            "data_offsets": [len(data), len(data) + len(content)]}
            data += content
        return safetensors_file(header, data)

    plain = {"a.weight": ("F32", [2, 3], struct.pack("<6f", *range(6))),
             "b.weight": ("BF16", [2, 2], bytes(range(8))), "b.bias": ("F16", [4], bytes(8)),
             "c": ("I64", [1], bytes(8)), "rotary_emb.inv_freq": ("F32", [0, 5], b"")}
    write("weights", "plain", b"\0" + layout(plain))
    scales = struct.pack("<16e", *[0.5] * 16)
    awq = {"p.qweight": ("I32", [16, 1], bytes(range(64))), "p.qzeros": ("I32", [2, 1], bytes(8)),
           "p.scales": ("F16", [2, 8], scales), "p.bias": ("F16", [8], bytes(16))}
    write("weights", "awq", b"\1" + layout(awq))
    write("weights", "awq_one_group", b"\2" + layout(
        {**awq, "p.qzeros": ("I32", [1, 1], bytes(4)), "p.scales": ("F16", [1, 8], scales[:16])}))
    gptq = {"p.qweight": ("I32", [2, 8], bytes(range(64))), "p.qzeros": ("I32", [2, 1], bytes(8)),
            "p.scales": ("F16", [2, 8], scales),
            "p.g_idx": ("I32", [16], struct.pack("<16i", *[0] * 8, *[1] * 8))}
    write("weights", "gptq", b"\3" + layout(gptq))
    write("weights", "gptq_v2", b"\4" + layout(
        {**gptq, "p.qzeros": ("I32", [6, 1], bytes(24)), "p.scales": ("F16", [6, 8], bytes(96))}))
    write("weights", "lone_scales", b"\1" + layout({"p.scales": awq["p.scales"]}))
    write("weights", "nothing", b"\0" + safetensors_file({}))


def gguf_model():
    text, file, key, array, tensor = Gguf.text, Gguf.file, Gguf.key, Gguf.array, Gguf.tensor

    def number(name, value):
        return key(name, 4, struct.pack("<I", value))

    def real(name, value):
        return key(name, 6, struct.pack("<f", value))

    def head(architecture, more=()):
        sizes = {"embedding_length": 32, "feed_forward_length": 32, "block_count": 1,
                 "context_length": 64, "attention.head_count": 4, "attention.head_count_kv": 2}
        return ([key("general.architecture", 8, text(architecture))] +
                [number(f"{architecture}.{name}", value) for name, value in sizes.items()] +
                [real(f"{architecture}.attention.layer_norm_rms_epsilon", 1e-5)] +
                [one(architecture) for one in more])

    def vocabulary(model, tokens, kinds, more):
        return [key("tokenizer.ggml.model", 8, text(model)),
                array("tokenizer.ggml.tokens", 8, [text(token) for token in tokens]),
                array("tokenizer.ggml.token_type", 5, [struct.pack("<i", k) for k in kinds]),
                number("tokenizer.ggml.bos_token_id", 0), number("tokenizer.ggml.eos_token_id", 1),
                *more]

    bpe = vocabulary("gpt2", ["<s>", "<|im_end|>", "a", "b", "ab"], [3, 3, 1, 1, 1],
                     [key("tokenizer.ggml.pre", 8, text("llama-bpe")),
                      array("tokenizer.ggml.merges", 8, [text("a b")])])
    pieces = vocabulary("llama", ["<unk>", "</s>", "a", "b", "ab", "<0x0A>"], [2, 3, 1, 1, 1, 6],
                        [array("tokenizer.ggml.scores", 6, [struct.pack("<f", -i)
                                                           for i in range(6)]),
                         key("tokenizer.ggml.add_space_prefix", 7, b"\0")])
    tensors = [tensor("token_embd.weight", [32, 2], 8, 0),
               tensor("blk.0.attn_q.weight", [32, 8], 2, 96),
               tensor("blk.0.attn_k.weight", [4, 4], 1, 256),
               tensor("blk.0.attn_q.bias", [8], 30, 288),
               tensor("output_norm.weight", [4], 0, 320)]
    data = bytes(range(64)) * 5 + bytes(16)
    models = {
        "llama": [], "qwen2": [], "smollm3": [], "olmo2": [],
        "qwen3": [lambda a: number(f"{a}.attention.key_length", 16)],
        "phi3": [lambda a: number(f"{a}.rope.dimension_count", 8)],
        "gemma2": [lambda a: number(f"{a}.attention.sliding_window", 16),
                   lambda a: real(f"{a}.attn_logit_softcapping", 50.0)],
        "gemma3": [lambda a: number(f"{a}.attention.sliding_window", 16),
                   lambda a: real(f"{a}.rope.freq_base", 1e6)]}
    for architecture, more in models.items():
        words = pieces if architecture in ("phi3", "gemma2", "gemma3") else bpe
        write("gguf_model", architecture, file(head(architecture, more) + words, tensors, data))


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
    for make in (safetensors, config, gguf, tokenizer, chat_template, tokenizer_config, kvmap, wire,
                 model_config, weights, gguf_model):
        make()
