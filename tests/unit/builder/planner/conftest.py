"""Pairs and predicted speeds that tests of the planner's later parts share."""

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from builder.planner.speed import BatchRow, SpeedPlan
from builder.planner.speed.constants import Overheads
from builder.spec import Pair, load_pair

MakePair = Callable[..., Pair]


def speed_by_law(rate: Callable[[int], float], limit: int) -> SpeedPlan:
    """A speed plan at powers of two up to `limit` whose rates, with and without drafts, are `rate` of the batch; any batch can be asked."""
    plan = speed(*((batch, rate(batch), rate(batch)) for batch in (*(1 << i for i in range(limit.bit_length())), limit)))
    return dataclasses.replace(plan, row_at=lambda batch: speed((batch, rate(batch), rate(batch))).saturation)


def speed(*rows: tuple[int, float, float]) -> SpeedPlan:
    """A speed plan of the roofline from batch, tokens/s of the target alone and tokens/s with the draft; the last is saturation."""
    batches = tuple(BatchRow(batch, 0, 0, 0, 0, 1, plain, drafted, 5, None) for batch, plain, drafted in rows)
    return SpeedPlan("roofline", 0.3, 0.3, 0.7, "assumed", Overheads(0, 0, "none"), batches, batches[-1], None, (), 100)


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
