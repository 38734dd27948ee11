"""Reading checkpoints without a framework: config, safetensors headers, tokenizer; folders, GGUF files, models of a hub."""

from builder.checkpoint.digest import digest_folder, known_digest
from builder.checkpoint.hub_folders import HubSource, holds_headers_only, hub_source
from builder.checkpoint.locate import ModelAccess, fetch_checkpoint, locate_checkpoint
from builder.checkpoint.model import Checkpoint
from builder.checkpoint.read import read_checkpoint

__all__ = [
    "Checkpoint",
    "HubSource",
    "ModelAccess",
    "digest_folder",
    "fetch_checkpoint",
    "holds_headers_only",
    "hub_source",
    "known_digest",
    "locate_checkpoint",
    "read_checkpoint",
]
