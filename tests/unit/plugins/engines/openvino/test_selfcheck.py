"""The build's comparison of an engine with its model."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from builder.api import StageError
from plugins.engines.openvino.export import load
from plugins.engines.openvino.record import EngineRecord
from plugins.engines.openvino.runtime.runner import Feed, Runner
from plugins.engines.openvino.selfcheck import compare, selfcheck
from plugins.engines.openvino.survey import PROBE_TOKENS, Probe, probe

BuildTiny = Callable[..., Path]
VOCAB = 128
IDS = tuple(range(3, 3 + PROBE_TOKENS))
LOGITS = np.random.default_rng(1).normal(size=(VOCAB, VOCAB)).astype(np.float32) * 3


class Bigrams:
    """A model whose logits depend on the last token, and, if told so, on the length of the pass."""

    def __init__(self, drift: float = 0.0) -> None:
        self.drift = drift

    def forward(self, feeds: Sequence[Feed]) -> NDArray[np.float32]:
        tokens = list(feeds[0].tokens)
        return LOGITS[tokens] + np.float32(self.drift * len(tokens))


@pytest.fixture(scope="module")
def record(build_tiny: BuildTiny) -> EngineRecord:
    return EngineRecord.read(build_tiny())


@pytest.mark.parametrize("changes", [{}, {"weights": "int8"}, {"weights": "int4"}, {"kv_cache": "fp32"}, {"kv_cache": "int4"}], ids=str)
def test_engine_is_near_its_model(build_tiny: BuildTiny, tiny_checkpoint: Path, changes: dict[str, object]) -> None:
    folder = build_tiny(**changes)
    record, expected = EngineRecord.read(folder), probe(load(tiny_checkpoint), VOCAB)
    assert selfcheck(folder, record, expected) == record
    divergence = compare(Runner(folder, record, 3, 1), record, expected)
    assert (divergence < 1e-6) == (changes == {"kv_cache": "fp32"})


def test_engine_that_fixed_shapes_round_otherwise_does_without(
    build_tiny: BuildTiny, tiny_checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rounding that comes and goes with the models of known shape; what stays is refused."""
    folder, expected = build_tiny(), probe(load(tiny_checkpoint), VOCAB)
    record = EngineRecord.read(folder)

    def rounds(shapes: set[bool]) -> None:
        def compared(runner: object, record: EngineRecord, *_: object) -> float:
            if record.fixed_shapes in shapes:
                raise StageError("ENGINE-NOT-EXACT", "differs")
            return 0.0

        monkeypatch.setattr("plugins.engines.openvino.selfcheck.compare", compared)

    rounds({True})
    assert selfcheck(folder, record, expected) == replace(record, fixed_shapes=False)
    rounds({True, False})
    with pytest.raises(StageError, match="differs"):
        selfcheck(folder, record, expected)


def test_engine_of_another_model_is_refused(build_tiny: BuildTiny, tiny_checkpoint: Path) -> None:
    folder, expected = build_tiny(weights="int4"), probe(load(tiny_checkpoint), VOCAB)
    with pytest.raises(StageError, match="does not compute what its model does") as failure:
        selfcheck(folder, EngineRecord.read(folder), Probe(expected.ids, expected.logits[::-1]))
    assert failure.value.finding.code == "ENGINE-DIFFERS"


def test_equal_logits_diverge_by_nothing(record: EngineRecord) -> None:
    assert compare(Bigrams(), record, Probe(IDS, LOGITS[list(IDS)])) == pytest.approx(0, abs=1e-9)


def test_logits_that_are_no_numbers_are_refused(record: EngineRecord) -> None:
    with pytest.raises(StageError) as failure:
        compare(Bigrams(), record, Probe(IDS, np.full((PROBE_TOKENS, VOCAB), np.nan, dtype=np.float32)))
    assert failure.value.finding.code == "ENGINE-DIFFERS"


def test_logits_that_depend_on_the_grouping_are_refused_where_exactness_is_promised(record: EngineRecord) -> None:
    expected = Probe(IDS, LOGITS[list(IDS)])
    with pytest.raises(StageError) as failure:
        compare(Bigrams(drift=1e-3), record, expected)
    assert failure.value.finding.code == "ENGINE-NOT-EXACT"
    assert compare(Bigrams(drift=1e-3), replace(record, exact=False), expected) < 0.01


def test_short_head_is_compared_on_its_own_ids(record: EngineRecord) -> None:
    head_ids = list(range(0, VOCAB, 2))
    assert compare(Bigrams(), record, Probe(IDS, LOGITS[list(IDS)][:, head_ids]), head_ids) == pytest.approx(0, abs=1e-9)
