"""The compute-free engine keeps the rules that its users test against."""

import pytest

from plugins.engines.openvino.triton_backend.null_engine import Engine, NullRecord, Request, RequestError

ENGINE = Engine(NullRecord(100))


def generate(**values: object) -> tuple[tuple[int, ...], str]:
    (result,) = ENGINE.generate([Request(**values)])
    assert not isinstance(result, RequestError)
    return result.output_ids, result.finish


def test_continuing_a_sequence_gives_the_same_tokens():
    whole, finish = generate(input_ids=(3, 4), max_new_tokens=9)
    start, _ = generate(input_ids=(3, 4), max_new_tokens=4)
    rest, _ = generate(input_ids=(3, 4, *start), max_new_tokens=5)
    assert start + rest == whole
    assert finish == "length"


def test_ends_at_end_ids_and_stop_words():
    whole, _ = generate(input_ids=(3,), max_new_tokens=9)
    assert generate(input_ids=(3,), max_new_tokens=9, end_ids=(whole[4],)) == (whole[: whole.index(whole[4]) + 1], "end")
    assert generate(input_ids=(3,), max_new_tokens=9, stop_words=(whole[2:4],)) == (whole[:4], "stop")


def test_minimum_keeps_end_ids_away():
    whole, _ = generate(input_ids=(3,), max_new_tokens=3)
    tokens, _ = generate(input_ids=(3,), max_new_tokens=3, end_ids=(whole[0],), min_tokens=3)
    assert whole[0] not in tokens


@pytest.mark.parametrize("request_", [Request((), 1), Request((100,), 1), Request((1,), 0), Request((1,), 2, draft_ids=(-1,))])
def test_bad_requests_are_errors(request_: Request):
    (error,) = ENGINE.generate([request_])
    assert isinstance(error, RequestError)
    assert error.found in str(error)


def test_a_wrong_draft_is_wrong_at_its_positions():
    draft = Engine(NullRecord(100), wrong_every=4)
    same = [ENGINE.next_token(1, i) == draft.next_token(1, i) for i in range(8)]
    assert same == [False, True, True, True, False, True, True, True]
