"""Bands of unverified figures, and acceptance that was published for a pair."""

import pytest

from builder.planner.speed import ModelOnChips
from builder.planner.speed.trust import published_acceptance, unverified, widened_band
from tests.unit.builder.planner.speed.models import on_chips

LLAMA, SMALL = "meta-llama/Llama-3.3-70B-Instruct", "meta-llama/Llama-3.2-1B-Instruct"
NVFP4_DISAGREEMENT = 15.788 / 7.245
"""Milliseconds of a decode step of the 70B on a B200 at batch 1, by aiconfigurator and by the roofline."""


def nvfp4() -> ModelOnChips:
    return on_chips(LLAMA, "b200_sxm", weights="nvfp4")


@pytest.mark.parametrize("provider", ["aiconfigurator", "roofline"])
@pytest.mark.parametrize(
    ("chip", "weights", "ways"), [("b200_sxm", "nvfp4", 1), ("l40s", "fp8", 4), ("a100_sxm", "none", 1)], ids=["nvfp4", "l40s", "a100"]
)
def test_both_providers_say_where_they_were_not_checked(provider: str, chip: str, weights: str, ways: int) -> None:
    assert unverified(provider, on_chips(LLAMA, chip, weights=weights, tensor_parallel=ways))


def test_what_was_checked_or_measured_is_not_doubted() -> None:
    assert unverified("aiconfigurator", on_chips(LLAMA, "h200_sxm")) == ()
    assert unverified("roofline", on_chips(LLAMA, "h200_sxm")) == ()
    assert unverified("measured", nvfp4()) == ()


def test_bands_of_both_providers_hold_each_others_rate() -> None:
    slow_rate, fast_rate = 1.0, NVFP4_DISAGREEMENT
    assert slow_rate * (1 + widened_band(0.15, "aiconfigurator", nvfp4(), NVFP4_DISAGREEMENT)) >= fast_rate
    assert fast_rate * (1 - widened_band(0.40, "roofline", nvfp4(), None)) <= slow_rate


def test_band_is_as_wide_as_the_providers_are_apart() -> None:
    assert widened_band(0.15, "aiconfigurator", nvfp4(), 3.0) == pytest.approx(2.0)
    assert widened_band(0.15, "aiconfigurator", on_chips(LLAMA, "h200_sxm"), 1.3) == 0.15


def test_published_acceptance_is_of_both_models() -> None:
    target, draft = on_chips(LLAMA, "h200_sxm"), on_chips(SMALL, "h200_sxm", role="draft")
    assert published_acceptance(target, draft) == "this pair accepts 0.89 on code, and 0.60 to 0.75 on chat"
    assert published_acceptance(target, None) == ""
    assert published_acceptance(target, target) == ""
    assert published_acceptance(on_chips("meta-llama/Llama-3.1-8B-Instruct", "h200_sxm"), draft) == ""
