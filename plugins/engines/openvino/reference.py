"""The unquantized parent: transformers in float32, one window at a time."""

import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


def parent_logits(checkpoint: Path, windows: Sequence[Sequence[int]]) -> Iterator[NDArray[np.float32]]:
    """Logits [len(window), vocab] float32 for each window of token ids; the model is loaded when the first one is asked for."""
    import torch
    from transformers import AutoModelForCausalLM
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = AutoModelForCausalLM.from_pretrained(checkpoint, dtype=torch.float32).eval()
    for window in windows:
        with torch.inference_mode():
            yield model(input_ids=torch.tensor([list(window)]), use_cache=False).logits[0].numpy()
