"""Axes as they are typed."""

from collections.abc import Callable

import pytest

from builder.errors import RefusedError
from builder.planner.sweep.axes import combinations, default_axes, parse_axes
from builder.spec import Pair

MakePair = Callable[..., Pair]


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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("batch=[", "limits.max_batch_size takes a whole number, not '['"),
        ("batch={", "limits.max_batch_size takes a whole number, not '{'"),
        ("batch=*x", "limits.max_batch_size takes a whole number, not '*x'"),
        ("batch=[1]", "limits.max_batch_size takes a whole number, not '[1]'"),
        ("batch={a: 1}", "limits.max_batch_size takes a whole number, not '{a: 1}'"),
        ("batch=...", "limits.max_batch_size takes a whole number, not '...'"),
        ("batch=1,true", "limits.max_batch_size takes a whole number, not 'true'"),
        ("batch=1.5", "limits.max_batch_size takes a whole number, not '1.5'"),
        ("batch=null", "limits.max_batch_size takes a whole number, not 'null'"),
        (f"batch={'9' * 5000}", f"limits.max_batch_size takes a whole number, not '{'9' * 40}...'"),
        (f"batch={'9' * 400}", f"limits.max_batch_size takes a whole number, not '{'9' * 40}...'"),
        ("planning.goal.tokens_per_s=inf", "planning.goal.tokens_per_s takes a number, not 'inf'"),
        ("planning.acceptance=nan", "planning.acceptance takes a number, not 'nan'"),
        ("kv_cache.reuse=1", "kv_cache.reuse takes true or false, not '1'"),
    ],
)
def test_words_that_are_no_value_of_the_field_are_refused(text: str, message: str) -> None:
    with pytest.raises(RefusedError) as raised:
        parse_axes([text])
    finding = raised.value.finding
    assert (finding.code, finding.message) == ("SWEEP-AXIS-SYNTAX", message)
    assert len(finding.found) < 80


@pytest.mark.parametrize("word", ["1.10", "1.2.0rc4", "[", "*x", "true", "..."])
def test_text_stays_as_it_is_typed(word: str) -> None:
    assert parse_axes([f"engine.release={word}"]) == {"engine.release": (word,)}


def test_values_may_be_left_out_where_the_field_may() -> None:
    assert parse_axes(["engine.release=null,1.2.1", "planning.acceptance=~,0.5"]) == {
        "engine.release": (None, "1.2.1"),
        "planning.acceptance": (None, 0.5),
    }
    assert parse_axes(["planning.goal.tokens_per_s=100", "planning.step_times=roofline"]) == {
        "planning.goal.tokens_per_s": (100,),
        "planning.step_times": ("roofline",),
    }


@pytest.mark.parametrize("field", ["engine.options", "planning.price", "limits"])
def test_what_holds_further_settings_is_none(field: str) -> None:
    with pytest.raises(RefusedError, match=f"no setting {field}"):
        parse_axes([f"{field}=1"])


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
