"""Which token ids end an answer."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from builder.checkpoint.geometry import text_config
from builder.checkpoint.quantization import read_object


def read_end_ids(folder: Path, config: Mapping[str, Any]) -> tuple[int, ...]:
    """From generation_config.json, which may name several; else from config.json. Empty where neither names one."""
    for source in (read_object(folder / "generation_config.json"), text_config(config), config):
        found = source.get("eos_token_id")
        ids = found if isinstance(found, list) else [found]
        whole = tuple(i for i in ids if type(i) is int and i >= 0)
        if whole:
            return whole
    return ()
