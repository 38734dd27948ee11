"""Step times from the user's own table, and between its entries by the shape of another provider."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from builder.planner.speed.constants import error_band
from builder.planner.speed.measured_file import StepTable
from builder.planner.speed.model import StepTime

Points = Mapping[float, Mapping[float, float]]
"""Factors by the logarithm of a count, then by tokens."""


@dataclass(frozen=True)
class MeasuredStepTime:
    """The shape's figure times measured over shape, interpolated between the nearest entries, by query tokens, then batch,
    then context; beyond them the nearest factor.

    At an entry the time is the measured one. Prompts without entries take the shape's time.
    """

    table: StepTable
    shape: StepTime

    @property
    def provider(self) -> str:
        return "measured"

    @property
    def error_band(self) -> float:
        return error_band("measured")

    def decode_s(self, batch: int, context_tokens: int, query_tokens: int = 1) -> float:
        """Seconds; see StepTime."""
        slices = {math.log(query): _factor(points, batch, context_tokens) for query, points in self._decode.items()}
        return self.shape.decode_s(batch, context_tokens, query_tokens) * _between(slices, math.log(query_tokens))

    def prefill_s(self, batch: int, tokens: int) -> float:
        """Seconds; see StepTime."""
        return self.shape.prefill_s(batch, tokens) * (_factor(self._prefill, batch, tokens) if self._prefill else 1.0)

    @cached_property
    def _decode(self) -> Mapping[int, Points]:
        """By query tokens, batch and context."""
        rows = self.table.decode
        return {
            query: _points(
                (r.batch, r.context_tokens, r.seconds / self.shape.decode_s(r.batch, r.context_tokens, query))
                for r in rows
                if r.query_tokens == query
            )
            for query in {r.query_tokens for r in rows}
        }

    @cached_property
    def _prefill(self) -> Points:
        return _points((r.batch, r.tokens, r.seconds / self.shape.prefill_s(r.batch, r.tokens)) for r in self.table.prefill)


@dataclass(frozen=True)
class CorrectedStepTime:
    """Another provider's times, corrected; whose they are and how far they may be off stays."""

    steps: StepTime

    @property
    def provider(self) -> str:
        return self.steps.provider

    @property
    def error_band(self) -> float:
        return self.steps.error_band


@dataclass(frozen=True)
class ScaledStepTime(CorrectedStepTime):
    """Times by one factor."""

    factor: float

    def decode_s(self, batch: int, context_tokens: int, query_tokens: int = 1) -> float:
        """Seconds; see StepTime."""
        return self.factor * self.steps.decode_s(batch, context_tokens, query_tokens)

    def prefill_s(self, batch: int, tokens: int) -> float:
        """Seconds; see StepTime."""
        return self.factor * self.steps.prefill_s(batch, tokens)


@dataclass(frozen=True)
class LowBatchStepTime(CorrectedStepTime):
    """Times that are too long at small batches: `factor` up to `full_to_batch`, none from `none_from_batch` on, between them by octaves."""

    factor: float
    full_to_batch: int
    none_from_batch: int

    def decode_s(self, batch: int, context_tokens: int, query_tokens: int = 1) -> float:
        """Seconds; see StepTime."""
        ends = {math.log(self.full_to_batch): self.factor, math.log(self.none_from_batch): 1.0}
        return self.steps.decode_s(batch, context_tokens, query_tokens) * _between(ends, math.log(batch))

    def prefill_s(self, batch: int, tokens: int) -> float:
        """Seconds; see StepTime."""
        return self.steps.prefill_s(batch, tokens)


def _points(rows: Iterable[tuple[float, float, float]]) -> Points:
    found: dict[float, dict[float, list[float]]] = {}
    for first, second, factor in rows:
        found.setdefault(math.log(first), {}).setdefault(second, []).append(factor)
    return {first: {second: sum(fs) / len(fs) for second, fs in row.items()} for first, row in found.items()}


def _factor(points: Points, first: float, second: float) -> float:
    return _between({x: _between(row, second) for x, row in points.items()}, math.log(first))


def _between(points: Mapping[float, float], x: float) -> float:
    """Linear between neighbours, the nearest value outside."""
    known = sorted(points)
    below = [p for p in known if p <= x]
    above = [p for p in known if p >= x]
    if not below or not above or below[-1] == above[0]:
        return points[(below[-1:] + above[:1])[0]]
    left, right = below[-1], above[0]
    return points[left] + (points[right] - points[left]) * (x - left) / (right - left)
