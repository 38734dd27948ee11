"""Reading checkpoint folders without a framework: config, safetensors headers, tokenizer."""

from builder.checkpoint.digest import digest_folder
from builder.checkpoint.hf import read_checkpoint
from builder.checkpoint.model import Checkpoint

__all__ = ["Checkpoint", "digest_folder", "read_checkpoint"]
