"""Two pools on one device: tokens, fractions, orders of loading."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.planner.memory.pools import Occupant, balanced_tokens, load_orders, needed_fraction, reserve_bytes

KIB, GIB = 2**10, 2**30

kv_bytes = st.integers(1 * KIB, 1024 * KIB)
blocks = st.sampled_from([16, 32, 64, 128])


def test_the_worked_example_of_one_h200() -> None:
    """70B and 1B in FP8 with FP8 caches, 66.4 GiB free: 376.1k tokens in both pools, 0.864 and then 0.633 of the rest."""
    free = int(66.4 * GIB)
    tokens = balanced_tokens(free - reserve_bytes(int(139.8 * GIB), free), [160 * KIB, 16 * KIB], 32)
    assert tokens == pytest.approx(376_100, rel=1e-3)
    target, draft = Occupant("target", 0, tokens * 160 * KIB), Occupant("draft", 0, tokens * 16 * KIB)
    first, second = load_orders(free, [target, draft])[0]
    assert (round(first.fraction, 3), round(second.fraction, 3)) == (0.864, 0.633)


def test_the_documented_halves_hold_little_more_than_half_as_many() -> None:
    """Both fractions at 0.5: 217.7k tokens of the target are usable, and 1088.6k of the draft wait for nothing."""
    free = int(66.4 * GIB)
    target, draft = free * 0.5 / (160 * KIB), free * 0.5 * 0.5 / (16 * KIB)
    assert (target, draft) == (pytest.approx(217_700, rel=1e-3), pytest.approx(1_088_600, rel=1e-3))
    assert balanced_tokens(free - reserve_bytes(free, free), [160 * KIB, 16 * KIB], 32) / min(target, draft) > 1.6


@pytest.mark.parametrize(
    ("kv", "tokens"), [([160 * KIB, 16 * KIB], 1_000), ([160 * KIB], 1_000), ([16 * KIB, 160 * KIB], 1_000), ([1, 1], 2**40 // 2)]
)
def test_n_is_budget_over_the_sum_of_bytes_per_token(kv: list[int], tokens: int) -> None:
    assert balanced_tokens(sum(kv) * tokens, kv, 1) == tokens
    assert balanced_tokens(sum(kv) * tokens - 1, kv, 1) == tokens - 1


@given(budget=st.integers(0, 200 * GIB), kv=st.lists(kv_bytes, min_size=1, max_size=2), block=blocks)
def test_pools_are_whole_blocks_within_one_block_of_the_formula(budget: int, kv: list[int], block: int) -> None:
    tokens = balanced_tokens(budget, kv, block)
    assert tokens % block == 0
    assert 0 <= budget / sum(kv) - tokens < block


@given(free=st.integers(8 * GIB, 180 * GIB), kv=st.lists(kv_bytes, min_size=2, max_size=2), block=blocks)
def test_less_than_one_percent_of_free_memory_is_stranded(free: int, kv: list[int], block: int) -> None:
    budget = free - reserve_bytes(free, free)
    stranded = budget - balanced_tokens(budget, kv, block) * sum(kv)
    assert 0 <= stranded < max(free / 100, sum(kv) * block)
    if sum(kv) * block <= free / 100:
        assert stranded < free / 100


def test_no_budget_makes_no_pool() -> None:
    assert balanced_tokens(-GIB, [KIB], 32) == 0


def test_the_reserve_is_a_twentieth_of_what_is_free_and_at_least_a_hundredth_of_the_device() -> None:
    assert reserve_bytes(80 * GIB, 40 * GIB) == 2 * GIB
    assert reserve_bytes(80 * GIB, 4 * GIB) == round(0.8 * GIB)
    assert reserve_bytes(80 * GIB, -4 * GIB) == round(0.8 * GIB)


@given(
    device=st.integers(24 * GIB, 180 * GIB),
    shares=st.tuples(st.floats(0.05, 0.6), st.floats(0.01, 0.3)),
    kv=st.tuples(kv_bytes, kv_bytes),
    block=blocks,
)
def test_with_caps_the_order_of_loading_does_not_matter(device: int, shares: tuple[float, float], kv: tuple[int, int], block: int) -> None:
    """Each pool is the smaller of its cap and the fraction of what is free: with the planned fractions that is the cap, in both orders."""
    own = [int(device * share) for share in shares]
    free = device - sum(own)
    tokens = balanced_tokens(free - reserve_bytes(device, free), kv, block)
    engines = [Occupant("target", own[0], tokens * kv[0]), Occupant("draft", own[1], tokens * kv[1])]
    orders = load_orders(device, engines)
    fractions = {engine.role: needed_fraction(orders, engine.role) for engine in engines}
    assert all(0 <= fraction < 1 for fraction in fractions.values())
    for order in (engines, engines[::-1]):
        left = device
        for engine in order:
            left -= engine.own_bytes
            assert min(engine.pool_bytes, round(fractions[engine.role] * left)) == pytest.approx(engine.pool_bytes, abs=2)
            left -= engine.pool_bytes
        assert left >= 0
