"""The packaged demo pair on the real Triton server, over gRPC and HTTP."""

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator

import numpy as np
import pytest

from builder.errors import StageError
from builder.gates.prompts import load_prompts, spread_over_kinds
from builder.pipeline.serve import serving
from builder.pipeline.session import Session
from builder.serving.client import Client
from builder.serving.generation import GenerateRequest, Generation
from builder.serving.transport import Tensor
from builder.serving.tritonserver import RunningServer

pytestmark = pytest.mark.functional
PROMPT = "Write a short story about a lighthouse keeper."


@pytest.fixture(scope="module")
def server(demo_session: Session) -> Iterator[RunningServer]:
    with serving(demo_session, ports=None, tritonserver=None, progress=lambda _text, _share: None) as running:
        yield running


@pytest.fixture(scope="module")
def client(server: RunningServer) -> Iterator[Client]:
    with server.client() as made:
        yield made


def ask(client: Client, text: str = PROMPT, *, max_tokens: int = 48, **options: object) -> Generation:
    return client.generate(GenerateRequest(text, max_tokens, 60.0, chat=True, **options))  # type: ignore[arg-type]


def test_speculative_output_is_target_only_output(client: Client) -> None:
    """24 prompts of every kind x 64 tokens, token ids compared; the same holds when text is streamed."""
    prompts = spread_over_kinds(load_prompts(), 24)
    drafted = accepted = 0
    for prompt in prompts:
        alone = ask(client, prompt.text, max_tokens=64, num_draft_tokens=0)
        pair = ask(client, prompt.text, max_tokens=64)
        streamed = ask(client, prompt.text, max_tokens=64, stream=True)
        assert alone.drafted == 0
        assert pair.output_ids == alone.output_ids == streamed.output_ids, prompt.id
        assert pair.text == alone.text == streamed.text, prompt.id
        drafted, accepted = drafted + pair.drafted, accepted + pair.accepted
    assert 0 < accepted < drafted


@pytest.mark.parametrize("lookup", [True, False])
def test_both_sources_of_drafts_are_lossless(client: Client, lookup: bool) -> None:
    text = "Repeat this sentence word for word: the quick brown fox jumps over the lazy dog near the old stone bridge."
    alone = ask(client, text, num_draft_tokens=0)
    pair = ask(client, text, lookup=lookup)
    assert pair.output_ids == alone.output_ids
    assert lookup or pair.lookup_drafted == 0


def test_stream_comes_in_pieces_that_make_the_text(client: Client) -> None:
    pieces: list[str] = []
    generation = client.generate(GenerateRequest(PROMPT, 48, 60.0, chat=True, stream=True), on_text=pieces.append)
    assert len(pieces) > 3
    assert "".join(pieces) == generation.text
    assert 0 < generation.seconds_to_first_token < generation.seconds


def test_stop_word_cuts_the_text_wherever_it_falls(client: Client) -> None:
    whole = ask(client).text
    for start in (5, 20, 41):
        word = whole[start : start + 6]
        for options in ({"num_draft_tokens": 0}, {}, {"stream": True}):
            assert ask(client, stop_words=(word,), **options).text == whole[: whole.index(word)]


@pytest.mark.parametrize("stream", [True, False])
def test_two_prompts_in_one_request_are_answered_with_drafts(client: Client, stream: bool) -> None:
    """Case 9 of the user reports: upstream's orchestrator refuses both streaming and batches when tokens are drafted."""
    prompts, columns = ("Name three rivers.", "Count from one to ten."), 2
    inputs = [
        Tensor("text_input", np.array([[text.encode()] for text in prompts], object), "BYTES"),
        Tensor("max_tokens", np.full((columns, 1), 24, np.int32), "INT32"),
        Tensor("num_draft_tokens", np.full((columns, 1), 4, np.int32), "INT32"),
        Tensor("stream", np.full((columns, 1), stream, np.bool_), "BOOL"),
        Tensor("apply_chat_template", np.full((columns, 1), True, np.bool_), "BOOL"),
    ]
    texts = ["", ""]
    for answer in client.transport.stream("tensorrt_llm_bls", inputs, 60.0):
        texts[int(answer["batch_index"].item())] += answer["text_output"].item().decode()
    assert texts == [ask(client, prompt, max_tokens=24).text for prompt in prompts]


def test_token_limit_is_kept(client: Client) -> None:
    for limit in (1, 2, 7):
        assert len(ask(client, max_tokens=limit).output_ids) == limit


def test_same_seed_same_sample(client: Client) -> None:
    first = ask(client, temperature=1.0, seed=7)
    assert ask(client, temperature=1.0, seed=7).output_ids == first.output_ids
    assert any(ask(client, temperature=1.0, seed=seed).output_ids != first.output_ids for seed in (8, 9))


def test_concurrent_clients_get_what_they_would_get_alone(server: RunningServer) -> None:
    prompts = [p.text for p in spread_over_kinds(load_prompts(), 8)]
    with server.client() as one:
        alone = [ask(one, text, max_tokens=24).output_ids for text in prompts]
    together: dict[int, tuple[int, ...]] = {}

    def work(index: int) -> None:
        with server.client() as own:
            together[index] = ask(own, prompts[index], max_tokens=24, num_draft_tokens=None if index % 2 else 0).output_ids

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(prompts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert [together.get(i) for i in range(len(prompts))] == alone


@pytest.mark.parametrize(
    ("options", "word"),
    [({"max_tokens": 0}, "max_tokens"), ({"max_tokens": 100_000}, "100000"), ({"num_draft_tokens": -1}, "num_draft_tokens")],
)
def test_bad_request_is_refused_and_the_next_one_served(client: Client, options: dict[str, int], word: str) -> None:
    with pytest.raises(StageError, match=word):
        ask(client, **options)
    assert ask(client, max_tokens=2).output_ids


def post(server: RunningServer, verb: str, **body: object) -> str:
    request = urllib.request.Request(
        f"http://{server.address}:{server.ports.http}/v2/models/tensorrt_llm_bls/{verb}", json.dumps(body).encode()
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return str(answer.read().decode())


def test_http_generate_and_stream(server: RunningServer, client: Client) -> None:
    expected = ask(client, max_tokens=16).text
    body = {"text_input": PROMPT, "max_tokens": 16, "apply_chat_template": True}
    assert json.loads(post(server, "generate", stream=False, **body))["text_output"] == expected
    events = [
        json.loads(line[6:]) for line in post(server, "generate_stream", stream=True, **body).splitlines() if line.startswith("data: ")
    ]
    assert "".join(e["text_output"] for e in events) == expected
    with pytest.raises(urllib.error.HTTPError):
        post(server, "generate", text_input=PROMPT)


def test_ensemble_answers_as_the_orchestrator_does(server: RunningServer, client: Client) -> None:
    expected = ask(client, max_tokens=16).text
    body = json.dumps({"text_input": PROMPT, "max_tokens": 16, "apply_chat_template": True, "exclude_input_in_output": True}).encode()
    url = f"http://{server.address}:{server.ports.http}/v2/models/ensemble/generate"
    with urllib.request.urlopen(urllib.request.Request(url, body), timeout=60) as answer:
        assert json.loads(answer.read())["text_output"] == expected


def test_logits_of_the_served_target(client: Client) -> None:
    ids = client.prompt_ids("The capital of France is", chat=False)
    rows = client.context_logits(ids)
    assert rows.shape[0] == len(ids)
    assert (rows[-1] == client.next_logits(ids)).all()
