"""The tokenizer of the reference model: byte-level BPE, trained on the texts it is for.

Digits and newlines stand alone, so that a number is always the same tokens; every word of the
generated texts (each name, each object) ends up as one token, checked by `words_in_pieces`.
"""
import re

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

END = "<|end|>"
VOCABULARY = 1024  # room; the texts have fewer distinct pieces


def train_tokenizer(texts):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=True),
        pre_tokenizers.Split(Regex(r"\n"), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
    ])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=[END], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def words_in_pieces(tokenizer, texts):
    """The words of `texts`, as they stand after a space, that are more than one token."""
    words = {word for text in texts for word in re.findall(r" [A-Za-z]+", text)}
    return sorted(word for word in words if len(tokenizer.encode(word).ids) > 1)
