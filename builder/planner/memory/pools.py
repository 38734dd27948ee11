"""Two paged pools on one device: how many tokens both can hold, and what each engine must be told so that it takes its share.

A pool is the smaller of a token cap and a fraction of the memory that is free once the engine itself is loaded. A cap says the same
whichever engine loads first; a fraction does not, so it is computed for both orders and the greater one is rendered.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

POOL_SHARE = 0.95
"""Of the free memory, for pools; the rest is for what no formula foresees. The highest fraction that published runs use."""
TOGETHER = "pair"
"""Role of both engines where one process makes both pools at once."""
DEVICE_MARGIN = 0.01
"""Of a chip's memory, which a process does not see whole."""


@dataclass(frozen=True)
class Occupant:
    """One engine on a device, in bytes: what is there before its pool is made, and its pool."""

    role: str
    own_bytes: int
    pool_bytes: int


@dataclass(frozen=True)
class LoadStep:
    """One engine's turn in an order of loading: free memory when its pool is made, and the share of it that the pool takes.

    `default_left_bytes` is what would be left for the engine after it had every pool so far taken the lane's default fraction;
    None where the lane has none.
    """

    role: str
    free_bytes: int
    fraction: float
    default_left_bytes: int | None = None


def reserve_bytes(device_bytes: int, free_bytes: int) -> int:
    """Kept free of pools: 5 % of what weights, activations and runtime leave, and no less than 1 % of the device."""
    return max(round(max(free_bytes, 0) * (1 - POOL_SHARE)), round(device_bytes * DEVICE_MARGIN))


def balanced_tokens(budget_bytes: int, kv_bytes_per_token: Sequence[int], tokens_per_block: int) -> int:
    """Tokens that every pool on the device can hold: n = budget / (sum of bytes per token), in whole blocks."""
    return max(0, budget_bytes) // (sum(kv_bytes_per_token) * tokens_per_block) * tokens_per_block


def load_orders(
    device_bytes: int, occupants: Sequence[Occupant], default_fraction: float | None = None
) -> tuple[tuple[LoadStep, ...], ...]:
    """Every order in which the engines can load, with the arithmetic of fractions: f = pool / free when the pool is made."""
    return tuple(_load(device_bytes, order, default_fraction) for order in permutations(occupants))


def needed_fraction(orders: Sequence[Sequence[LoadStep]], role: str) -> float:
    """The smallest fraction that lets `role` reach its cap whichever engine loads first."""
    return max(step.fraction for order in orders for step in order if step.role in (role, TOGETHER))


def _load(device_bytes: int, order: Sequence[Occupant], default_fraction: float | None) -> tuple[LoadStep, ...]:
    steps: list[LoadStep] = []
    free = default_free = device_bytes
    for occupant in order:
        free -= occupant.own_bytes
        default_free -= occupant.own_bytes
        default_free -= int(max(0, default_free) * (default_fraction or 0))
        fraction = occupant.pool_bytes / free if free > 0 else 0.0
        steps.append(LoadStep(occupant.role, free, fraction, default_free if default_fraction is not None else None))
        free -= occupant.pool_bytes
    return tuple(steps)
