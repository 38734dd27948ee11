"""A shorter pair file is one that the product takes."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from builder.planner.checks.limits import check_workload
from builder.planner.lengths import shorter
from builder.spec import PairSpec

BASE = {"name": "pair", "target": {"checkpoint": "t"}, "draft": {"method": "ngram"}}
WORK = {"input_tokens": 1000, "output_tokens": 500}


def spec_of(limits: dict[str, int], **sections: Any) -> PairSpec:
    return PairSpec.model_validate({**BASE, "limits": limits, **sections})


def applied(spec: PairSpec, changes: dict[str, int]) -> PairSpec:
    data = spec.model_dump(exclude_unset=True)
    for field, value in changes.items():
        *parents, last = field.split(".")
        section = data
        for name in parents:
            section = section.setdefault(name, {})
        section[last] = value
    return PairSpec.model_validate(data)


@given(sequence=st.integers(2048, 200_000), share=st.floats(0.2, 0.99), longest=st.integers(2, 4096), names_work=st.booleans())
def test_following_it_leads_to_a_pair_file_that_is_taken(sequence: int, share: float, longest: int, names_work: bool) -> None:
    limits = {"max_sequence_tokens": sequence, "max_input_tokens": max(1000, int(sequence * share))}
    spec = spec_of(limits, **({"planning": {"workload": WORK}} if names_work else {}))
    changes = dict(shorter(spec, min(longest, sequence - 1)))
    if not changes:
        assert longest < 40
        return
    changed = applied(spec, changes)
    assert changed.limits.max_sequence_tokens == min(longest, sequence - 1)
    assert [*check_workload(changed)] == []


def test_a_workload_that_is_not_named_is_left_alone() -> None:
    limits = {"max_sequence_tokens": 8192, "max_input_tokens": 6144}
    assert shorter(spec_of(limits), 986) == {"limits.max_sequence_tokens": 986, "limits.max_input_tokens": 493}
    named = spec_of(limits, planning={"workload": WORK})
    assert shorter(named, 986) == {
        "limits.max_sequence_tokens": 986,
        "limits.max_input_tokens": 493,
        "planning.workload.input_tokens": 493,
        "planning.workload.output_tokens": 493,
    }


def test_what_no_gate_would_take_is_not_proposed() -> None:
    assert shorter(spec_of({"max_sequence_tokens": 8192, "max_input_tokens": 6144}), 20) == {}
