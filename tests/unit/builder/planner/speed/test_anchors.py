"""Published figures, and which of them is nearest."""

import pytest

from builder.planner.speed import anchors, nearest_anchor


def test_every_anchor_has_a_source_and_its_ratio() -> None:
    for anchor in anchors():
        assert anchor.source
        assert anchor.basis in ("P", "S", "R")
        if anchor.tokens_per_s and anchor.plain_tokens_per_s and anchor.speedup:
            assert anchor.tokens_per_s / anchor.plain_tokens_per_s == pytest.approx(anchor.speedup, rel=0.01)


def test_names_are_unique() -> None:
    assert len({anchor.name for anchor in anchors()}) == len(anchors())


@pytest.mark.parametrize(
    ("parameters", "chip", "count", "weights", "batch", "name"),
    [
        (7.06e10, "h200_sxm", 1, "fp8", 1, "Llama-3.3-70B + Llama-3.2-1B, 1 x H200, FP8, batch 1"),
        (3.3e10, "h100_sxm", 1, "none", 128, "Qwen3-32B + Qwen3-1.7B, 1 x H100, BF16, batch 128, k 4"),
        (3.3e10, "h100_sxm", 1, "none", 1, "Qwen3-32B + Qwen3-1.7B, 1 x H100, BF16, batch 1, k 5"),
        (4.0e11, "h200_sxm", 8, "fp8", 1, "Llama-3.1-405B + Llama-3.2-1B, 4 x H200, FP8, batch 1"),
        (1.35e8, "cpu", 1, "int8", 1, "Llama-3.1-8B + Llama-3.2-1B, RTX 3060, Q8_0, batch 1, k 5"),
    ],
)
def test_nearest_is_alike_in_size_chip_precision_and_batch(
    parameters: float, chip: str, count: int, weights: str, batch: int, name: str
) -> None:
    assert nearest_anchor("speculative", parameters, chip, count, weights, batch).name == name


def test_throughput_has_anchors_of_its_own() -> None:
    assert nearest_anchor("throughput", 8e9, "h100_sxm", 1, "fp8", 500).name == "Llama-3.1-8B, 1 x H100, FP8, 1000 in, 1000 out"


def test_prompt_lookup_is_held_against_prompt_lookup() -> None:
    """Looked up drafts, however large the model and whatever the chip."""
    assert nearest_anchor("speculative", 7.06e10, "h200_sxm", 1, "fp8", 1, "ngram").speedup == 1.96
    assert nearest_anchor("speculative", 1.35e8, "cpu", 1, "int8", 1, "ngram").name.startswith("SmolLM2-135M, prompt lookup")
    assert nearest_anchor("speculative", 1.09e11, "b200_sxm", 8, "fp8", 1).method == "draft_target"
    assert nearest_anchor("throughput", 8e9, "h100_sxm", 1, "fp8", 500, "ngram").kind == "throughput"


def test_line_says_what_the_published_prompts_were() -> None:
    code = nearest_anchor("speculative", 7.06e10, "h100_sxm", 2, "none", 1)
    assert code.unlike(0.70) == "on code at acceptance 0.89; the prediction is for 0.70"
    assert code.unlike(0.88) == ""
    assert nearest_anchor("throughput", 8e9, "h100_sxm", 1, "fp8", 500).unlike(0.70) == ""
