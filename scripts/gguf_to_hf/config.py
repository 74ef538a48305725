"""config.json and generation_config.json from GGUF metadata."""
from .reading import ConversionError, shortest_float

DEFAULT_ROPE_BASE = 10000.0  # of llama.cpp when the key is absent


def check_supported(gguf):
    arch = gguf.need("general.architecture")
    if arch != "llama":
        raise ConversionError(f"{gguf.path} holds architecture '{arch}'; only 'llama' is known")
    scaling = gguf.get("llama.rope.scaling.type", "none")
    if scaling != "none":
        raise ConversionError(f"{gguf.path} scales RoPE by '{scaling}'; only plain RoPE is known")
    model, pre = gguf.need("tokenizer.ggml.model"), gguf.need("tokenizer.ggml.pre")
    if (model, pre) != ("gpt2", "smollm"):
        raise ConversionError(
            f"{gguf.path} has tokenizer '{model}' with pre-tokenizer '{pre}'; only 'gpt2' with "
            "'smollm' is known")


def make_config(gguf):
    hidden, heads = gguf.need("llama.embedding_length"), gguf.need("llama.attention.head_count")
    if heads == 0 or hidden % heads != 0:
        raise ConversionError(f"{gguf.path}: {hidden} channels do not divide by {heads} heads")
    head_dim = hidden // heads
    rotated = gguf.get("llama.rope.dimension_count", head_dim)
    if rotated != head_dim:
        raise ConversionError(
            f"{gguf.path} rotates {rotated} of {head_dim} channels; only whole heads are known")
    tokens = gguf.need("tokenizer.ggml.tokens")
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_act": "silu",
        "hidden_size": hidden,
        "intermediate_size": gguf.need("llama.feed_forward_length"),
        "num_hidden_layers": gguf.need("llama.block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": gguf.get("llama.attention.head_count_kv", heads),
        "head_dim": head_dim,
        "max_position_embeddings": gguf.need("llama.context_length"),
        "rms_norm_eps": shortest_float(gguf.need("llama.attention.layer_norm_rms_epsilon")),
        "rope_theta": shortest_float(gguf.get("llama.rope.freq_base", DEFAULT_ROPE_BASE)),
        "rope_scaling": None,
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": all(t.name != "output.weight" for t in gguf.tensors),
        "vocab_size": len(tokens),
        "bos_token_id": gguf.need("tokenizer.ggml.bos_token_id"),
        "eos_token_id": gguf.need("tokenizer.ggml.eos_token_id"),
        "pad_token_id": gguf.get("tokenizer.ggml.padding_token_id"),
        "torch_dtype": "float16",
    }


def make_generation_config(config):
    keys = ("bos_token_id", "eos_token_id", "pad_token_id")
    return {"do_sample": False, **{key: config[key] for key in keys if config[key] is not None}}
