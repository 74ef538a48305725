"""SmolLM2's tokenizer from its GGUF file, as an object of transformers: every digit alone, then
GPT-2's pattern and byte-level BPE. transformers' own GGUF reader ignores the rule for digits."""
import gguf
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

CONTROL, USER_DEFINED = 3, 4


def load(path):
    fields = {key: field.contents() for key, field in gguf.GGUFReader(path).fields.items()}
    tokens = fields["tokenizer.ggml.tokens"]
    merges = [tuple(merge.split(" ")) for merge in fields["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(models.BPE({text: i for i, text in enumerate(tokens)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True),
         pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer.decoder = decoders.ByteLevel()
    for text, kind in zip(tokens, fields["tokenizer.ggml.token_type"]):
        if kind in (CONTROL, USER_DEFINED):
            token = AddedToken(text, normalized=False, special=kind == CONTROL)
            add = tokenizer.add_special_tokens if kind == CONTROL else tokenizer.add_tokens
            add([token])
    names = {"bos_token": "bos", "eos_token": "eos", "pad_token": "padding", "unk_token": "unknown"}
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, clean_up_tokenization_spaces=False,
        chat_template=fields["tokenizer.chat_template"],
        **{name: tokens[fields[f"tokenizer.ggml.{key}_token_id"]] for name, key in names.items()})
