"""Tensors of the contract to a request: values, defaults, and every refusal."""

from typing import Any

import numpy as np
import pytest

from plugins.engines.openvino.triton_backend.parse import BadTensorError, ParsedRequest, is_stop, parse
from triton_repo.common.seeds import round_seed


def one(value: Any, dtype: Any = np.int32) -> Any:
    return np.array([[value]], dtype=dtype)


def read(**tensors: Any) -> ParsedRequest:
    ids = np.array([[1, 2, 3]], dtype=np.int32)
    return parse({"input_ids": ids, "input_lengths": one(3), "request_output_len": one(4), **tensors}.get, exclude_input=False)


def test_plain_request_is_greedy():
    request = read()
    assert request.input_ids == (1, 2, 3)
    assert (request.max_new_tokens, request.draft_ids, request.end_ids, request.min_tokens) == (4, (), (), 0)
    assert request.sampling.top_k == 1
    assert request.sampling.seed is None
    assert not request.exclude_input


def test_padding_is_not_part_of_the_prompt():
    assert read(input_lengths=one(2)).input_ids == (1, 2)


def test_draft_logits_go_with_their_drafts():
    logits = np.arange(8, dtype=np.float32).reshape(1, 2, 4)
    request = read(draft_input_ids=np.array([[7, 8]], dtype=np.int32), draft_logits=logits)
    assert request.draft_logits is not None
    assert (request.draft_logits == logits[0]).all()
    assert read().draft_logits is None


def test_everything_that_may_be_sent():
    request = read(
        draft_input_ids=np.array([[7, 8]], dtype=np.int32),
        end_id=one(2),
        stop_words_list=np.array([[[5, 6, 7], [2, 3, -1]]], dtype=np.int32),
        bad_words_list=np.array([[[9], [1]]], dtype=np.int32),
        min_tokens=one(2),
        temperature=one(0.5, np.float32),
        runtime_top_k=one(40),
        runtime_top_p=one(0.25, np.float32),
        seed=one(round_seed(9, 100), np.uint64),
        return_generation_logits=one(True, np.bool_),
        exclude_input_in_output=one(True, np.bool_),
    )
    assert request.draft_ids == (7, 8)
    assert request.end_ids == (2,)
    assert request.stop_words == ((5, 6), (7,))
    assert request.bad_words == ((9,),)
    assert (request.sampling.temperature, request.sampling.top_k, request.sampling.top_p, request.sampling.seed) == (0.5, 40, 0.25, 9)
    assert request.want_generation_logits
    assert request.exclude_input


@pytest.mark.parametrize("end_id", [-1, None])
def test_without_an_end_id_nothing_ends_early(end_id: int | None):
    assert read(**({} if end_id is None else {"end_id": one(end_id)})).end_ids == ()


@pytest.mark.parametrize(
    ("tensors", "words"),
    [
        ({"input_ids": None}, "input_ids is required"),
        ({"input_ids": np.zeros((2, 3), dtype=np.int32)}, "one sequence, found 2"),
        ({"input_lengths": one(4)}, "input_lengths is 4, input_ids holds 3"),
        ({"input_lengths": one(0)}, "input_lengths must be at least 1"),
        ({"request_output_len": one(-1)}, "request_output_len must be at least 1, found -1"),
        ({"request_output_len": None}, "request_output_len is required"),
        ({"draft_input_ids": np.zeros((1, 5), dtype=np.int32)}, "more than request_output_len 4"),
        ({"beam_width": one(2)}, "beam_width must be 1"),
        ({"streaming": one(True, np.bool_)}, "streaming needs a decoupled model"),
        ({"draft_logits": np.ones((1, 2, 4), dtype=np.float32)}, "draft_logits holds 2 rows, draft_input_ids 0 tokens"),
        ({"embedding_bias": np.ones((1, 4), dtype=np.float32)}, "embedding_bias is not offered"),
        ({"stop_words_list": np.array([[[1], [9]]], dtype=np.int32)}, "stop_words_list: word list offset"),
        ({"temperature": one(-1, np.float32)}, "temperature must be"),
        ({"temperature": one(np.nan, np.float32)}, "temperature must be"),
        ({"runtime_top_p": one(2, np.float32)}, "runtime_top_p must be"),
        ({"runtime_top_k": one(-1)}, "runtime_top_k must be at least 0"),
        ({"repetition_penalty": one(0, np.float32)}, "repetition_penalty must be above 0"),
        ({"min_tokens": one(-1)}, "min_tokens must be at least 0"),
        ({"seed": np.array([[1, 2]], dtype=np.uint64)}, "seed must hold one value"),
    ],
)
def test_refusals_name_tensor_and_value(tensors: dict[str, Any], words: str):
    with pytest.raises(BadTensorError, match=words):
        read(**tensors)


def test_neutral_values_pass():
    read(
        beam_width=one(1), embedding_bias=np.zeros((1, 4), dtype=np.float32), streaming=one(False, np.bool_), len_penalty=one(1, np.float32)
    )


def test_stop_requests_are_told_apart():
    assert is_stop({"stop": one(True, np.bool_)}.get)
    assert not is_stop({}.get)
