"""Batches through the compute-free engine: one answer each, errors alone, a verification is one pass."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plugins.engines.openvino.triton_backend import null_engine
from plugins.engines.openvino.triton_backend.backend import Backend, Counts, IncomingRequest, Refusal
from plugins.engines.openvino.triton_backend.parse import parse
from plugins.engines.openvino.triton_backend.runtimes import Runtime, runtime_of

VOCAB = 50
ENGINE = null_engine.Engine(null_engine.NullRecord(VOCAB))
RUNTIME = Runtime(null_engine.Engine, null_engine.Request, null_engine.Sampling, null_engine.RequestError)
ALL = frozenset(
    {
        "output_ids",
        "sequence_length",
        "total_draft_tokens",
        "total_accepted_draft_tokens",
        "acceptance_rate",
        "num_input_tokens",
        "generation_logits",
    }
)


def incoming(ids: list[int], count: int, wanted: frozenset[str] = ALL, **tensors: Any) -> IncomingRequest:
    base = {
        "input_ids": np.array([ids], dtype=np.int32),
        "input_lengths": np.array([[len(ids)]], dtype=np.int32),
        "request_output_len": np.array([[count]], dtype=np.int32),
        "exclude_input_in_output": np.array([[True]]),
    }
    return IncomingRequest({**base, **tensors}.get, wanted)


def tokens(answer: Any) -> list[int]:
    assert not isinstance(answer, Refusal), answer
    return answer["output_ids"].reshape(-1).tolist()


def plain(ids: list[int], count: int) -> list[int]:
    return list(ENGINE.generate([null_engine.Request(tuple(ids), count)])[0].output_ids)


@pytest.mark.parametrize("kind", ["null", "openvino"])
def test_both_runtimes_can_be_had_and_take_what_the_backend_sends(tmp_path: Path, kind: str) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"tandem": {"kind": kind}}))
    runtime = runtime_of(tmp_path)
    request = Backend(ENGINE, runtime)._engine_request(parse(incoming([1, 2], 3).read, exclude_input=False))
    assert (request.input_ids, request.max_new_tokens) == ((1, 2), 3)
    assert issubclass(runtime.RequestError, Exception)


def test_one_answer_for_each_request_in_order():
    answers = Backend(ENGINE, RUNTIME).answer([incoming([1, 2], 3), incoming([9], 5)])
    assert [tokens(answer) for answer in answers] == [plain([1, 2], 3), plain([9], 5)]
    assert answers[1]["sequence_length"].tolist() == [[5]]


def test_bad_requests_fail_alone():
    answers = Backend(ENGINE, RUNTIME).answer([incoming([1], 0), incoming([VOCAB], 2), incoming([1], 2)])
    assert isinstance(answers[0], Refusal)
    assert isinstance(answers[1], Refusal)
    assert "input_ids is 50" in answers[1].message
    assert tokens(answers[2]) == plain([1], 2)


@pytest.mark.parametrize("right", [0, 1, 2, 3])
def test_a_verification_answers_accepted_tokens_and_one_more(right: int):
    own = plain([4], 4)
    draft = [token if i < right else (token + 1) % VOCAB for i, token in enumerate(own[:3])]
    (answer,) = Backend(ENGINE, RUNTIME).answer([incoming([4], 4, draft_input_ids=np.array([draft], dtype=np.int32))])
    assert tokens(answer) == own[: right + 1]
    assert answer["total_draft_tokens"].item() == 3
    assert answer["total_accepted_draft_tokens"].item() == right
    assert answer["acceptance_rate"].item() == pytest.approx(right / 3)


def test_input_is_part_of_the_output_unless_excluded():
    (answer,) = Backend(ENGINE, RUNTIME).answer([incoming([1, 2], 2, exclude_input_in_output=np.array([[False]]))])
    assert tokens(answer) == [1, 2, *plain([1, 2], 2)]


def test_only_wanted_outputs_are_built():
    (answer,) = Backend(ENGINE, RUNTIME).answer([incoming([1], 2, frozenset({"output_ids"}))])
    assert set(answer) == {"output_ids"}


def test_logits_come_when_asked_by_flag():
    flags = {"return_generation_logits": np.array([[True]]), "return_context_logits": np.array([[True]])}
    (answer,) = Backend(ENGINE, RUNTIME).answer([incoming([1, 2, 3], 2, frozenset({"generation_logits", "context_logits"}), **flags)])
    assert answer["generation_logits"].shape == (1, 1, 2, VOCAB)
    assert answer["context_logits"].shape == (1, 3, VOCAB)
    assert answer["generation_logits"].dtype == np.float32


def test_stop_requests_get_an_empty_answer():
    assert Backend(ENGINE, RUNTIME).answer([incoming([1], 1, stop=np.array([[True]]))]) == [{}]


def test_counts_reach_the_metrics():
    seen: list[Counts] = []
    draft = np.array([plain([1], 2)], dtype=np.int32)
    Backend(ENGINE, RUNTIME, on_batch=seen.append).answer([incoming([1], 3), incoming([1], 3, draft_input_ids=draft), incoming([1], 0)])
    assert (seen[0].generated_tokens, seen[0].drafted_tokens, seen[0].accepted_tokens) == (6, 2, 2)


def test_loads_the_engine_its_folder_names(tmp_path: Path):
    (tmp_path / "config.json").write_text(json.dumps({"tandem": {"kind": "null", "vocab_size": VOCAB, "wrong_every": 4}}))
    backend = Backend.load(
        {"gpt_model_path": str(tmp_path), "exclude_input_in_output": "true", "max_tokens_in_paged_kv_cache": "64"}, lambda counts: None
    )
    (answer,) = backend.answer([incoming([1, 2, 3], 3)])
    assert tokens(answer) != plain([1, 2, 3], 3)


def test_an_unknown_kind_is_refused(tmp_path: Path):
    (tmp_path / "config.json").write_text(json.dumps({"tandem": {"kind": "abacus"}}))
    with pytest.raises(ValueError, match="engine kind is 'abacus', needed: one of null, openvino"):
        runtime_of(tmp_path)
