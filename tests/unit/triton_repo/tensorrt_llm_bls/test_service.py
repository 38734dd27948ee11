"""The orchestrator over stand-in models: answers, streaming, cancellation, errors, failures of the draft model."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from triton_repo.common.acceptance import count_accepted
from triton_repo.tensorrt_llm_bls.request import Defaults
from triton_repo.tensorrt_llm_bls.service import Service

OUTPUTS = (
    "text_output",
    "output_ids",
    "num_rounds",
    "total_draft_tokens",
    "total_accepted_draft_tokens",
    "num_output_tokens",
    "num_input_tokens",
)
END = ord("$")


def decode(ids: list[int]) -> str:
    return "".join(chr(token) for token in ids)


def preprocessing(inputs: Mapping[str, Any]) -> dict[str, Any]:
    ids = [ord(letter) for letter in inputs["QUERY"].reshape(-1)[0].decode()]
    end = inputs.get("END_ID", np.array([[END]], dtype=np.int32))
    none = np.array([[[0], [-1]]], dtype=np.int32)
    return {
        "INPUT_ID": np.array([ids], dtype=np.int32),
        "REQUEST_INPUT_LEN": np.array([[len(ids)]], dtype=np.int32),
        "OUT_END_ID": end,
        "OUT_PAD_ID": np.array([[0]], dtype=np.int32),
        "STOP_WORDS_IDS": none,
        "BAD_WORDS_IDS": none,
    }


def alphabet(known: list[int]) -> int:
    return ord("a") + (known[-1] + 1 - ord("a")) % 26


def engine(rule: Callable[[list[int]], int] = alphabet) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    def answer(inputs: Mapping[str, Any]) -> dict[str, Any]:
        known = inputs["input_ids"].reshape(-1).tolist()
        new: list[int] = []
        for _ in range(inputs["request_output_len"].item()):
            new.append(rule(known))
            known.append(new[-1])
        draft = inputs.get("draft_input_ids")
        if draft is not None:
            new = new[: count_accepted(draft.reshape(-1).tolist(), new) + 1]
        return {"output_ids": np.array([[new]], dtype=np.int32), "sequence_length": np.array([[len(new)]], dtype=np.int32)}

    return answer


@pytest.fixture
def service(triton: Any) -> Any:
    triton.models = {"preprocessing": preprocessing, "tensorrt_llm": engine(), "tensorrt_llm_draft": engine()}
    parameters = {
        "tensorrt_llm_draft_model_name": "tensorrt_llm_draft",
        "num_draft_tokens": "4",
        "max_input_tokens": "90",
        "max_sequence_tokens": "100",
        "adaptive": "false",
    }
    return Service(triton, Defaults.from_parameters(parameters), decode)


@pytest.fixture
def ask(service: Any, triton: Any, text: Any) -> Callable[..., Any]:
    def run(prompt: str = "xya", max_tokens: int = 20, sender: Any = None, **inputs: Any) -> Any:
        values = {"text_input": text(prompt), "max_tokens": np.array([[max_tokens]], dtype=np.int32), **inputs}
        request = triton.Request(values, OUTPUTS, sender or triton.Sender())
        service.submit(request)
        service.close()
        return request.sender.responses

    return run


def flag(value: bool) -> Any:
    return np.array([[value]])


def number(value: float, dtype: Any = np.int32) -> Any:
    return np.array([[value]], dtype=dtype)


def shown(responses: Any) -> str:
    return "".join(response.arrays()["text_output"][0, 0].decode() for response, _ in responses)


def test_one_answer_with_figures(ask: Any):
    ((response, final),) = ask()
    arrays = response.arrays()
    assert final == 1
    assert arrays["text_output"].tolist() == [[b"bcdefghijklmnopqrstu"]]
    assert arrays["output_ids"].shape == (1, 20)
    assert arrays["num_input_tokens"].tolist() == [[3]]
    assert arrays["num_output_tokens"].tolist() == [[20]]
    assert arrays["total_draft_tokens"].item() == arrays["total_accepted_draft_tokens"].item() > 0
    assert arrays["num_rounds"].item() == 5


def test_streams_each_round(ask: Any):
    responses = ask(stream=flag(True))
    assert shown(responses) == "bcdefghijklmnopqrstu"
    assert [final for _, final in responses] == [0] * (len(responses) - 1) + [1]
    assert len(responses) > 3
    assert responses[0][0].arrays()["output_ids"].tolist() == [[ord("b")]]
    assert sum(response.arrays()["output_ids"].size for response, _ in responses) == 20


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("drafts", [0, 4])
def test_stop_words_cut_inside_an_accepted_block(ask: Any, text: Any, stream: bool, drafts: int):
    responses = ask(stop_words=text("zz", "ghi"), stream=flag(stream), num_draft_tokens=number(drafts))
    assert shown(responses) == "bcdef"
    assert responses[-1][0].arrays()["num_output_tokens"].item() == 8


def test_every_model_call_excludes_the_input_and_says_how_to_sample(ask: Any, triton: Any):
    ask(temperature=number(0.5, np.float32), seed=number(9, np.uint64), repetition_penalty=number(1.2, np.float32))
    target = [inputs for model, inputs in triton.calls if model == "tensorrt_llm"]
    draft = [inputs for model, inputs in triton.calls if model == "tensorrt_llm_draft"]
    assert all(inputs["exclude_input_in_output"].all() for inputs in target + draft)
    assert all(inputs["repetition_penalty"].item() == pytest.approx(1.2) for inputs in target + draft)
    assert all(inputs["temperature"].item() == pytest.approx(0.5) for inputs in target)
    assert all(inputs["runtime_top_k"].item() == 1 and "temperature" not in inputs and "seed" not in inputs for inputs in draft)
    assert target[0]["seed"].item() == 9
    assert len({inputs["seed"].item() for inputs in target}) == len(target)


def test_greedy_is_said(ask: Any, triton: Any):
    ask()
    assert all(inputs["runtime_top_k"].item() == 1 for model, inputs in triton.calls if model.startswith("tensorrt"))


def test_several_end_ids(triton: Any, text: Any):
    triton.models = {"preprocessing": preprocessing, "tensorrt_llm": engine()}
    service = Service(triton, Defaults.from_parameters({"end_ids": f"{END},{ord('f')}"}), decode)
    request = triton.Request({"text_input": text("a"), "max_tokens": number(20)}, OUTPUTS)
    service.submit(request)
    service.close()
    assert shown(request.sender.responses) == "bcde"
    (call,) = [inputs for model, inputs in triton.calls if model == "tensorrt_llm"]
    assert call["end_id"].item() == END
    assert call["stop_words_list"].tolist() == [[[ord("f")], [1]]]


def test_end_ids_are_banned_while_the_minimum_lies_beyond_the_call(ask: Any, triton: Any):
    ask(min_tokens=number(18), num_draft_tokens=number(0))
    first, second = [inputs for model, inputs in triton.calls if model == "tensorrt_llm"]
    assert first["bad_words_list"].tolist() == [[[END], [1]]]
    assert "min_tokens" not in first
    assert "bad_words_list" not in second
    assert second["min_tokens"].item() == 2


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ({"max_tokens": number(0)}, "max_tokens"),
        ({"max_tokens": number(98)}, "more than the engine's 100 tokens"),
        ({"num_draft_tokens": number(-1)}, "num_draft"),
    ],
)
def test_bad_values_are_invalid_arguments(service: Any, triton: Any, text: Any, inputs: Any, words: str):
    request = triton.Request({"text_input": text("abc"), "max_tokens": number(5), **inputs}, OUTPUTS)
    service.submit(request)
    service.close()
    refused(request, triton, words)


def refused(request: Any, triton: Any, words: str):
    ((response, final),) = request.sender.responses
    assert final == 1
    assert words in response.failure.text
    assert response.failure.kind == triton.TritonError.INVALID_ARG


def test_a_prompt_beyond_the_limit_is_refused(service: Any, triton: Any, text: Any):
    request = triton.Request({"text_input": text("a" * 91), "max_tokens": number(1)}, OUTPUTS)
    service.submit(request)
    service.close()
    refused(request, triton, "prompt (91 tokens) is longer than the 90 tokens")


def test_the_target_never_sees_an_id_that_it_does_not_have(ask: Any, service: Any, triton: Any):
    """A draft engine whose vocabulary is padded wider proposes id 130 now and then."""
    triton.models["tensorrt_llm_draft"] = engine(lambda known: 130 if len(known) % 5 == 0 else alphabet(known))
    service.defaults = replace(service.defaults, lookup=False, shared_vocab_size=128)
    assert shown(ask()) == "bcdefghijklmnopqrstu"
    drafted = [inputs["draft_input_ids"] for model, inputs in triton.calls if model == "tensorrt_llm" and "draft_input_ids" in inputs]
    assert drafted
    assert max(ids.max() for ids in drafted) < 128


def test_serves_on_when_the_draft_model_is_gone(service: Any, triton: Any, text: Any):
    triton.models["tensorrt_llm_draft"] = lambda inputs: triton.TritonError("stub is dead", triton.TritonError.INTERNAL)
    requests = [triton.Request({"text_input": text("a"), "max_tokens": number(20)}, OUTPUTS) for _ in range(3)]
    for request in requests:
        service.submit(request)
    service.close()
    assert {shown(request.sender.responses) for request in requests} == {"bcdefghijklmnopqrstu"}
    assert len([line for line in triton.log if "target alone" in line]) == 1


def test_a_dead_target_is_unavailable(ask: Any, triton: Any):
    triton.models["tensorrt_llm"] = lambda inputs: triton.TritonError("stub is dead", triton.TritonError.INTERNAL)
    ((response, _),) = ask()
    assert response.failure.kind == triton.TritonError.UNAVAILABLE
    assert "tensorrt_llm: stub is dead" in response.failure.text


def test_a_defect_still_ends_the_answer(ask: Any, triton: Any):
    triton.models["tensorrt_llm"] = lambda inputs: {"nothing": np.zeros(1)}
    ((response, final),) = ask()
    assert final == 1
    assert response.failure.kind == triton.TritonError.INTERNAL


def test_cancellation_stops_between_rounds(ask: Any, triton: Any):
    (response, final) = ask(sender=triton.Sender(cancelled_after=0))[-1]
    assert final == 1
    assert response.failure.kind == triton.TritonError.CANCELLED


def test_echo_puts_the_prompt_before_the_answer(ask: Any):
    assert shown(ask(max_tokens=2, exclude_input_in_output=flag(False))) == "xyabc"


def test_turns_requests_away_when_full(triton: Any, text: Any):
    triton.models = {"preprocessing": preprocessing, "tensorrt_llm": engine()}
    service = Service(triton, Defaults.from_parameters({"max_concurrent_requests": "1"}), decode, waiting_per_thread=0)
    service._room.acquire()
    request = triton.Request({"text_input": text("a"), "max_tokens": number(2)}, OUTPUTS)
    service.submit(request)
    ((response, final),) = request.sender.responses
    assert (final, response.failure.kind) == (1, triton.TritonError.UNAVAILABLE)
    service.close()


def by_row(responses: Any) -> dict[int, str]:
    texts: dict[int, str] = {}
    for response, _ in responses:
        arrays = response.arrays()
        row = arrays["batch_index"].item()
        texts[row] = texts.get(row, "") + arrays["text_output"][0, 0].decode()
    return texts


@pytest.mark.parametrize("stream", [True, False])
def test_two_prompts_in_one_request_are_both_answered(service: Any, triton: Any, stream: bool):
    prompts = np.array([[b"xya"], [b"xym"]], dtype=np.object_)
    lengths = np.array([[4], [6]], dtype=np.int32)
    values = {"text_input": prompts, "max_tokens": lengths, "stream": np.array([[stream], [stream]])}
    request = triton.Request(values, (*OUTPUTS, "batch_index"), triton.Sender())
    service.submit(request)
    service.close()
    responses = request.sender.responses
    assert by_row(responses) == {0: "bcde", 1: "nopqrs"}
    assert [final for _, final in responses] == [0] * (len(responses) - 1) + [1]


def test_one_wrong_prompt_ends_the_request_with_one_error(service: Any, triton: Any):
    prompts = np.array([[b"xya"], [b"x" * 95]], dtype=np.object_)
    values = {"text_input": prompts, "max_tokens": np.array([[4], [4]], dtype=np.int32)}
    request = triton.Request(values, OUTPUTS, triton.Sender())
    service.submit(request)
    service.close()
    errors = [(response, final) for response, final in request.sender.responses if response.failure is not None]
    assert len(errors) == 1
    assert "longer than the 90 tokens" in errors[0][0].failure.text
    assert [final for _, final in request.sender.responses].count(1) == 1
    assert request.sender.responses[-1][1] == 1
