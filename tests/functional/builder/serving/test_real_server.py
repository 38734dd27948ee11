"""A real Triton server with small scripted models: start, identity, streams, cancellation, deadlines, failures, no leavings."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from builder.api import ServerNeeds
from builder.errors import MissingError, StageError
from builder.serving.client import Client
from builder.serving.generation import GenerateRequest
from builder.serving.ports import free_ports
from builder.serving.transport import TritonTransport
from builder.serving.tritonserver import RunningServer, ServerSettings, no_probe, running_server, shm_prefix

pytestmark = pytest.mark.functional

CONFIG = """\
name: "tensorrt_llm_bls"
backend: "python"
max_batch_size: 4
model_transaction_policy { decoupled: true }
input [
  { name: "text_input" data_type: TYPE_STRING dims: [ 1 ] },
  { name: "max_tokens" data_type: TYPE_INT32 dims: [ 1 ] },
  { name: "stream" data_type: TYPE_BOOL dims: [ 1 ] optional: true },
  { name: "exclude_input_in_output" data_type: TYPE_BOOL dims: [ 1 ] optional: true },
  { name: "return_perf_metrics" data_type: TYPE_BOOL dims: [ 1 ] optional: true }
]
output [
  { name: "text_output" data_type: TYPE_STRING dims: [ -1 ] },
  { name: "output_ids" data_type: TYPE_INT32 dims: [ -1 ] },
  { name: "num_rounds" data_type: TYPE_INT32 dims: [ 1 ] }
]
instance_group [ { count: 1 kind: KIND_CPU } ]
"""
MODEL = '''\
import threading, time
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """Counts from 0, a token every 20 ms; the text "bad" is refused; cancelled requests leave a mark."""

    def execute(self, requests):
        for request in requests:
            threading.Thread(target=self.answer, args=(request, request.get_response_sender())).start()

    def answer(self, request, sender):
        text = pb_utils.get_input_tensor_by_name(request, "text_input").as_numpy().reshape(-1)[0].decode()
        final = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL
        if text == "bad":
            error = pb_utils.TritonError("text_input: bad")
            sender.send(pb_utils.InferenceResponse(error=error), final)
            return
        for i in range(int(pb_utils.get_input_tensor_by_name(request, "max_tokens").as_numpy().reshape(-1)[0])):
            if request.is_cancelled():
                open(text, "w").close()
                break
            sender.send(pb_utils.InferenceResponse([
                pb_utils.Tensor("text_output", np.array([[f"{i} ".encode()]], object)),
                pb_utils.Tensor("output_ids", np.array([[i]], np.int32)),
                pb_utils.Tensor("num_rounds", np.array([[i + 1]], np.int32)),
            ]))
            time.sleep(0.02)
        sender.send(flags=final)
'''

TARGET_CONFIG = """\
name: "tensorrt_llm"
backend: "tensorrtllm"
max_batch_size: 4
input [
  { name: "input_ids" data_type: TYPE_INT32 dims: [ -1 ] },
  { name: "input_lengths" data_type: TYPE_INT32 dims: [ 1 ] reshape: { shape: [ ] } },
  { name: "request_output_len" data_type: TYPE_INT32 dims: [ 1 ] reshape: { shape: [ ] } },
  { name: "exclude_input_in_output" data_type: TYPE_BOOL dims: [ 1 ] reshape: { shape: [ ] } optional: true },
  { name: "return_context_logits" data_type: TYPE_BOOL dims: [ 1 ] reshape: { shape: [ ] } optional: true }
]
output [
  { name: "output_ids" data_type: TYPE_INT32 dims: [ -1, -1 ] },
  { name: "sequence_length" data_type: TYPE_INT32 dims: [ -1 ] },
  { name: "context_logits" data_type: TYPE_FP32 dims: [ -1, -1 ] }
]
instance_group [ { count: 1 kind: KIND_CPU } ]
"""
TARGET = '''\
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """Logits of 50,000 tokens: each row is its position."""

    def execute(self, requests):
        return [self.answer(pb_utils.get_input_tensor_by_name(r, "input_ids").as_numpy()) for r in requests]

    def answer(self, ids):
        rows = np.repeat(np.arange(ids.shape[1], dtype=np.float32)[None, :, None], 50000, axis=2)
        return pb_utils.InferenceResponse([
            pb_utils.Tensor("output_ids", np.zeros((1, 1, 1), np.int32)),
            pb_utils.Tensor("sequence_length", np.ones((1, 1), np.int32)),
            pb_utils.Tensor("context_logits", rows),
        ])
'''
PARENT = """\
import time
from pathlib import Path
from builder.api import ServerNeeds
from builder.serving.ports import free_ports
from builder.serving.tritonserver import ServerSettings, running_server, shm_prefix

folder = Path("{folder}")
with running_server(ServerSettings(folder / "repo", folder / "run", free_ports(), ServerNeeds(), None, 60, 2)) as server:
    print(server.pid, shm_prefix(server.server_id), flush=True)
    time.sleep(60)
"""
BROKEN = """\
class TritonPythonModel:
    def initialize(self, args):
        raise ValueError("no engine here")
"""


def settings(folder: Path, needs: ServerNeeds | None = None) -> ServerSettings:
    needs = needs or ServerNeeds()
    return ServerSettings(folder / "repo", folder / "run", free_ports(), needs, None, start_timeout_s=60, exit_timeout_s=2)


def write_model(repository: Path, code: str) -> None:
    folder = repository / "tensorrt_llm_bls" / "1"
    folder.mkdir(parents=True)
    (folder / "model.py").write_text(code)
    (folder.parent / "config.pbtxt").write_text(CONFIG)


def write_target(repository: Path, backend: Path) -> ServerNeeds:
    """A model without code, and the Python-based backend that runs it."""
    folder = repository / "tensorrt_llm" / "1"
    folder.mkdir(parents=True)
    (folder / ".keep").write_text("")
    (folder.parent / "config.pbtxt").write_text(TARGET_CONFIG)
    backend.mkdir()
    (backend / "model.py").write_text(TARGET)
    return ServerNeeds({"tensorrtllm": backend})


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("server")
    write_model(folder / "repo", MODEL)
    needs = write_target(folder / "repo", folder / "backend")
    before = regions()
    with running_server(settings(folder, needs)) as running:
        yield running
    assert not running.alive
    assert not [name for name in regions() - before if shm_prefix(running.server_id) in name]
    assert not list((folder / "repo").rglob("__pycache__"))


def test_an_answer_comes_in_pieces(server: RunningServer) -> None:
    pieces: list[str] = []
    with server.client() as client:
        answer = client.generate(GenerateRequest("hi", 3, stream=True), pieces.append)
    assert pieces == ["0 ", "1 ", "2 "]
    assert (answer.output_ids, answer.rounds) == ((0, 1, 2), 3)
    assert answer.seconds_to_first_token < answer.seconds
    assert server.version == "2.51.0"


def test_regions_of_every_backend_carry_the_servers_prefix(server: RunningServer) -> None:
    assert len([name for name in regions() if name.startswith(shm_prefix(server.server_id))]) == 2


def test_large_logits_come_whole(server: RunningServer) -> None:
    with server.client() as client:
        logits = client.context_logits(range(64))
    assert logits.shape == (64, 50000)
    assert logits[:, 0].tolist() == list(range(64))


def test_one_client_serves_several_threads(server: RunningServer) -> None:
    found: list[tuple[int, ...]] = []
    with server.client() as client:
        threads = [threading.Thread(target=lambda: found.append(client.generate(GenerateRequest("hi", 5)).output_ids)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == [(0, 1, 2, 3, 4)] * 4


def test_the_servers_error_text_reaches_the_caller(server: RunningServer) -> None:
    with server.client() as client, pytest.raises(StageError, match="text_input: bad") as caught:
        client.generate(GenerateRequest("bad", 3))
    assert caught.value.finding.code == "SERVER-REQUEST"


def test_a_missed_deadline_cancels(server: RunningServer, tmp_path: Path) -> None:
    mark = tmp_path / "cancelled"
    with server.client() as client, pytest.raises(StageError, match=r"within 0\.3 s") as caught:
        client.generate(GenerateRequest(str(mark), 500, deadline_s=0.3))
    assert caught.value.finding.code == "DEADLINE"
    assert appears(mark)


def test_an_interruption_cancels(server: RunningServer, tmp_path: Path) -> None:
    def interrupt(_text: str) -> None:
        raise KeyboardInterrupt

    mark = tmp_path / "cancelled"
    with server.client() as client, pytest.raises(KeyboardInterrupt):
        client.generate(GenerateRequest(str(mark), 500, stream=True), interrupt)
    assert appears(mark)


def test_nobody_there() -> None:
    with Client(TritonTransport(f"127.0.0.1:{free_ports().grpc}")) as client, pytest.raises(MissingError, match="no Triton server answers"):
        client.generate(GenerateRequest("hi", 1, deadline_s=5))


def test_a_model_that_fails_to_load_is_named_with_its_reason(tmp_path: Path) -> None:
    write_model(tmp_path / "repo", BROKEN)
    reason = "'tensorrt_llm_bls' failed to load: Internal: ValueError: no engine here"
    with pytest.raises(StageError, match=reason) as caught, running_server(settings(tmp_path)):
        pass
    assert caught.value.finding.code == "SERVER-START"
    assert Path(caught.value.log).is_file()
    assert caught.value.last_lines


def test_an_empty_repository_is_ready_but_has_no_models(tmp_path: Path) -> None:
    (tmp_path / "repo").mkdir()
    with running_server(settings(tmp_path), probe=no_probe) as running, running.client() as client:
        request = GenerateRequest("hi", 1)
        with pytest.raises(StageError, match="tensorrt_llm_bls"):
            client.generate(request)


def test_a_killed_parent_takes_server_stubs_and_shared_memory_with_it(tmp_path: Path) -> None:
    write_model(tmp_path / "repo", MODEL)
    code = PARENT.format(folder=str(tmp_path))
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid, prefix = parent.stdout.readline().split()
        assert any(name.startswith(prefix) for name in regions())
        parent.kill()
    assert comes_true(lambda: not Path(f"/proc/{pid}").exists() and not any(name.startswith(prefix) for name in regions()))


def regions() -> set[str]:
    return {p.name for p in Path("/dev/shm").iterdir()}


def appears(file: Path) -> bool:
    return comes_true(file.exists)


def comes_true(question: Callable[[], bool], within_s: float = 15) -> bool:
    until = time.monotonic() + within_s
    while not question() and time.monotonic() < until:
        time.sleep(0.05)
    return question()
