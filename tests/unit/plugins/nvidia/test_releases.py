"""Releases, images and lanes as data: whole, sourced, and in agreement with each other."""

import pytest

from plugins.nvidia.lanes import Lane, Option, Precision, find_lane
from plugins.nvidia.releases import (
    at_least,
    at_most,
    containers,
    images_of,
    known_release,
    nearest_release,
    release_data,
    release_number,
    releases,
)

KINDS = ("tensorrt_llm", "tensorrt_llm_pytorch")
CERTAINTIES = {"sure", "bracketed", "inferred"}
LANES = [find_lane(kind) for kind in KINDS]
ENGINE, PYTORCH = LANES


def test_every_row_has_a_source_and_says_how_sure_it_is() -> None:
    rows = [*releases().values(), *containers(), *LANES]
    for lane in LANES:
        rows += [*lane.chips, *lane.weights.values(), *lane.algorithms.values(), *lane.kv_cache.values(), *lane.options.values()]
    assert all(row.certainty in CERTAINTIES and len(row.source) > 5 for row in rows)
    assert all(row["certainty"] in CERTAINTIES and row["source"] and row["fix"] for row in release_data()["known_issues"])


def test_candidates_stand_before_their_release() -> None:
    names = list(releases())
    assert names.index("1.2.0rc2") < names.index("1.2.0rc8") < names.index("1.2.0") < names.index("1.3.0rc3")
    assert release_number("v0.18.2") == release_number("0.18.2") < release_number("0.20")


def test_a_release_name_is_checked() -> None:
    with pytest.raises(ValueError, match="latest is not a release name"):
        release_number("latest")


@pytest.mark.parametrize(
    ("name", "engine", "pytorch"),
    [
        ("0.17.0", False, False),
        ("0.18.2", True, False),
        ("0.21.0", True, False),
        ("1.0.0", True, True),
        ("1.2.9", True, True),
        ("1.3.0rc3", False, True),
        ("1.4.0", False, True),
    ],
)
def test_ranges_of_the_lanes(name: str, engine: bool, pytorch: bool) -> None:
    assert ENGINE.has(release_number(name)) is engine
    assert PYTORCH.has(release_number(name)) is pytorch


@pytest.mark.parametrize("lane", LANES, ids=KINDS)
def test_a_lane_agrees_with_the_releases(lane: Lane) -> None:
    assert lane.default_release in lane.releases
    assert images_of(lane.default_release), "the default must be one that an image carries"
    assert all(known_release(chip.since) in lane.releases for chip in lane.chips)
    assert all(known_release(since) in lane.releases for since in lane.architectures.values())
    assert find_lane(lane.other).other == lane.kind


def test_changed_defaults_are_of_known_flags_and_releases() -> None:
    flags = {*ENGINE.options, *ENGINE.elsewhere}
    assert set(ENGINE.changed_defaults) <= flags
    assert all(known_release(since) in ENGINE.releases for values in ENGINE.changed_defaults.values() for since in values)


@pytest.mark.parametrize("lane", LANES, ids=KINDS)
def test_every_word_of_the_pair_file_is_taken_or_explained(lane: Lane) -> None:
    assert set(lane.weights) | set(lane.absent["weights"]) == {"none", "fp8", "nvfp4", "int8", "int4", "int4_awq", "int8_sq"}
    assert set(lane.kv_cache) | set(lane.absent["kv_cache"]) == {"bf16", "fp32", "fp8", "int8", "nvfp4", "int4"}
    assert not set(lane.kv_cache) & set(lane.absent["kv_cache"])


def test_images_carry_known_releases() -> None:
    assert all(c.release in releases() for c in containers())
    assert containers()[-1].image == "nvcr.io/nvidia/tritonserver:26.07-trtllm-python-py3"
    assert [c.tag for c in images_of(releases()["0.20.0"])] == ["25.06", "25.07"]


def test_bounds_of_a_row() -> None:
    release = releases()["1.0.0"]
    assert at_least(release, "")
    assert at_least(release, "1.0.0")
    assert not at_least(release, "1.1.0")
    assert at_most(release, "")
    assert at_most(release, "1.0.0")
    assert not at_most(release, "0.21.0")


def test_nearest_name() -> None:
    assert nearest_release("1.2.2", ENGINE.releases).name == "1.2.1"
    assert nearest_release("v0.20", ENGINE.releases).name == "0.20.0"
    assert nearest_release("1.3.0", PYTORCH.releases).name == "1.3.0rc27"
    assert nearest_release("newest", PYTORCH.releases).name == "1.2.1"


@pytest.mark.parametrize(
    ("rows", "name", "runs", "does_not"),
    [
        (ENGINE.weights, "fp8", 89, 86),
        (ENGINE.weights, "nvfp4", 100, 90),
        (ENGINE.weights, "nvfp4", 120, 89),
        (ENGINE.weights, "int4_awq", 120, 103),
        (ENGINE.kv_cache, "int8", 90, 100),
        (PYTORCH.kv_cache, "nvfp4", 103, 120),
        (PYTORCH.weights, "int4_awq", 90, 100),
    ],
)
def test_where_a_format_runs(rows: dict[str, Precision], name: str, runs: int, does_not: int) -> None:
    assert rows[name].runs_on(runs)
    assert not rows[name].runs_on(does_not)


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("context_fmha", True, 1),
        ("calibration_size", 64, 0),
        ("calibration_size", 64, True),
        ("calibration_dataset", "texts", ""),
        ("gemm_plugin", "auto", "int8"),
    ],
)
def test_values_of_an_option(name: str, good: object, bad: object) -> None:
    option = ENGINE.options[name]
    assert option.allows(good)
    assert not option.allows(bad)


def test_an_option_on_a_chip() -> None:
    only: Option = ENGINE.options["gemm_swiglu_plugin"]
    assert [only.runs_on(sm) for sm in (89, 90, 100)] == [False, True, False]
    assert [ENGINE.options["low_latency_gemm_plugin"].runs_on(sm) for sm in (90, 100, 103)] == [True, False, True]
