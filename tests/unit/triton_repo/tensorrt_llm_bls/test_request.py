"""Reading a request: defaults, types, limits."""

from typing import Any

import numpy as np
import pytest

from triton_repo.tensorrt_llm_bls.request import BadRequestError, Defaults, GenerateRequest, parse

DEFAULTS = Defaults.from_parameters(
    {"num_draft_tokens": "5", "lookup": "true", "end_ids": "2, 7", "tokenizer_dir": "/t", "adaptive": "${adaptive}"}
)


def text(*words: str) -> Any:
    return np.array([[word.encode() for word in words]], dtype=np.object_)


def one(value: Any, dtype: Any = np.int32) -> Any:
    return np.array([[value]], dtype=dtype)


def read(**inputs: Any) -> GenerateRequest:
    return parse({"text_input": text("hi"), "max_tokens": one(8), **inputs}.get, DEFAULTS)


def test_defaults_come_from_the_parameters():
    request = read()
    assert (request.num_draft_tokens, request.lookup, request.stream, request.echo, request.min_tokens) == (5, True, False, False, 0)
    assert request.sampling.greedy
    assert request.end_id is None
    assert DEFAULTS.end_ids == (2, 7)
    assert DEFAULTS.adaptive
    assert DEFAULTS.max_input_tokens is None
    assert DEFAULTS.max_sequence_tokens is None
    assert DEFAULTS.shared_vocab_size is None
    assert Defaults.from_parameters({"shared_vocab_size": "120"}).shared_vocab_size == 120
    assert Defaults.from_parameters({"shared_vocab_size": ""}).shared_vocab_size is None


def test_inputs_override_them():
    request = read(
        num_draft_tokens=one(0), lookup=one(False, np.bool_), stream=one(True, np.bool_), stop_words=text("a", "", "b"), end_id=one(-1)
    )
    assert (request.num_draft_tokens, request.lookup, request.stream) == (0, False, True)
    assert request.stop_words == ("a", "b")
    assert request.end_id == -1


@pytest.mark.parametrize(
    ("inputs", "greedy"),
    [
        ({"temperature": one(0.7, np.float32)}, False),
        ({"temperature": one(0.0, np.float32)}, True),
        ({"temperature": one(1.0, np.float32), "top_k": one(1)}, True),
        ({"top_k": one(40)}, False),
        ({"top_k": one(0)}, True),
        ({"top_p": one(0.9, np.float32)}, False),
        ({"top_p": one(0.0, np.float32)}, True),
    ],
)
def test_greedy_is_told_from_sampling(inputs: dict[str, Any], greedy: bool):
    assert read(**inputs).sampling.greedy == greedy


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ({"max_tokens": one(0)}, "max_tokens must be at least 1, found 0"),
        ({"max_tokens": None}, "max_tokens is required"),
        ({"num_draft_tokens": one(-1)}, "num_draft_tokens must be at least 0, found -1"),
        ({"num_draft_tokens": one(6)}, "num_draft_tokens is 6, the engine verifies at most 5"),
        ({"min_tokens": one(-1)}, "min_tokens must be at least 0"),
        ({"temperature": one(-0.5, np.float32)}, "temperature must be from 0 to inf, found -0.5"),
        ({"temperature": one(np.nan, np.float32)}, "temperature must be"),
        ({"top_p": one(1.5, np.float32)}, "top_p must be from 0 to 1, found 1.5"),
        ({"top_k": one(-2)}, "top_k must be at least 0"),
        ({"repetition_penalty": one(0.0, np.float32)}, "repetition_penalty must be above 0"),
        ({"presence_penalty": one(np.inf, np.float32)}, "presence_penalty must be finite"),
        ({"beam_width": one(2)}, "beam_width must be 1"),
        ({"num_return_sequences": one(2)}, "num_return_sequences must be 1"),
        ({"return_context_logits": one(True, np.bool_)}, "return_context_logits is not offered"),
        ({"use_draft_logits": one(True, np.bool_)}, "use_draft_logits is not offered"),
        ({"text_input": text("a", "b")}, "one prompt a row, found 2"),
        ({"text_input": None}, "one prompt a row, found 0"),
        ({"max_tokens": np.array([[1, 2]])}, "max_tokens must hold one value, found 2"),
        ({"stop_words": np.array([[b"\xff"]], dtype=np.object_)}, "stop_words is not UTF-8"),
    ],
)
def test_bad_values_are_named(inputs: dict[str, Any], words: str):
    with pytest.raises(BadRequestError, match=words):
        read(**inputs)
