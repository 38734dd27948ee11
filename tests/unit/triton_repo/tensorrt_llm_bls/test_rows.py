"""Rows of a request: how many, which share of each input, one sender for all."""

from typing import Any

import numpy as np
import pytest

from triton_repo.tensorrt_llm_bls.rows import Row, SharedSender, row_count, row_of


class Sent:
    def __init__(self) -> None:
        self.responses: list[tuple[str, int]] = []

    def send(self, response: str, flags: int) -> None:
        self.responses.append((response, flags))

    def is_cancelled(self) -> bool:
        return False


class Input:
    def __init__(self, array: Any) -> None:
        self.array = array

    def as_numpy(self) -> Any:
        if isinstance(self.array, Exception):
            raise self.array
        return self.array


@pytest.mark.parametrize(
    ("array", "rows"),
    [
        (np.array([[b"a"], [b"b"], [b"c"]], dtype=np.object_), 3),
        (np.array([[b"a"]], dtype=np.object_), 1),
        (np.array([[b"a", b"b"]], dtype=np.object_), 1),
        (np.array([b"a", b"b"], dtype=np.object_), 1),
        (ValueError("unreadable"), 1),
    ],
)
def test_rows_are_the_batch_of_the_prompt(array: Any, rows: int) -> None:
    assert row_count(None, lambda _request, _name: Input(array)) == rows


def test_each_row_has_its_share_and_what_is_there_once_is_for_all() -> None:
    assert row_of(np.array([[1], [2]]), 1, 2).tolist() == [[2]]
    assert row_of(np.array([[7]]), 1, 2).tolist() == [[7]]
    assert row_of(np.array([[1], [2]]), 0, 1).tolist() == [[1], [2]]


def test_the_last_row_to_end_ends_the_request() -> None:
    raw = Sent()
    shared = SharedSender(raw, 2)
    for response, final in (("a1", 0), ("b1", 1), ("a2", 1)):
        shared.send(response, final)
    assert raw.responses == [("a1", 0), ("b1", 0), ("a2", 1)]


def test_after_an_error_the_others_see_themselves_cancelled_and_say_nothing() -> None:
    raw = Sent()
    shared = SharedSender(raw, 3)
    shared.fail("error", 1)
    shared.fail("second", 1)
    shared.send("late", 1)
    assert shared.is_cancelled()
    assert raw.responses == [("error", 1)]


def test_rows_in_flight_together_have_ids_of_their_own() -> None:
    assert [Row(i, 2, 0).request_id("req") for i in range(2)] == ["req-0", "req-1"]
    assert Row(0, 1, 0).request_id("req") == "req"
    assert Row(1, 2, 0).request_id("") == ""
