"""Writes a trained model as an ordinary Hugging Face folder."""
import json

import torch
from safetensors.torch import save_file

from make_tokenizer import END


def write_folder(folder, model, tokenizer):
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {f"model.{name}": p.detach().to(torch.float16).contiguous()
               for name, p in model.named_parameters()}
    save_file(tensors, str(folder / "model.safetensors"), metadata={"format": "pt"})
    (folder / "model.safetensors").chmod(0o644)
    end_id = tokenizer.token_to_id(END)
    (folder / "config.json").write_text(json.dumps(model.c.to_hugging_face(end_id), indent=2) + "\n")
    (folder / "generation_config.json").write_text(json.dumps(
        {"do_sample": False, "eos_token_id": end_id, "pad_token_id": end_id}, indent=2) + "\n")
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps(
        {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": END, "pad_token": END,
         "clean_up_tokenization_spaces": False,
         "model_max_length": model.c.max_position_embeddings}, indent=2) + "\n")
