"""Samples made by hand, and peers that are small Python scripts."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from builder.api import EngineAnswer, EngineCounters
from builder.bench.measure import Answers, EngineWork, Sample
from builder.bench.order import BenchPrompt, Call
from builder.bench.peers import PeerPlace
from builder.bench.systems import System
from builder.gates.prompts import Prompt

MakePeer = Callable[..., PeerPlace]
ROOT = Path(__file__).parents[4]


def bench_prompt(name: str, kind: str = "chat", ids: Sequence[int] = (1, 2, 3)) -> BenchPrompt:
    return BenchPrompt(Prompt(name, kind, f"text of {name}"), tuple(ids))


def system(key: str) -> System:
    party, mode = key.split("/")
    return System(party, mode, key)


def sample(
    key: str,
    prompts: Sequence[BenchPrompt],
    seconds: float,
    tokens: int = 10,
    repeat: int = 0,
    work: EngineWork | None = None,
    first: int = 0,
) -> Sample:
    """Answers of `tokens` tokens each, counting up from `first`."""
    outputs = tuple(tuple(range(first, first + tokens)) for _ in prompts)
    return Sample(Call(system(key), tuple(prompts), repeat), Answers(outputs, seconds, work))


class FakeSession:
    """An engine that answers each prompt with the numbers after its last token, and counts a pass of 2 ms for each, 0.5 ms of it Python."""

    end_ids = (2,)

    def __init__(self) -> None:
        self.calls: list[tuple[str, int]] = []
        self.passes = 0
        self.closed = False

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        return [[len(word) for word in text.split()] for text in texts]

    def generate(self, prompts: Sequence[Sequence[int]], *, new_tokens: int, mode: str) -> list[EngineAnswer]:
        self.calls.append((mode, len(prompts)))
        self.passes += new_tokens
        return [EngineAnswer(tuple(range(ids[-1], ids[-1] + new_tokens)), new_tokens, 4, 3, 2, 1) for ids in prompts]

    def counters(self) -> EngineCounters:
        return EngineCounters(self.passes, 0.0015 * self.passes, 0.002 * self.passes)

    def close(self) -> None:
        self.closed = True


GOOD_PEER = """
from protocol import serve
class Peer:
    def load(self, settings):
        print("a library that prints")
        return {"version": "fake 1", "end_ids": str(settings["end_ids"])}
    def generate(self, prompts, new_tokens, mode):
        if mode == "bad":
            raise ValueError("mode bad")
        return [list(range(ids[-1], ids[-1] + new_tokens)) for ids in prompts]
serve(Peer())
"""


@pytest.fixture
def make_peer(tmp_path: Path) -> MakePeer:
    """Writes a peer folder that runs `script` in this Python, with models made from `source`."""

    def make(name: str = "fake", script: str = GOOD_PEER, source: str = "{}") -> PeerPlace:
        place = PeerPlace(name, tmp_path / "peers" / name, tmp_path / "models" / name)
        place.python.parent.mkdir(parents=True)
        place.python.symlink_to(sys.executable)
        place.models.mkdir(parents=True)
        (place.folder / "peer.py").write_text(script)
        (place.models / "source.json").write_text(source)
        protocol = place.folder.parent / "protocol.py"
        if not protocol.exists():
            protocol.symlink_to(ROOT / "benchmarks" / "peers" / "protocol.py")
        return place

    return make


@pytest.fixture
def made() -> SimpleNamespace:
    """The makers of this file."""
    return SimpleNamespace(prompt=bench_prompt, system=system, sample=sample, session=FakeSession)
