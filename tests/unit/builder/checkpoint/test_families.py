"""Defaults of every listed family against transformers' own configuration classes."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest

from builder.checkpoint.families import families
from builder.checkpoint.geometry import SPELLINGS, Geometry, SizeError, read_geometry
from builder.checkpoint.rope import read_rope

pytest.importorskip("transformers")


@cache
def config_of(family: str, **given: object) -> Mapping[str, Any]:
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    made: Mapping[str, Any] = CONFIG_MAPPING[family](**given).to_dict()
    return made


@pytest.mark.parametrize("family", sorted(families()))
def test_a_left_out_size_is_the_class_default(family: str) -> None:
    """A file that names nothing but its family, and one that spells out the class's defaults, must read the same."""
    spelt = config_of(family)
    assert sizes_or_missing({"model_type": family}) == sizes_or_missing(spelt)
    assert read_tied(family) is bool(spelt.get("tie_word_embeddings", read_tied(family)))


def sizes_or_missing(config: Mapping[str, Any]) -> Geometry | tuple[str, ...]:
    try:
        return read_geometry(config)
    except SizeError as error:
        return error.names


def read_tied(family: str) -> bool:
    tied = families()[family]["tied"]
    assert isinstance(tied, bool)
    return tied


@pytest.mark.parametrize("family", sorted(families()))
def test_no_row_is_more_than_the_class_says(family: str) -> None:
    spelt = config_of(family)
    for size, value in families()[family].items():
        if size in SPELLINGS:
            spelt_values = [spelt.get(name) for name in SPELLINGS[size]]
            assert value in spelt_values or [value] in [sorted(set(v)) for v in spelt_values if isinstance(v, list)], size


@pytest.mark.parametrize("family", ["llama", "mistral", "qwen2", "qwen3", "gemma", "gemma3_text", "phi3", "mixtral", "smollm3", "gpt_neox"])
def test_derived_sizes_follow_what_the_file_says(family: str) -> None:
    """Sizes that the class derives from others are derived here too, not taken from the class's own defaults."""
    given = {"hidden_size": 1024, "num_attention_heads": 16}
    assert read_geometry({"model_type": family, **given}) == read_geometry(config_of(family, **given))


@pytest.mark.parametrize("family", sorted(families()))
def test_rotary_base_of_the_class(family: str) -> None:
    spelt = config_of(family)
    if spelt.get("rope_parameters"):
        rope, expected = read_rope({"model_type": family}), read_rope(spelt)
        assert rope is not None
        assert expected is not None
        assert {kind: one.theta for kind, one in rope.layers.items()} == {kind: one.theta for kind, one in expected.layers.items()}
        assert rope.layers or rope.theta == expected.theta


def test_every_family_that_the_cpu_lane_runs_is_listed() -> None:
    from plugins.engines.openvino.families import families as lane

    assert set(lane().tried) - set(families()) == set()
