"""The engine in process, as the core asks it: modes, chat template, refusals."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from builder.api import EngineCounters, EngineOptions, RefusedError, StageError
from plugins.engines.openvino.runtime.llm import Engine
from plugins.engines.openvino.runtime.request import NO_SPECULATION, Request, RequestError, Result, Speculation
from plugins.engines.openvino.session import OpenVinoSession


class FakeEngine:
    """Answers with the prompt; a prompt that starts with 99 is refused."""

    record = SimpleNamespace(end_ids=(2,), max_draft_tokens=5)

    def __init__(self) -> None:
        self.requests: list[Request] = []

    def generate(self, requests: list[Request]) -> list[Result | RequestError]:
        self.requests = requests
        return [_refusal() if r.input_ids[0] == 99 else _result(r) for r in requests]

    def counters(self) -> Any:
        return SimpleNamespace(passes=3, infer_s=0.5, step_s=0.75)


def _result(request: Request) -> Result:
    counted = {"passes": 7, "drafted_tokens": 6, "accepted_tokens": 5, "lookup_drafted_tokens": 4, "lookup_accepted_tokens": 3}
    return Result(request.input_ids, "length", **counted)  # type: ignore[arg-type]


def _refusal() -> RequestError:
    return RequestError("REQUEST-TOKEN", "input_ids", "99", "below 64")


class FakeTokenizer:
    def __init__(self, template: str | None) -> None:
        self.chat_template = template

    def encode(self, text: str, *, add_special_tokens: bool = True) -> list[int]:
        return ([0] if add_special_tokens else []) + [ord(c) for c in text]

    def apply_chat_template(self, messages: list[dict[str, str]], *, tokenize: bool, add_generation_prompt: bool) -> str:
        assert not tokenize
        assert add_generation_prompt
        return f"<{messages[0]['role'][0]}:{messages[0]['content']}>"


def session(*, has_draft: bool = True, template: str | None = "t") -> tuple[OpenVinoSession, FakeEngine]:
    engine = FakeEngine()
    return OpenVinoSession(engine, FakeTokenizer(template), has_draft=has_draft, max_draft_tokens=4), engine  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("mode", "speculation"),
    [
        ("plain", NO_SPECULATION),
        ("lookup", Speculation(4, draft=False, lookup=True)),
        ("draft", Speculation(4, draft=True, lookup=False)),
        ("draft_lookup", Speculation(4, draft=True, lookup=True)),
    ],
)
def test_modes_are_the_engines_speculation(mode: Any, speculation: Speculation) -> None:
    opened, engine = session()
    answers = opened.generate([[1, 3], [4]], new_tokens=9, mode=mode)
    assert engine.requests == [Request(ids, 9, end_ids=(2,), speculation=speculation) for ids in ((1, 3), (4,))]
    assert [a.output_ids for a in answers] == [(1, 3), (4,)]
    first = answers[0]
    assert (first.rounds, first.drafted_tokens, first.accepted_tokens) == (7, 6, 5)
    assert (first.lookup_drafted_tokens, first.lookup_accepted_tokens) == (4, 3)


def test_draft_modes_need_a_draft() -> None:
    opened, _ = session(has_draft=False)
    with pytest.raises(RefusedError, match="draft_lookup needs a draft engine"):
        opened.generate([[1]], new_tokens=1, mode="draft_lookup")
    assert len(opened.generate([[1]], new_tokens=1, mode="lookup")) == 1


def test_refused_request_is_a_stage_error_with_its_numbers() -> None:
    opened, _ = session()
    with pytest.raises(StageError, match="input_ids is 99, needed: below 64") as caught:
        opened.generate([[1], [99]], new_tokens=1, mode="plain")
    assert caught.value.finding.field == "input_ids"


def test_texts_go_through_the_chat_template_where_there_is_one() -> None:
    assert session()[0].encode(["a"]) == [[ord(c) for c in "<u:a>"]]
    assert session(template=None)[0].encode(["a", "b"]) == [[0, 97], [0, 98]]


def test_counters_are_the_engines() -> None:
    assert session()[0].counters() == EngineCounters(3, 0.5, 0.75)


def test_open_reads_tokenizer_and_limits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: dict[str, Any] = {}

    def load(*folders: Path, **options: Any) -> FakeEngine:
        seen.update(folders=folders, **options)
        return FakeEngine()

    monkeypatch.setattr(Engine, "load", load)
    tokenizers = SimpleNamespace(AutoTokenizer=SimpleNamespace(from_pretrained=lambda folder: FakeTokenizer(str(folder))))
    monkeypatch.setitem(sys.modules, "transformers", tokenizers)
    opened = OpenVinoSession.open(tmp_path, None, EngineOptions(threads=3, reuse=False, tuned_for="long_context"))
    assert seen == {"folders": (tmp_path, None), "max_cached_tokens": None, "threads": 3, "reuse": False, "tuned_for": "long_context"}
    assert opened.end_ids == (2,)
    opened.generate([[1]], new_tokens=2, mode="lookup")
