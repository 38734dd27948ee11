"""The roofline against figures worked out by hand, and against published throughput."""

from dataclasses import replace

import pytest

from builder.planner.speed import ModelOnChips
from builder.planner.speed.constants import Overheads, roofline_of
from builder.planner.speed.cycle import Cycle
from builder.planner.speed.model import Steps
from builder.planner.speed.roofline import RooflineStepTime
from builder.spec.model import WorkloadSpec
from tests.unit.builder.planner.speed.models import on_chips

LLAMA = "meta-llama/Llama-3.3-70B-Instruct"
AROUND_S = 80 * 4e-6 + 3e-4


@pytest.fixture
def llama() -> ModelOnChips:
    return on_chips(LLAMA, "h200_sxm")


def test_decode_at_batch_one_reads_weights_and_cache(llama: ModelOnChips) -> None:
    embedding_bytes = 2 * 128_256 * 8192
    reading_s = (llama.weights_bytes - embedding_bytes) / (4.8e12 * 0.8)
    cache_s = 1000 * 163_840 / (4.8e12 * 0.8)
    assert RooflineStepTime(llama).decode_s(1, 1000) == pytest.approx(reading_s + cache_s + AROUND_S, rel=1e-3)


def test_decode_of_published_batch_one_is_met(llama: ModelOnChips) -> None:
    """51.14 tokens/s without drafts, the roofline's own check at a small batch."""
    assert 1 / RooflineStepTime(llama).decode_s(1, 500) == pytest.approx(51.14, rel=0.10)


def test_large_passes_compute(llama: ModelOnChips) -> None:
    steps = RooflineStepTime(llama)
    operations = 2 * llama.facts.shape.active_parameters * 4096
    assert steps.decode_s(4096, 1) == pytest.approx(operations / (1.978e15 * 0.5), rel=0.05)


def test_prompt_is_faster_than_its_tokens_one_by_one(llama: ModelOnChips) -> None:
    steps = RooflineStepTime(llama)
    assert steps.prefill_s(1, 1000) < 1000 * steps.decode_s(1, 500) / 50


def test_two_devices_take_half_the_reading_and_add_their_sums(llama: ModelOnChips) -> None:
    one, two = RooflineStepTime(llama).decode_s(1, 1000), RooflineStepTime(on_chips(LLAMA, "h200_sxm", tensor_parallel=2)).decode_s(1, 1000)
    sums_s = 80 * 2 * (9e-6 + 8192 * 2 / 4.5e11)
    assert two == pytest.approx((one - AROUND_S) / 2 + AROUND_S + sums_s, rel=0.01)


def test_stages_follow_one_another(llama: ModelOnChips) -> None:
    half = replace(llama, weights_bytes=llama.weights_bytes // 2, kv_bytes_per_token=llama.kv_bytes_per_token // 2, pipeline_parallel=2)
    assert RooflineStepTime(half).decode_s(1, 1000) == pytest.approx(RooflineStepTime(llama).decode_s(1, 1000) + 1e-5, rel=1e-3)


def test_experts_are_read_as_tokens_choose_them() -> None:
    mixtral = on_chips("mistralai/Mixtral-8x7B-Instruct-v0.1", "h200_sxm", weights="none", kv_cache="bf16")
    steps, layers_s = RooflineStepTime(mixtral), 32 * 4e-6 + 3e-4
    bandwidth, shape = 4.8e12 * 0.8, mixtral.facts.shape
    assert steps.decode_s(1, 1) == pytest.approx(2 * shape.active_parameters / bandwidth + layers_s, rel=0.02)
    assert steps.decode_s(64, 1) == pytest.approx(2 * (shape.parameters - shape.embedding_parameters) / bandwidth + layers_s, rel=0.02)


@pytest.mark.parametrize(("weights", "rate"), [("none", 9.89e14), ("fp8", 1.978e15), ("int4_awq", 9.89e14)])
def test_products_run_in_the_format_of_their_weights(llama: ModelOnChips, weights: str, rate: float) -> None:
    steps = RooflineStepTime(replace(llama, weights=weights))
    operations = 2 * llama.facts.shape.active_parameters * 8192
    assert steps.decode_s(8192, 1) == pytest.approx(operations / (rate * 0.5), rel=0.05)


def test_demo_target_takes_what_was_measured() -> None:
    """9.0 to 11.1 ms for a pass of one row, 12.3 ms for one of nine: docs/decisions/0007-one-forward-pass.md."""
    small = on_chips(LLAMA, "cpu", weights="int8", kv_cache="int8")
    shape = replace(
        small.facts.shape,
        parameters=134_515_008,
        active_parameters=134_515_008,
        embedding_parameters=28_311_552,
        layers=30,
        heads=9,
        kv_heads=3,
        head_dim=64,
        hidden_size=576,
        vocab_size=49_152,
        tied_head=True,
    )
    target = replace(small, facts=replace(small.facts, shape=shape), weights_bytes=134_515_008, kv_bytes_per_token=11_520)
    steps = RooflineStepTime(target)
    assert 0.0080 < steps.decode_s(1, 200) < 0.0111
    assert steps.decode_s(1, 200, 9) == pytest.approx(0.0123, rel=0.10)


def test_family_without_constants_takes_the_default() -> None:
    assert roofline_of("hopper") == roofline_of("a family to come")


def test_cache_is_read_once_for_all_query_tokens(llama: ModelOnChips) -> None:
    """At 8k and batch 64 a verification is 1.2 times a plain step; with the cache counted k+1 times drafting would lose."""
    target = RooflineStepTime(on_chips(LLAMA, "h100_sxm"))
    draft = RooflineStepTime(on_chips("meta-llama/Llama-3.2-1B-Instruct", "h100_sxm", role="draft"))
    cycle = Cycle(Steps(target, draft), Overheads(0.0, 0.002, ""), WorkloadSpec(input_tokens=8000, output_tokens=400))
    assert cycle.verify_s(64, 4) < 1.5 * cycle.target_s(64)
    wrong_s = target.decode_s(64 * 5, cycle.context_tokens)
    right, wrong = (2.77 * cycle.target_s(64) / (cycle.cycle_s(64, 4) + extra) for extra in (0.0, wrong_s - cycle.verify_s(64, 4)))
    assert right > 1.2
    assert wrong < 1.0


def test_figures_for_nvfp4_are_worth_less() -> None:
    four, eight = (RooflineStepTime(on_chips(LLAMA, "b200_sxm", weights=weights)) for weights in ("nvfp4", "fp8"))
    assert (four.error_band, eight.error_band) == (0.40, 0.30)


def test_copied_head_is_read_and_its_embedding_is_not() -> None:
    """Llama-3.2-1B in FP8 with 16-bit ends: 2.02 GB stored where the head is a second tensor, of which 1.50 GB are read."""
    small = on_chips("meta-llama/Llama-3.2-1B-Instruct", "h200_sxm")
    embedding_bytes = 2 * 128_256 * 2048
    copied = replace(small, weights_bytes=small.weights_bytes + embedding_bytes, lookup_bytes=embedding_bytes)
    assert copied.weights_bytes == pytest.approx(2.02e9, rel=0.01)
    assert RooflineStepTime(copied)._streamed_bytes(1) == pytest.approx(1.50e9, rel=0.01)
    assert RooflineStepTime(copied).decode_s(1, 1000) == pytest.approx(RooflineStepTime(small).decode_s(1, 1000))


def test_experts_of_a_token_come_from_the_shape_alone() -> None:
    """What the configuration says of them, in whatever words, was read once."""
    mixtral = on_chips("mistralai/Mixtral-8x7B-Instruct-v0.1", "h200_sxm", weights="none", kv_cache="bf16")
    odd = replace(mixtral, facts=replace(mixtral.facts, config={"num_experts_per_tok": "abc"}))
    assert odd.facts.shape.experts_per_token == 2
    assert RooflineStepTime(odd).decode_s(1, 1000) == RooflineStepTime(mixtral).decode_s(1, 1000)


def test_reading_and_computing_do_not_hide_each_other_wholly(llama: ModelOnChips) -> None:
    """Aiconfigurator's kernels say 1.09 for 16 sequences of 6 tokens."""
    on_h200 = RooflineStepTime(on_chips(LLAMA, "h200_sxm"))
    ratio = on_h200.decode_s(16, 1250, 6) / on_h200.decode_s(16, 1250)
    assert 1.05 < ratio < 1.15
