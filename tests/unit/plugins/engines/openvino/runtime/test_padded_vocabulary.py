"""Target and draft whose vocabularies differ in width by padding, on the real OpenVINO: no id leaves the vocabulary of either."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from builder.api import EngineRequest
from plugins.engines.openvino import ENGINE
from plugins.engines.openvino.runtime.llm import Engine
from plugins.engines.openvino.runtime.request import Request, RequestError, Result, Sampling, Speculation
from plugins.engines.openvino.runtime.runner import Feed
from triton_repo.tensorrt_llm_bls.loop import DraftTargetLoop, LoopSettings, TokenArray

USED = 120
PROMPT = tuple(int(i) for i in np.random.default_rng(5).integers(3, USED, 40))
WIDTHS = ((120, 136), (136, 120), (128, 128))
DRAFTS = Speculation(4, lookup=False, adaptive=False)


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory, make_request: Callable[..., EngineRequest]) -> Callable[[str, int], Path]:
    """Builds an engine of this width; its padding rows are the likeliest of all, which no trained model's are."""

    def build(role: str, width: int) -> Path:
        import torch
        from transformers import LlamaConfig, LlamaForCausalLM

        torch.manual_seed(width)
        sizes = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2}
        config = LlamaConfig(
            vocab_size=width, max_position_embeddings=512, initializer_range=0.3, tie_word_embeddings=False, eos_token_id=2, **sizes
        )
        model = LlamaForCausalLM(config)
        if role == "draft":
            model.lm_head.weight.data[USED:] *= 10.0
        else:
            model.lm_head.weight.data[USED:] = 0.0
        checkpoint, engine = tmp_path_factory.mktemp("checkpoint"), tmp_path_factory.mktemp("engine")
        model.save_pretrained(checkpoint)
        (checkpoint / "tokenizer.json").write_text("{}")
        ENGINE.build(make_request(checkpoint, role=role, max_draft_tokens=4), engine, lambda what, share: None)
        return engine

    return build


def answer(engine: Engine, request: Request) -> Result:
    result = engine.generate([request])[0]
    assert isinstance(result, Result), result
    return result


def fed_ids(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """Fills with the ids that the target is fed, drafts included."""
    ids: set[int] = set()
    forward = engine._runner.forward

    def watch(feeds: Sequence[Feed]) -> object:
        ids.update(token for feed in feeds for token in feed.tokens)
        return forward(feeds)

    monkeypatch.setattr(engine._runner, "forward", watch)
    return ids


@pytest.mark.parametrize(("target", "draft"), WIDTHS)
def test_pairs_of_any_width_answer_as_the_target_alone(
    build: Callable[[str, int], Path], monkeypatch: pytest.MonkeyPatch, target: int, draft: int
) -> None:
    target_dir = build("target", target)
    alone, pair = Engine.load(target_dir, threads=1), Engine.load(target_dir, build("draft", draft), threads=1)
    fed = fed_ids(pair, monkeypatch)
    for sampling in (Sampling(top_k=1), Sampling(temperature=1.5, seed=7)):
        plain = answer(alone, Request(PROMPT, 40, sampling=sampling))
        drafted = answer(pair, Request(PROMPT, 40, sampling=sampling, speculation=DRAFTS))
        assert drafted.output_ids == plain.output_ids
        assert drafted.drafted_tokens > 0
    sampled = answer(pair, Request(PROMPT, 60, sampling=Sampling(temperature=2.0), speculation=DRAFTS))
    assert sampled.drafted_tokens > 0
    assert max(fed) < target


def test_the_draft_falls_silent_behind_an_id_that_it_does_not_have(build: Callable[[str, int], Path]) -> None:
    pair = Engine.load(build("target", 136), build("draft", 120), threads=1)
    assert answer(pair, Request((*PROMPT, 130), 40, speculation=DRAFTS)).drafted_tokens == 0
    assert answer(pair, Request((*PROMPT, 119), 40, speculation=DRAFTS)).drafted_tokens > 0
    banned = Request(PROMPT, 40, bad_words=((135,), (7, 130)), stop_words=((134,),), end_ids=(133,), min_tokens=5, speculation=DRAFTS)
    assert answer(pair, banned).drafted_tokens > 0


class EngineModel:
    """An engine as the orchestrator's loop sees it; a refused request fails the test."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.drafted = 0

    def generate(
        self, tokens: TokenArray, new_tokens: int, *, draft: TokenArray | None = None, min_tokens: int = 0, seed: int | None = None
    ) -> TokenArray:
        drafts = () if draft is None else tuple(draft.tolist())
        self.drafted += len(drafts)
        request = Request(tuple(tokens.tolist()), new_tokens, draft_ids=drafts, end_ids=(2,), min_tokens=min_tokens)
        return np.array(answer(self.engine, request).output_ids, dtype=np.int32)


@pytest.mark.parametrize(("target", "draft"), WIDTHS)
def test_the_orchestrator_over_two_engines(build: Callable[[str, int], Path], target: int, draft: int) -> None:
    """The draft engine proposes padding ids whenever it can; the target engine would refuse them."""
    engines = [Engine.load(build(role, width), threads=1) for role, width in (("target", target), ("draft", draft))]
    asked, helper = map(EngineModel, engines)
    plain = answer(engines[0], Request(PROMPT, 40, end_ids=(2,))).output_ids
    shared = min(target, draft)
    settings = LoopSettings(40, end_ids=frozenset({2}), num_draft_tokens=4, adaptive=False, shared_vocab_size=shared)
    assert tuple(token for new in DraftTargetLoop(PROMPT, settings, asked, helper) for token in new.tolist()) == plain
    assert asked.drafted > 0 or draft > target


def test_an_engine_refuses_ids_that_it_does_not_have(build: Callable[[str, int], Path]) -> None:
    """What the orchestrator would meet if it did not cut drafts."""
    engine = Engine.load(build("target", 120), threads=1)
    refused, fine = engine.generate([Request(PROMPT, 5, draft_ids=(3, 125)), Request(PROMPT, 5, draft_ids=(3, 119))])
    assert isinstance(refused, RequestError)
    assert (refused.field, refused.found, refused.needed) == ("draft_input_ids", "125", "0 to 119")
    assert isinstance(fine, Result)
