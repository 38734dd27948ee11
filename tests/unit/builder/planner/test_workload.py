"""One workload for all predictions: the pair file's as it stands, the default cut down to the limits."""

import pytest

from builder.planner.workload import workload_of
from builder.spec import PairSpec


def spec_of(limits: dict[str, int], planning: dict[str, object] | None = None) -> PairSpec:
    gates = {"lossless": {"tokens": 8}, "speed": {"tokens": 8}, "accuracy": {"window_tokens": 16}}
    target = {"checkpoint": "target", "weights": "fp8"}
    data = {"name": "p", "target": target, "draft": {"method": "none"}, "limits": limits, "gates": gates, "planning": planning or {}}
    return PairSpec.model_validate(data)


@pytest.mark.parametrize(
    ("limits", "tokens"),
    [
        ({"max_input_tokens": 6000, "max_sequence_tokens": 8192}, (1000, 500)),
        ({"max_input_tokens": 300, "max_sequence_tokens": 512}, (300, 212)),
        ({"max_input_tokens": 500, "max_sequence_tokens": 512}, (341, 171)),
        ({"max_input_tokens": 1000, "max_sequence_tokens": 1500}, (1000, 500)),
        ({"max_input_tokens": 100, "max_sequence_tokens": 8192}, (100, 500)),
    ],
)
def test_default_is_cut_down_to_the_limits(limits: dict[str, int], tokens: tuple[int, int]) -> None:
    work = workload_of(spec_of(limits))
    assert (work.input_tokens, work.output_tokens) == tokens


def test_what_the_pair_file_names_stands() -> None:
    """That it does not fit is refused elsewhere."""
    asked = {"workload": {"input_tokens": 900, "output_tokens": 10}}
    work = workload_of(spec_of({"max_input_tokens": 300, "max_sequence_tokens": 512}, asked))
    assert (work.input_tokens, work.output_tokens) == (900, 10)
