"""Reading checkpoint folders without a framework: config, safetensors headers, tokenizer."""

from builder.checkpoint.digest import digest_folder
from builder.checkpoint.hf import read_checkpoint
from builder.checkpoint.model import Checkpoint
from builder.checkpoint.tokenizer import Vocabulary, VocabularyDifference, compare_vocabularies, read_vocabulary

__all__ = [
    "Checkpoint",
    "Vocabulary",
    "VocabularyDifference",
    "compare_vocabularies",
    "digest_folder",
    "read_checkpoint",
    "read_vocabulary",
]
