"""The CPU engine with the demo pair's real weights: speculation equals target-only and the parent's logits are near."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from plugins.engines.openvino import ENGINE
from plugins.engines.openvino.runtime.llm import Engine
from plugins.engines.openvino.runtime.request import Request, Result

pytestmark = pytest.mark.functional


@pytest.fixture(scope="module")
def target(demo_pair_build: Path) -> Engine:
    return Engine.load(demo_pair_build / "engines" / "target", threads=2, max_cached_tokens=4096)


@pytest.fixture(scope="module")
def draft(demo_pair_build: Path) -> Engine:
    return Engine.load(demo_pair_build / "engines" / "draft", threads=2, max_cached_tokens=4096)


def prompt_of(record: Mapping[str, int], seed: int, tokens: int) -> tuple[int, ...]:
    return tuple(int(i) for i in np.random.default_rng(seed).integers(3, record["vocab_size"], tokens))


def answer(engine: Engine, request: Request) -> Result:
    result = engine.generate([request])[0]
    assert isinstance(result, Result)
    return result


@pytest.mark.parametrize("seed", range(3))
def test_draft_target_loop_equals_target_only(target: Engine, draft: Engine, seed: int) -> None:
    prompt = prompt_of({"vocab_size": target.record.vocab_size}, seed, 40 + 100 * seed)
    expected = answer(target, Request(prompt, 48)).output_ids
    tokens = list(prompt)
    while (done := len(tokens) - len(prompt)) < 48:
        drafts = answer(draft, Request(tuple(tokens), 4)).output_ids
        tokens += answer(target, Request(tuple(tokens), 48 - done, draft_ids=drafts)).output_ids
    assert tuple(tokens[len(prompt) :]) == expected


def test_rows_of_a_prompt_do_not_depend_on_what_follows(target: Engine) -> None:
    """The first 150 rows of a prompt of 200 tokens are those of a prompt of 150, to the last bit."""
    prompt = prompt_of({"vocab_size": target.record.vocab_size}, 9, 200)
    whole = answer(target, Request(prompt, 1, want_context_logits=True)).context_logits
    assert whole is not None
    short = answer(target, Request(prompt[:150], 1, want_context_logits=True)).context_logits
    assert (whole[:150] == short).all()


def test_quantized_engine_stays_near_its_parent(target: Engine, demo_checkpoints: Mapping[str, Path]) -> None:
    prompt = prompt_of({"vocab_size": target.record.vocab_size}, 4, 64)
    parent = next(iter(ENGINE.parent_logits(demo_checkpoints["target"], [prompt])))
    found = answer(target, Request(prompt, 1, want_context_logits=True)).context_logits
    assert found is not None
    assert np.corrcoef(parent.ravel(), found.ravel())[0, 1] > 0.98
