"""Reading checkpoint folders without a framework: config, safetensors headers, tokenizer."""

from builder.checkpoint.digest import digest_folder
from builder.checkpoint.model import Checkpoint
from builder.checkpoint.read import read_checkpoint

__all__ = ["Checkpoint", "digest_folder", "read_checkpoint"]
