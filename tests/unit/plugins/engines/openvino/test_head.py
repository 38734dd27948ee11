"""A draft's short head: same answers among the kept ids, none of the others, and only ids that exist."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from builder.api import EngineRequest
from plugins.engines.openvino import ENGINE
from plugins.engines.openvino.head import FILE_NAME, read_head_ids
from plugins.engines.openvino.runtime.llm import Engine, Request
from plugins.engines.openvino.runtime.request import Result

MakeRequest = Callable[..., EngineRequest]
KEPT = list(range(0, 128, 3))
PROMPT = tuple(range(5, 45))


def logits_of(engine_dir: Path) -> "np.ndarray[tuple[int, ...], np.dtype[np.float32]]":
    engine = Engine.load(engine_dir, max_cached_tokens=256)
    result = engine.generate([Request(PROMPT, 1, want_context_logits=True)])[0]
    assert isinstance(result, Result)
    assert result.context_logits is not None
    return result.context_logits


def test_short_head_keeps_the_logits_of_its_ids(tiny_checkpoint: Path, make_request: MakeRequest, tmp_path: Path) -> None:
    short, whole = tmp_path / "short", tmp_path / "whole"
    checkpoint = Path(shutil.copytree(tiny_checkpoint, tmp_path / "checkpoint"))
    ENGINE.build(make_request(checkpoint, role="draft", max_draft_tokens=0), whole, lambda _what, _share: None)
    (checkpoint / FILE_NAME).write_text(json.dumps(KEPT))
    ENGINE.build(make_request(checkpoint, role="draft", max_draft_tokens=0), short, lambda _what, _share: None)
    expected, found = logits_of(whole), logits_of(short)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found[:, KEPT], expected[:, KEPT], atol=1e-4)
    others = np.setdiff1d(np.arange(128), KEPT)
    assert np.isneginf(found[:, others]).all()
    assert (short / "model.bin").stat().st_size < (whole / "model.bin").stat().st_size


def test_target_keeps_its_whole_head(tiny_checkpoint: Path, make_request: MakeRequest, tmp_path: Path) -> None:
    checkpoint = Path(shutil.copytree(tiny_checkpoint, tmp_path / "checkpoint"))
    (checkpoint / FILE_NAME).write_text(json.dumps(KEPT))
    ENGINE.build(make_request(checkpoint), tmp_path / "target", lambda _what, _share: None)
    assert np.isfinite(logits_of(tmp_path / "target")).all()


@pytest.mark.parametrize("text", ["[]", "[1, 1]", "[2, 1]", "[128]", "[-1]", '{"a": 1}', '["1"]'])
def test_other_lists_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE_NAME).write_text(text)
    with pytest.raises(ValueError, match="ascending list of token ids below 128"):
        read_head_ids(tmp_path, 128)
