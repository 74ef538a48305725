#!/usr/bin/env python3
"""scripts/convert_smollm2.py on a tiny Llama that this test writes as GGUF.

The original weights are the reference: rows of q and k are put in llama.cpp's order here, by index,
and must come back. Exit code 77 (skipped) when numpy or gguf is missing; scripts/setup installs
them into .deps/convert.
"""
import io
import json
import struct
import sys
import tempfile
import unittest
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / ".deps" / "convert")]
sys.dont_write_bytecode = True
try:
    import gguf
    import numpy as np
except ImportError as error:
    print(f"skipped: no Python package {error.name}; scripts/setup installs it")
    sys.exit(77)
import convert_smollm2

HIDDEN, HEADS, KV_HEADS, HEAD_DIM, FFN, LAYERS = 32, 4, 2, 8, 48, 2
TOKENS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "a", "b", "c", "ab"]
TEMPLATE = "{{ messages[0].content }}"


def llama_cpp_order(weight):
    """Row 2i of a head is row i of the original, row 2i + 1 is row i + d/2."""
    out = np.empty_like(weight)
    for row in range(weight.shape[0]):
        head, within = divmod(row, HEAD_DIM)
        pair, second = divmod(within, 2)
        out[row] = weight[head * HEAD_DIM + pair + second * HEAD_DIM // 2]
    return out


def original_weights():
    """Hugging Face name -> (GGUF name, fp32 weight)."""
    random = np.random.default_rng(3)
    kv = KV_HEADS * HEAD_DIM
    shapes = {
        "self_attn.q_proj": ("attn_q", (HIDDEN, HIDDEN)),
        "self_attn.k_proj": ("attn_k", (kv, HIDDEN)),
        "self_attn.v_proj": ("attn_v", (kv, HIDDEN)),
        "self_attn.o_proj": ("attn_output", (HIDDEN, HIDDEN)),
        "mlp.gate_proj": ("ffn_gate", (FFN, HIDDEN)),
        "mlp.up_proj": ("ffn_up", (FFN, HIDDEN)),
        "mlp.down_proj": ("ffn_down", (HIDDEN, FFN)),
        "input_layernorm": ("attn_norm", (HIDDEN,)),
        "post_attention_layernorm": ("ffn_norm", (HIDDEN,)),
    }
    weights = {
        "model.embed_tokens.weight": ("token_embd.weight", (len(TOKENS), HIDDEN)),
        "model.norm.weight": ("output_norm.weight", (HIDDEN,)),
    }
    for layer in range(LAYERS):
        for name, (short, shape) in shapes.items():
            weights[f"model.layers.{layer}.{name}.weight"] = (f"blk.{layer}.{short}.weight", shape)
    return {name: (short, random.standard_normal(shape).astype(np.float32))
            for name, (short, shape) in weights.items()}


def write_gguf(path, weights, arch="llama", pre="smollm", merges=("a b",), leave_out=None):
    writer = gguf.GGUFWriter(path, arch)
    writer.add_context_length(64)
    writer.add_embedding_length(HIDDEN)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FFN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(100000.0)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(TOKENS)
    writer.add_token_types([3, 3, 3, 1, 1, 1, 1])
    writer.add_token_merges(list(merges))
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_chat_template(TEMPLATE)
    for short, weight in weights.values():
        if short != leave_out:
            turned = ".attn_q." in short or ".attn_k." in short
            writer.add_tensor(short, llama_cpp_order(weight) if turned else weight)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def read_safetensors(path):
    data = path.read_bytes()
    (size,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__")
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        assert entry["dtype"] == "F16"
        tensors[name] = np.frombuffer(data[begin:end], dtype="<f2").reshape(entry["shape"])
    return tensors


class ConvertTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.gguf = self.folder / "tiny.gguf"
        self.out = self.folder / "models" / "tiny"
        self.weights = original_weights()

    def convert(self, out=None):
        """Runs the script's main; the result has returncode, stdout and stderr."""
        out_text, err_text = io.StringIO(), io.StringIO()
        arguments = ["convert_smollm2.py", str(self.gguf), str(out or self.out)]
        with mock.patch.object(sys, "argv", arguments), redirect_stdout(out_text), \
                redirect_stderr(err_text):
            code = convert_smollm2.main()
        return SimpleNamespace(returncode=code, stdout=out_text.getvalue(),
                               stderr=err_text.getvalue())

    def expect_refusal(self, *parts, out=None):
        result = self.convert(out)
        self.assertEqual(result.returncode, 1, result)
        self.assertEqual(len(result.stderr.strip().splitlines()), 1, result.stderr)
        for part in parts:
            self.assertIn(part, result.stderr)
        self.assertFalse(self.out.exists())

    def test_weights_come_back(self):
        write_gguf(self.gguf, self.weights)
        result = self.convert()
        self.assertEqual(result.returncode, 0, result.stderr)
        tensors = read_safetensors(self.out / "model.safetensors")
        self.assertEqual(set(tensors), set(self.weights))
        for name, (_, weight) in self.weights.items():
            np.testing.assert_array_equal(tensors[name], weight.astype(np.float16), err_msg=name)
        self.assertEqual(sorted(p.name for p in self.out.parent.iterdir()), ["tiny"])

    def test_files_say_what_the_metadata_says(self):
        write_gguf(self.gguf, self.weights)
        self.assertEqual(self.convert().returncode, 0)
        read = {p.stem: json.loads(p.read_text()) for p in self.out.glob("*.json")}
        wanted = {"hidden_size": 32, "num_attention_heads": 4, "num_key_value_heads": 2,
                  "head_dim": 8, "intermediate_size": 48, "num_hidden_layers": 2,
                  "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "rope_theta": 100000.0,
                  "tie_word_embeddings": True, "vocab_size": 7, "bos_token_id": 1,
                  "eos_token_id": 2, "torch_dtype": "float16"}
        self.assertEqual({key: read["config"][key] for key in wanted}, wanted)
        self.assertEqual(read["generation_config"]["eos_token_id"], 2)
        self.assertEqual(read["tokenizer_config"]["chat_template"], TEMPLATE)
        self.assertEqual(read["tokenizer_config"]["eos_token"], "<|im_end|>")
        added = read["tokenizer"]["added_tokens"]
        self.assertEqual([(token["id"], token["special"]) for token in added],
                         [(0, True), (1, True), (2, True)])
        self.assertEqual(read["tokenizer"]["model"]["merges"], [["a", "b"]])

    def test_an_output_matrix_of_its_own_is_kept(self):
        self.weights["lm_head.weight"] = ("output.weight", self.weights[
            "model.embed_tokens.weight"][1] + 1)
        write_gguf(self.gguf, self.weights)
        self.assertEqual(self.convert().returncode, 0)
        self.assertFalse(json.loads((self.out / "config.json").read_text())["tie_word_embeddings"])
        self.assertIn("lm_head.weight", read_safetensors(self.out / "model.safetensors"))

    def test_a_second_run_keeps_a_whole_folder_and_replaces_a_broken_one(self):
        write_gguf(self.gguf, self.weights)
        self.assertIn("wrote", self.convert().stdout)
        self.assertIn("up to date", self.convert().stdout)
        (self.out / "config.json").unlink()
        self.assertIn("wrote", self.convert().stdout)
        self.assertTrue((self.out / "config.json").exists())
        self.assertEqual([p.name for p in self.out.parent.iterdir()], ["tiny"])

    def test_files_of_others_are_left_alone(self):
        write_gguf(self.gguf, self.weights)
        mine = self.folder / "mine"
        mine.mkdir()
        (mine / "thesis.txt").write_text("precious")
        self.expect_refusal("did not write", out=mine)
        self.expect_refusal("is a file", out=mine / "thesis.txt")
        self.assertEqual((mine / "thesis.txt").read_text(), "precious")

    def test_wrong_files_are_refused_in_one_sentence(self):
        self.expect_refusal("cannot read", "tiny.gguf")
        self.gguf.write_bytes(b"PK\3\4 not a model")
        self.expect_refusal("is not a GGUF file")
        write_gguf(self.gguf, self.weights, arch="gemma3")
        self.expect_refusal("architecture 'gemma3'")
        write_gguf(self.gguf, self.weights, pre="llama-bpe")
        self.expect_refusal("'llama-bpe'")
        write_gguf(self.gguf, self.weights, merges=("a z",))
        self.expect_refusal("merge 0")
        write_gguf(self.gguf, self.weights, leave_out="blk.1.attn_k.weight")
        self.expect_refusal("model.layers.1.self_attn.k_proj.weight")
        self.weights["model.norm.weight"][1][3] = 1e6
        write_gguf(self.gguf, self.weights)
        self.expect_refusal("output_norm.weight", "fp16")

    def test_files_cut_short_are_refused(self):
        write_gguf(self.gguf, self.weights)
        whole = self.gguf.read_bytes()
        for size in (4, 20, 200, len(whole) // 2, len(whole) - 64):
            self.gguf.write_bytes(whole[:size])
            self.expect_refusal("damaged or cut short")


if __name__ == "__main__":
    unittest.main()
