"""Figures of a plan as people read them."""

import pytest

from builder.cli.figure_words import growth, people_rows
from builder.planner.difference import Change


@pytest.mark.parametrize(
    ("section", "change", "row"),
    [
        ("memory", Change("target.weights_bytes", 2e9, 1e9), ("weights of the target", "2.00 GB", "1.00 GB", "-50.0%")),
        ("memory", Change("draft.kv_cache", "bf16", "fp8"), ("cache type of the draft", "bf16", "fp8", "")),
        ("memory", Change("needed_tokens", 131584, 197376), ("tokens of cache that a full batch needs", "131,584", "197,376", "")),
        ("memory", Change("capacity[context_tokens 1024].sequences", 310, 400), ("1024 tokens each: sequences that fit", "310", "400", "")),
        ("speed", Change("rows[batch 8].cycle_s", 0.02, 0.03), ("batch 8: one round of drafts", "20.00 ms", "30.00 ms", "+50.0%")),
        ("speed", Change("rows[batch 8].speculative_tokens_per_s", 12.34, None), ("batch 8: tokens/s with drafts", "12.3", "none", "")),
        ("speed", Change("saturation.speedup", 1.5, 1.2), ("full batch: speed-up", "1.50x", "1.20x", "")),
        ("speed", Change("saturation.draft_tokens", 4, 3), ("full batch: best draft length", "4", "3", "")),
        (
            "cost",
            Change("points[load batch 1].plain_per_million", 2.0, 3.0),
            ("batch 1: price of a million tokens without drafts", "2.00", "3.00", "+50.0%"),
        ),
        ("cost", Change("chip_count", 2, 4), ("chips", "2", "4", "")),
    ],
    ids=lambda value: value.field if isinstance(value, Change) else "",
)
def test_figures_that_people_see(section: str, change: Change, row: tuple[str, ...]) -> None:
    assert people_rows(section, [change]) == [row]


@pytest.mark.parametrize(
    ("section", "change"),
    [
        ("memory", Change("load_orders", [[{"role": "target"}]], [[{"role": "draft"}]])),
        ("memory", Change("alternatives[changes {'draft.kv_cache': 'fp8'}]", None, {"changes": {}, "sequences": 4})),
        ("memory", Change("target.pool_tokens", 100_000, 100_400)),
        ("speed", Change("rows[batch 8].anchor", "a", "b")),
        ("speed", Change("disagreement", 1.2, 1.9)),
        ("cost", Change("paybacks[chips 1]", None, {"chips": 1})),
        ("none", Change("chips", 1, 2)),
    ],
    ids=lambda value: value.field if isinstance(value, Change) else "",
)
def test_what_is_left_to_json(section: str, change: Change) -> None:
    assert people_rows(section, [change]) == []


@pytest.mark.parametrize(("old", "new", "share"), [(4, 5, 0.25), (0, 5, None), (None, 5, None), (True, False, None), ("a", "b", None)])
def test_growth(old: object, new: object, share: float | None) -> None:
    assert growth(Change("a", old, new)) == share
