"""Rotary embeddings: every spelling means the same, and nothing is lost or guessed."""

import pytest

from builder.checkpoint.rope import Rope, check_rope, most_positions, read_rope

LLAMA3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
BASE = {"model_type": "llama", "max_position_embeddings": 131072}


@pytest.mark.parametrize(
    "spelling",
    [
        {"rope_theta": 500000.0, "rope_scaling": LLAMA3 | {"rope_type": "llama3"}},
        {"rope_theta": 500000.0, "rope_scaling": LLAMA3 | {"type": "llama3"}},
        {"rope_theta": 500000.0, "rope_scaling": LLAMA3 | {"type": "llama3", "rope_type": "llama3"}},
        {"rope_parameters": LLAMA3 | {"rope_type": "llama3", "rope_theta": 500000.0}},
        {"rotary_base": 500000.0, "rotary_scaling": LLAMA3 | {"rope_type": "llama3"}},
    ],
    ids=["rope_type", "type", "both", "rope_parameters", "tensorrt_llm"],
)
def test_llama3_keeps_all_five_values_however_it_is_spelt(spelling: dict[str, object]) -> None:
    rope = read_rope(BASE | spelling)
    assert rope == Rope("llama3", 500000.0, LLAMA3)
    assert list(check_rope(rope, "target.checkpoint")) == []


@pytest.mark.parametrize("key", ["type", "rope_type"])
def test_unknown_kind_is_refused_by_name(key: str) -> None:
    (finding,) = check_rope(read_rope(BASE | {"rope_scaling": {key: "banana", "factor": 8.0}}), "target.checkpoint")
    assert (finding.code, finding.severity, finding.found) == ("CKPT-ROPE", "error", "banana")
    assert finding.message == (
        "config.json asks for rotary embeddings of the kind 'banana', which neither transformers nor TensorRT-LLM knows."
    )


def test_kind_without_its_numbers_is_refused() -> None:
    (finding,) = check_rope(read_rope(BASE | {"rope_scaling": {"rope_type": "llama3", "factor": 8.0}}), "target.checkpoint")
    assert finding.message == (
        "config.json asks for rotary embeddings of the kind llama3 and leaves out low_freq_factor and high_freq_factor."
    )


def test_linear_keeps_its_factor() -> None:
    assert read_rope(BASE | {"rope_scaling": {"type": "linear", "factor": 4.0}}) == Rope("linear", 10000.0, {"factor": 4.0})


def test_base_and_share_without_scaling() -> None:
    assert read_rope(BASE | {"rope_theta": 1000000}) == Rope("default", 1000000.0)
    assert read_rope({"model_type": "gpt_neox", "rotary_emb_base": 5000, "rotary_pct": 0.25}) == Rope(
        "default", 5000.0, {"partial_rotary_factor": 0.25}
    )
    assert read_rope({"model_type": "gpt2"}) is None
    assert read_rope({"model_type": "smollm3"}) == Rope("default", 2000000.0)


def test_a_rope_for_each_kind_of_layer() -> None:
    nested = {
        "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
        "full_attention": {"rope_type": "linear", "factor": 8.0},
    }
    rope = read_rope({"model_type": "gemma3_text", "rope_parameters": nested})
    assert rope is not None
    assert dict(rope.layers) == {"sliding_attention": Rope(), "full_attention": Rope("linear", 1000000.0, {"factor": 8.0})}
    assert (rope.kind, rope.theta) == ("linear", 1000000.0)


def test_local_and_global_base_of_older_gemma3_files() -> None:
    old = {"rope_theta": 1000000.0, "rope_local_base_freq": 10000.0, "rope_scaling": {"rope_type": "linear", "factor": 8.0}}
    rope = read_rope({"model_type": "gemma3", "text_config": {"model_type": "gemma3_text", **old}})
    assert rope is not None
    assert dict(rope.layers) == {"sliding_attention": Rope(), "full_attention": Rope("linear", 1000000.0, {"factor": 8.0})}


def test_unknown_kind_of_one_layer_kind_is_found() -> None:
    nested = {"sliding_attention": {"rope_type": "banana"}, "full_attention": {"rope_type": "default"}}
    assert [f.found for f in check_rope(read_rope({"rope_parameters": nested}), "x")] == ["banana"]


def test_older_words_for_a_kind() -> None:
    phi3 = {"original_max_position_embeddings": 4096, "rope_scaling": {"type": "su", "short_factor": [1.0], "long_factor": [2.0]}}
    rope = read_rope(BASE | phi3)
    assert rope is not None
    assert (rope.kind, rope.fields["original_max_position_embeddings"]) == ("longrope", 4096)
    mrope = read_rope(BASE | {"rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]}})
    assert mrope == Rope("default", 10000.0, {"mrope_section": [16, 24, 24]})


@pytest.mark.parametrize(("original", "expected"), [(32768, 131072), (None, 131072), (4096, 32768)])
def test_positions_that_yarn_reaches(original: int | None, expected: int) -> None:
    scaling = {"rope_type": "yarn", "factor": 4.0} | ({"original_max_position_embeddings": original} if original else {})
    assert most_positions(read_rope({"max_position_embeddings": 32768, "rope_scaling": scaling}), 32768) == expected
    assert most_positions(read_rope({"max_position_embeddings": 32768, "rope_theta": 1e6}), 32768) == 32768
