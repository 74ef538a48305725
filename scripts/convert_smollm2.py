#!/usr/bin/env python3
"""Turn the GGUF file of SmolLM2 into an ordinary Hugging Face model folder.

    python3 scripts/convert_smollm2.py GGUF OUT_DIR

Writes config.json, generation_config.json, tokenizer.json, tokenizer_config.json and
model.safetensors (fp16). The weights are dequantized, and llama.cpp's row order of the query and
key projections is undone. The folder appears whole or not at all: it is written beside OUT_DIR and
renamed. A folder already made from the same file by the same version is kept.

Needs Python 3.11, numpy and gguf (which imports yaml). Exit codes: 0 done, 1 failed, 2 usage.
"""
import argparse
import json
import os
import shutil
import struct
import sys
import tempfile
from pathlib import Path

from gguf_to_hf.config import check_supported, make_config, make_generation_config
from gguf_to_hf.reading import ConversionError, Gguf, sha256_of
from gguf_to_hf.tokenizer import make_tokenizer, make_tokenizer_config
from gguf_to_hf.weights import write_safetensors

CONVERTER_VERSION = "1"
FOLDER_FILES = ("config.json", "generation_config.json", "tokenizer.json",
                "tokenizer_config.json", "model.safetensors")


def provenance(source_hash):
    return {"format": "pt", "source_sha256": source_hash, "converter": CONVERTER_VERSION}


def metadata_of(folder):
    """__metadata__ of an earlier conversion, {} when there is none that can be read."""
    try:
        with open(folder / "model.safetensors", "rb") as file:
            (size,) = struct.unpack("<Q", file.read(8))
            return json.loads(file.read(min(size, 1 << 24))).get("__metadata__", {})
    except (OSError, ValueError, struct.error):
        return {}


def is_current(folder, source_hash):
    return (all((folder / name).is_file() for name in FOLDER_FILES)
            and metadata_of(folder) == provenance(source_hash))


def check_target(out_dir):
    if not out_dir.exists():
        return
    if not out_dir.is_dir():
        raise ConversionError(f"{out_dir} is a file: name a folder to be made")
    if any(out_dir.iterdir()) and "converter" not in metadata_of(out_dir):
        raise ConversionError(
            f"{out_dir} holds something that this script did not write: remove it or name another")


def write_json(path, value):
    path.write_text(json.dumps(value, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def write_folder(folder, gguf, source_hash):
    config = make_config(gguf)
    write_json(folder / "config.json", config)
    write_json(folder / "generation_config.json", make_generation_config(config))
    print(f"tokenizer: {config['vocab_size']} tokens", flush=True)
    write_json(folder / "tokenizer.json", make_tokenizer(gguf))
    write_json(folder / "tokenizer_config.json", make_tokenizer_config(gguf, config))
    print(f"weights: {len(gguf.tensors)} tensors to fp16 ...", flush=True)
    write_safetensors(folder / "model.safetensors", gguf, config, provenance(source_hash))


def move_into_place(folder, out_dir):
    """Two renames when an older folder stands there; in between it has another name, never half."""
    old = None
    if out_dir.exists():
        old = folder.with_name(folder.name + ".old")
        os.rename(out_dir, old)
    os.rename(folder, out_dir)
    if old is not None:
        shutil.rmtree(old)


def convert(source, out_dir):
    source_hash = sha256_of(source)
    if is_current(out_dir, source_hash):
        print(f"{out_dir} is up to date")
        return
    check_target(out_dir)
    print(f"reading {source} ({os.path.getsize(source) / 1e6:.0f} MB)", flush=True)
    gguf = Gguf(source)
    check_supported(gguf)
    out_dir.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f".{out_dir.name}.", dir=out_dir.parent))
    try:
        folder.chmod(0o755)
        write_folder(folder, gguf, source_hash)
        move_into_place(folder, out_dir)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    size = sum(file.stat().st_size for file in out_dir.iterdir())
    print(f"wrote {out_dir} ({size / 1e6:.0f} MB)")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("gguf", help="the GGUF file of SmolLM2")
    parser.add_argument("out_dir", type=Path, help="the folder to write")
    arguments = parser.parse_args()
    try:
        convert(arguments.gguf, Path(os.path.abspath(arguments.out_dir)))
    except ConversionError as error:
        print(f"convert_smollm2: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"convert_smollm2: cannot write {error.filename or arguments.out_dir}: "
              f"{error.strerror}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
