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

    `doubts` are of the runs that the overheads were learnt from.
    """

    cycle: Cycle
    acceptance: float
    choices: Sequence[int]
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

    @property
    def adaptive(self) -> bool:
        """Whether there is a choice; a deployment that has one also stops drafting where it loses."""
        return isinstance(self.choices, range)

    def best_of_all(self) -> tuple[int, float]:
        """The best draft length at batch 1, whatever the limit, and its speed-up."""
        best = self.cycle.best_draft_tokens(1, self.acceptance, range(1, LONGEST_DRAFT + 1))
        return best, self.cycle.speedup(1, best, self.acceptance)

    def wins(self, batch: int) -> bool:
        """Whether drafting is faster than not drafting."""
        k = self.cycle.best_draft_tokens(batch, self.acceptance, self.choices)
        return self.cycle.speedup(batch, k, self.acceptance) > 1

    def stop_batch(self) -> int | None:
        """The largest batch at which drafting wins; 0 for none, None where it wins at every batch tried.

        Between two batches of the grid, of which the first wins and all later ones lose, the border is found by halving.
        """
        grid = _grid(LARGEST_BATCH_TRIED)
        winning = [batch for batch in grid if self.wins(batch)]
        if not winning:
            return 0
        if winning[-1] == grid[-1]:
            return None
        low, high = winning[-1], grid[grid.index(winning[-1]) + 1]
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
