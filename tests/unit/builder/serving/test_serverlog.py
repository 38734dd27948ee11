"""Real lines of Triton 2.51.0: the first failed model and its reason come out, noise stays behind."""

from pathlib import Path

from builder.serving.serverlog import last_lines, read_log, summarise_log

NO_GPU = """\
W1130 17:05:43.893546 5620 pinned_memory_manager.cc:273] "Unable to allocate pinned system memory, pinned memory pool will not be available"
I1130 17:05:43.893652 5620 cuda_memory_manager.cc:117] "CUDA memory pool disabled"
E1130 17:05:43.893742 5620 server.cc:241] "CudaDriverHelper has not been initialized."
Error: Failed to initialize NVML
W1130 17:05:45.631896 5620 metrics.cc:798] "DCGM unable to start: DCGM initialization error"
"""
RAISED = (
    NO_GPU
    + r"""I1130 17:05:45.478149 5620 pb_stub.cc:366] "Failed to initialize Python stub: ValueError: engine folder /no/such: config.json missing"
I1130 17:05:45.488714 5620 model_lifecycle.cc:839] "successfully loaded 'okm'"
E1130 17:05:45.630276 5620 backend_model.cc:692] "ERROR: Failed to create instance: ValueError: engine folder /no/such: config.json missing"
E1130 17:05:45.630504 5620 model_lifecycle.cc:642] "failed to load 'badm' version 1: Internal: ValueError: engine folder /no/such: config.json missing\n\nAt:\n  /repo/badm/1/model.py(3): initialize\n"
I1130 17:05:45.630521 5620 model_lifecycle.cc:777] "failed to load 'badm'"
error: creating server: Internal - failed to load all models
"""  # noqa: E501
)
NO_VERSION = NO_GPU + (
    "E1130 17:05:20.633453 5538 model_repository_manager.cc:724] \"failed to load model 'nover': at least one version must be "
    "available under the version policy of model 'nover'\"\n"
)
TAKEN = NO_GPU + (
    "I1130 17:05:25.7 5573 model_lifecycle.cc:839] \"successfully loaded 'a'\"\n"
    "+-------+\n| Model |\n+-------+\n"
    "error: failed to start GRPC service: Unavailable - Socket '127.0.0.1:8001' already in use\n"
)


def test_the_first_failed_model_and_where_it_raised() -> None:
    summary = summarise_log(RAISED)
    assert summary.model == "badm"
    assert summary.reason == "Internal: ValueError: engine folder /no/such: config.json missing (at /repo/badm/1/model.py(3): initialize)"
    assert summary.sentence.startswith("model 'badm' failed to load: Internal: ValueError")


def test_a_model_without_version() -> None:
    summary = summarise_log(NO_VERSION)
    assert (summary.model, summary.reason) == ("nover", "at least one version must be available under the version policy of model 'nover'")


def test_an_error_that_is_no_models() -> None:
    summary = summarise_log(TAKEN)
    assert summary.model == ""
    assert summary.sentence == "error: failed to start GRPC service: Unavailable - Socket '127.0.0.1:8001' already in use"


def test_no_gpu_is_no_error() -> None:
    summary = summarise_log(NO_GPU)
    assert (summary.error_lines, summary.sentence) == ((), "")


def test_last_lines_leave_tables_out() -> None:
    assert [line[:5] for line in last_lines(TAKEN, 2)] == ["I1130", "error"]


def test_a_log_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert read_log(tmp_path / "none.log") == ""
