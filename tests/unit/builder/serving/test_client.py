"""The client's tensors and its sums, over a scripted transport."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from builder.errors import StageError
from builder.serving.client import Client
from builder.serving.generation import GenerateRequest, Generation
from builder.serving.transport import Answer, FakeTransport

COUNTERS = {
    "total_draft_tokens": 8,
    "total_accepted_draft_tokens": 4,
    "total_lookup_tokens": 3,
    "total_accepted_lookup_tokens": 1,
    "num_rounds": 2,
    "draft_time_us": 1500,
    "target_time_us": 250000,
}


def piece(text: str, ids: Sequence[int], **counters: int) -> Answer:
    numbers = {name: np.array([[value]], np.int64) for name, value in counters.items()}
    return {"text_output": np.array([text.encode()], object), "output_ids": np.array([list(ids)], np.int32), **numbers}


def answering(*answers: Answer) -> FakeTransport:
    return FakeTransport(lambda _model, _inputs: list(answers))


def test_pieces_are_joined_and_the_last_counters_win() -> None:
    transport = answering(piece("Hel", [5, 6], num_rounds=1), piece("", []), piece("lo", [7], **COUNTERS))
    pieces: list[str] = []
    answer = Client(transport).generate(GenerateRequest("Hi", 8, stream=True), pieces.append)
    assert pieces == ["Hel", "lo"]
    assert (answer.text, answer.output_ids) == ("Hello", (5, 6, 7))
    assert (answer.drafted, answer.accepted, answer.lookup_drafted, answer.lookup_accepted, answer.rounds) == (8, 4, 3, 1, 2)
    assert (answer.draft_s, answer.target_s) == (0.0015, 0.25)
    assert 0 <= answer.seconds_to_first_token <= answer.seconds
    assert transport.cancelled == 0


def test_what_is_not_given_is_not_sent() -> None:
    transport = answering(piece("", [1]))
    Client(transport).generate(GenerateRequest("Hi", 8))
    model, sent = transport.requests[0]
    assert model == "tensorrt_llm_bls"
    assert sorted(sent) == ["exclude_input_in_output", "max_tokens", "return_perf_metrics", "stream", "text_input"]
    assert {values.shape for values in sent.values()} == {(1, 1)}


def test_every_field_reaches_its_tensor() -> None:
    transport = answering(piece("", [1]))
    request = GenerateRequest(
        "Hi", 8, chat=True, num_draft_tokens=0, lookup=False, stop_words=("END", "\n"), min_tokens=2, temperature=0.5, top_k=3, seed=2**63
    )
    Client(transport).generate(request)
    sent: Mapping[str, Any] = transport.requests[0][1]
    assert sent["apply_chat_template"].tolist() == [[True]]
    assert sent["num_draft_tokens"].tolist() == [[0]]
    assert sent["lookup"].tolist() == [[False]]
    assert sent["stop_words"].tolist() == [[b"END", b"\n"]]
    assert sent["seed"].dtype == np.uint64
    assert sent["temperature"].dtype == np.float32


def test_an_interruption_cancels_the_stream() -> None:
    def interrupt(_text: str) -> None:
        raise KeyboardInterrupt

    transport = answering(piece("a", [1]), piece("b", [2]))
    with pytest.raises(KeyboardInterrupt):
        Client(transport).generate(GenerateRequest("Hi", 8, stream=True), interrupt)
    assert transport.cancelled == 1


def test_an_answer_without_ids_is_an_error() -> None:
    with pytest.raises(StageError, match="without output_ids") as caught:
        Client(answering({"text_output": np.array([b"x"], object)})).generate(GenerateRequest("Hi", 8))
    assert caught.value.finding.code == "SERVER-ANSWER"


def test_logits_come_straight_from_the_target() -> None:
    def target(model: str, inputs: Mapping[str, Any]) -> Answer:
        assert model == "tensorrt_llm"
        n = inputs["input_ids"].shape[1]
        assert inputs["input_lengths"].tolist() == [[n]]
        return {
            "output_ids": np.zeros((1, 1, 1), np.int32),
            "context_logits": np.arange(n * 4, dtype=np.float32).reshape(1, n, 4),
            "generation_logits": np.array([[[[1, 2, 3, 4]]]], np.float32),
        }

    client = Client(FakeTransport(target))
    assert client.context_logits([3, 1, 2]).shape == (3, 4)
    assert client.next_logits([3, 1]).tolist() == [1, 2, 3, 4]


def test_missing_logits_are_named() -> None:
    with pytest.raises(StageError, match="tensorrt_llm answered without context_logits"):
        Client(answering({})).context_logits([1, 2])


def test_prompt_ids_come_from_the_served_tokenizer() -> None:
    transport = FakeTransport(lambda _model, _inputs: {"INPUT_ID": np.array([[4, 5]], np.int32)})
    assert Client(transport).prompt_ids("Hi", chat=True) == (4, 5)
    model, sent = transport.requests[0]
    assert (model, sent["APPLY_CHAT_TEMPLATE"].tolist()) == ("preprocessing", [[True]])


def test_rates_of_an_empty_generation_are_zero() -> None:
    empty = Generation("", (), 0, 0, 0, 0, 0, 0.0, 0.0, 0.0, 0.0)
    assert (empty.tokens_per_s, empty.acceptance_rate, empty.acceptance_length) == (0.0, 0.0, 0.0)


def test_closing_the_client_closes_the_transport() -> None:
    transport = answering()
    with Client(transport):
        pass
    assert transport.closed


def counted(ids: Sequence[int], **lengths: int) -> Generation:
    return Client(answering(piece("", ids, **lengths))).generate(GenerateRequest("Hi", 100))


def test_prompt_and_padding_are_no_output() -> None:
    """Case 10 of the user reports: 200 ids of prompt, 37 new ones, padding up to 300."""
    ids = [*range(200), *range(1000, 1037), *[2] * 63]
    answer = counted(ids, sequence_length=237, num_input_tokens=200, num_output_tokens=37)
    assert answer.output_ids == tuple(range(1000, 1037))
    assert replace(answer, seconds=0.5).tokens_per_s == 74
    assert counted(ids[200:], sequence_length=37, num_input_tokens=200, num_output_tokens=37).output_ids == tuple(range(1000, 1037))


def test_padding_is_no_output_of_a_server_that_counts_nothing_else() -> None:
    assert counted([5, 6, 7, 0, 0], sequence_length=3).output_ids == (5, 6, 7)
