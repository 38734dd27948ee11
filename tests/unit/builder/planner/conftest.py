"""Pairs and predicted speeds that tests of the planner's later parts share."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from builder.spec import Pair, load_pair

MakePair = Callable[..., Pair]


@dataclass(frozen=True)
class FakeRow:
    """Tokens a second of the whole deployment at one batch."""

    batch: int
    plain_tokens_per_s: float
    speculative_tokens_per_s: float


@dataclass(frozen=True)
class FakeSpeed:
    """A speed plan from given rows; the last is saturation."""

    rows: tuple[FakeRow, ...]
    provider: str = "roofline"
    error_band: float = 0.3

    @property
    def saturation(self) -> FakeRow:
        return self.rows[-1]


def speed(*rows: tuple[int, float, float]) -> FakeSpeed:
    """Rows of batch, tokens/s of the target alone, tokens/s with the draft."""
    return FakeSpeed(tuple(FakeRow(*row) for row in rows))


@pytest.fixture
def make_pair(tmp_path: Path) -> MakePair:
    """A 70B pair on one H200; keyword arguments are sections of the pair file that are laid over it."""

    def make(**sections: Mapping[str, Any]) -> Pair:
        data: dict[str, Any] = {
            "name": "pair",
            "engine": {"kind": "tensorrt_llm", "release": "1.2.0"},
            "hardware": {"chip": "h200_sxm", "count": 1},
            "target": {"checkpoint": "owner/target", "weights": "fp8", "kv_cache": "fp8"},
            "draft": {"checkpoint": "owner/draft", "weights": "fp8"},
        }
        for name, values in sections.items():
            data[name] = {**data.get(name, {}), **values}
        file = tmp_path / "pair.yaml"
        file.write_text(yaml.safe_dump(data))
        return load_pair(file)

    return make
