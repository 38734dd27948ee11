"""Which batches are predicted, at which draft length, and from which batch on drafting should stop."""

from collections.abc import Sequence
from dataclasses import dataclass

from builder.planner.speed.acceptance import expected_length
from builder.planner.speed.cycle import Cycle
from builder.planner.speed.model import BatchRow

LARGEST_BATCH_TRIED = 1024
LONGEST_DRAFT = 16


@dataclass(frozen=True)
class Drafting:
    """How drafts are made: lengths that the deployment may choose from (none where it drafts nothing), their acceptance and its source.

    An `adaptive` deployment chooses, and stops drafting where it loses. `doubts` are of the runs that the overheads were learnt from.
    """

    cycle: Cycle
    acceptance: float
    choices: Sequence[int]
    adaptive: bool = True
    source: str = ""
    calibrated: bool = False
    doubts: tuple[str, ...] = ()

    def row(self, batch: int) -> BatchRow:
        """Prediction at one batch and its best draft length."""
        cycle = self.cycle
        plain = cycle.plain_tokens_per_s(batch)
        target_s = cycle.target_s(batch)
        if not self.choices:
            return BatchRow(batch, target_s, target_s, 0.0, target_s, 1.0, plain, plain, 0, None, adaptive=False)
        k = cycle.best_draft_tokens(batch, self.acceptance, self.choices)
        rate = cycle.speculative_tokens_per_s(batch, k, self.acceptance)
        verify_s, draft_s, cycle_s = cycle.verify_s(batch, k), cycle.draft_s(batch), cycle.cycle_s(batch, k)
        length, needed = expected_length(self.acceptance, k), cycle.break_even_acceptance(batch, k)
        return BatchRow(batch, target_s, verify_s, draft_s, cycle_s, length, plain, rate, k, needed, adaptive=self.adaptive)

    def best_of_all(self) -> tuple[int, float]:
        """The best draft length at batch 1, whatever the limit, and its speed-up."""
        best = self.cycle.best_draft_tokens(1, self.acceptance, range(1, LONGEST_DRAFT + 1))
        return best, self.cycle.speedup(1, best, self.acceptance)

    def wins(self, batch: int) -> bool:
        """Whether drafting is faster than not drafting."""
        k = self.cycle.best_draft_tokens(batch, self.acceptance, self.choices)
        return self.cycle.speedup(batch, k, self.acceptance) > 1

    def stop_batch(self) -> int | None:
        """The largest batch up to which drafting wins; 0 for none, None where it wins at every batch tried.

        The first batch of the grid that loses decides: beyond a full pass both sides are split into more passes, and a batch there may win
        again, which is no reason to draft at all batches up to it. Between it and the one before, the border is found by halving.
        """
        grid = _grid(LARGEST_BATCH_TRIED)
        losing = next((index for index, batch in enumerate(grid) if not self.wins(batch)), None)
        if losing is None:
            return None
        if losing == 0:
            return 0
        low, high = grid[losing - 1], grid[losing]
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.wins(middle) else (low, middle)
        return low


def powers_of_two(limit: int) -> list[int]:
    """1, 2, 4, ... up to `limit`."""
    return [1 << i for i in range(limit.bit_length())]


def _grid(limit: int) -> list[int]:
    """Powers of two, and the middles between them."""
    powers = powers_of_two(limit)
    return sorted({*powers, *(power * 3 // 2 for power in powers[1:-1])})
