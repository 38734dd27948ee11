"""A draft's short head: the output layer kept for the token ids that answers use most.

The output layer is most of a small draft's weights, and a draft step is bound by reading them. A token id without a row is one that
this draft never proposes; the target loses nothing by it. The idea is FR-Spec's (Zhao et al. 2025).
"""

import json
from pathlib import Path
from typing import Any

FILE_NAME = "head_token_ids.json"
"""In a checkpoint or engine folder: the kept ids, ascending."""


def read_head_ids(folder: Path, vocab_size: int) -> list[int] | None:
    """The kept ids, None when the folder keeps all. Raises ValueError when the file is no ascending list of token ids."""
    file = folder / FILE_NAME
    if not file.is_file():
        return None
    ids: list[int] = json.loads(file.read_text(encoding="utf-8"))
    valid = isinstance(ids, list) and ids and all(isinstance(i, int) and 0 <= i < vocab_size for i in ids)
    if not valid or sorted(set(ids)) != ids:
        raise ValueError(f"{file} must hold an ascending list of token ids below {vocab_size}")
    return ids


def shorten_head(hf_model: Any, ids: list[int]) -> None:
    """Cut the output layer of a transformers model to the rows of `ids`; a tied embedding stays whole."""
    import torch

    head = hf_model.get_output_embeddings()
    rows = torch.tensor(ids)
    short = torch.nn.Linear(head.in_features, len(ids), bias=head.bias is not None, dtype=head.weight.dtype)
    with torch.no_grad():
        short.weight.copy_(head.weight[rows])
        if head.bias is not None:
            short.bias.copy_(head.bias[rows])
    hf_model.set_output_embeddings(short)


def write_head_ids(ids: list[int], folder: Path) -> None:
    """Write the kept ids into an engine folder."""
    (folder / FILE_NAME).write_text(json.dumps(ids) + "\n", encoding="utf-8")
