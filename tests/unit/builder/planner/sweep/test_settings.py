"""Changing settings of a checked pair, and axes as they are typed."""

from collections.abc import Callable

import pytest

from builder.errors import FindingsError, RefusedError
from builder.planner.sweep.settings import combinations, default_axes, parse_axes, with_settings
from builder.spec import Pair

MakePair = Callable[..., Pair]


def test_changed_settings_are_checked_and_the_rest_stays(make_pair: MakePair) -> None:
    pair = make_pair(limits={"max_batch_size": 4})
    changed = with_settings(pair, {"target.kv_cache": "bf16", "speculation.max_draft_tokens": 7, "kv_cache.tokens_per_block": 64})
    assert (changed.spec.target.kv_cache, changed.spec.speculation.max_draft_tokens, changed.spec.kv_cache.tokens_per_block) == (
        "bf16",
        7,
        64,
    )
    assert changed.spec.limits == pair.spec.limits
    assert changed.file == pair.file
    assert pair.spec.target.kv_cache == "fp8", "the pair itself is never changed"


def test_sections_that_the_file_left_out_may_be_set(make_pair: MakePair) -> None:
    assert with_settings(make_pair(), {"planning.workload.input_tokens": 9000}).spec.planning.workload.input_tokens == 9000


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"limits.max_batch_size": 0}, "limits.max_batch_size 0: Input should be greater than or equal to 1"),
        ({"target.kv_cache": "fp9", "limits.max_batch_size": 2}, "target.kv_cache fp9: Input should be 'auto', 'fp32', "),
        ({"limits.max_input_tokens": 4000}, "limits.max_input_tokens 4000: limits.max_input_tokens (4000) must be below "),
        ({"kv_cache.reuse": False}, "kv_cache.reuse False: kv_cache.reuse false with draft tokens"),
    ],
)
def test_refused_values_name_field_value_and_rule(make_pair: MakePair, settings: dict[str, object], message: str) -> None:
    with pytest.raises(FindingsError) as raised:
        with_settings(make_pair(), settings)  # type: ignore[arg-type]
    (finding,) = raised.value.findings
    assert finding.code == "PAIR-VALUE"
    assert finding.message.startswith(message)


def test_another_count_splits_the_target_over_all_chips(make_pair: MakePair) -> None:
    pair = make_pair(target={"pipeline_parallel": 2, "tensor_parallel": 1}, hardware={"count": 2})
    assert with_settings(pair, {"hardware.count": 8}).spec.target.tensor_parallel == 4
    assert with_settings(pair, {"hardware.count": 8, "target.tensor_parallel": 2}).spec.target.tensor_parallel == 2
    assert with_settings(pair, {"hardware.count": 3}).spec.target.tensor_parallel == 1, "what cannot be split is left to the rules"


def test_a_draft_with_the_same_cache_keeps_it(make_pair: MakePair) -> None:
    same, other = make_pair(draft={"kv_cache": "fp8"}), make_pair(draft={"kv_cache": "auto"})
    assert with_settings(same, {"target.kv_cache": "bf16"}).spec.draft.kv_cache == "bf16"
    assert with_settings(same, {"target.kv_cache": "bf16", "draft.kv_cache": "auto"}).spec.draft.kv_cache == "auto"
    assert with_settings(other, {"target.kv_cache": "bf16"}).spec.draft.kv_cache == "auto"


def test_axes_by_short_and_dotted_name() -> None:
    axes = parse_axes(["kv=fp8, bf16", "batch=1,16", "planning.acceptance=0.6", "batch=16,32", "kv_cache.reuse=true"])
    assert axes == {
        "target.kv_cache": ("fp8", "bf16"),
        "limits.max_batch_size": (1, 16, 32),
        "planning.acceptance": (0.6,),
        "kv_cache.reuse": (True,),
    }


@pytest.mark.parametrize("text", ["batch", "batch=", "batch=1,,2", "=1"])
def test_axis_without_values_is_refused(text: str) -> None:
    with pytest.raises(RefusedError) as raised:
        parse_axes([text])
    finding = raised.value.finding
    assert finding.code in ("SWEEP-AXIS-SYNTAX", "SWEEP-AXIS-UNKNOWN")
    assert "batch = limits.max_batch_size" in finding.fix


def test_unknown_axis_is_refused_with_the_nearest(make_pair: MakePair) -> None:
    with pytest.raises(RefusedError) as raised:
        parse_axes(["target.kv_cach=fp8"])
    assert raised.value.finding.code == "SWEEP-AXIS-UNKNOWN"
    assert str(raised.value) == "a pair file has no setting target.kv_cach; did you mean target.kv_cache?"
    with pytest.raises(RefusedError, match="no setting target"):
        parse_axes(["target=fp8"])


@pytest.mark.parametrize(
    ("chip", "precisions"),
    [("h200_sxm", ("fp8", "bf16", "int8")), ("b200_sxm", ("fp8", "bf16", "int8", "nvfp4")), ("a100_sxm", ("fp8", "bf16", "int8"))],
)
def test_default_axes_are_what_the_chip_computes_with(make_pair: MakePair, chip: str, precisions: tuple[str, ...]) -> None:
    axes = default_axes(make_pair(hardware={"chip": chip}, limits={"max_batch_size": 16}).spec)
    assert axes == {
        "target.kv_cache": precisions,
        "speculation.max_draft_tokens": (2, 4, 5, 8),
        "limits.max_batch_size": (1, 8, 16, 32),
    }


def test_without_drafts_their_length_is_no_axis(make_pair: MakePair) -> None:
    assert "speculation.max_draft_tokens" not in default_axes(make_pair(draft={"method": "none", "checkpoint": None}).spec)


def test_every_combination_once_up_to_a_limit() -> None:
    assert combinations({"a": (1, 2), "b": ("x", "y")}) == [{"a": 1, "b": "x"}, {"a": 1, "b": "y"}, {"a": 2, "b": "x"}, {"a": 2, "b": "y"}]
    assert len(combinations({"a": tuple(range(32)), "b": tuple(range(16))})) == 512
    with pytest.raises(RefusedError, match="a sweep of 27 x 19 is 513 rows, more than anybody reads") as raised:
        combinations({"a": tuple(range(27)), "b": tuple(range(19))})
    assert raised.value.finding.code == "SWEEP-ROWS"
