"""Parts of scripts/convert_smollm2.py: a GGUF file of the Llama family as a Hugging Face folder."""
