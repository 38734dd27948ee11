"""Changing settings of a checked pair, and axes as they are typed."""

from collections.abc import Callable

import pytest

from builder.errors import FindingsError
from builder.planner.sweep.settings import with_settings
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


def test_the_draft_follows_the_count(make_pair: MakePair) -> None:
    """In one process it is split as the target is; on its own it stays as it is, as far as there are chips."""
    two = {"hardware": {"count": 2}, "target": {"tensor_parallel": 2}, "draft": {"tensor_parallel": 2}}
    single, apart = make_pair(serve={"topology": "single"}, **two), make_pair(**two)
    counts = (1, 2, 4, 8)
    assert [with_settings(single, {"hardware.count": n}).spec.draft.tensor_parallel for n in counts] == [1, 2, 4, 8]
    assert [with_settings(apart, {"hardware.count": n}).spec.draft.tensor_parallel for n in counts] == [1, 2, 2, 2]
    assert with_settings(single, {"hardware.count": 4, "draft.tensor_parallel": 1}).spec.draft.tensor_parallel == 1
    assert with_settings(single, {"target.tensor_parallel": 1}).spec.draft.tensor_parallel == 1
    assert with_settings(apart, {"hardware.count": 8, "serve.topology": "single"}).spec.draft.tensor_parallel == 8
    staged = make_pair(serve={"topology": "single"}, hardware={"count": 2}, target={"pipeline_parallel": 2})
    assert with_settings(staged, {"hardware.count": 8}).spec.draft.tensor_parallel == 4
