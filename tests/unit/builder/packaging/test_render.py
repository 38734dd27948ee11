"""config.pbtxt: rendered through Triton's schema, stable, and the same as the golden files."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from builder.packaging import models
from builder.packaging.plan import PackagePlan
from builder.packaging.render import HEADER, render
from builder.packaging.values import DynamicBatching, EnsembleStep, Model, Tensor

pb2 = pytest.importorskip("tritonclient.grpc.model_config_pb2")
text_format = pytest.importorskip("google.protobuf.text_format")

GOLDEN = Path(__file__).parents[3] / "golden" / "cpu"
MODELS: dict[str, Callable[[PackagePlan], Model]] = {
    "preprocessing": models.preprocessing,
    "postprocessing": models.postprocessing,
    "tensorrt_llm": models.tensorrt_llm,
    "tensorrt_llm_draft": models.tensorrt_llm_draft,
    "tensorrt_llm_bls": lambda plan: models.tensorrt_llm_bls(plan, end_ids=(2, 7), max_sequence_tokens=128, shared_vocab_size=512),
    "ensemble": models.ensemble,
}


def parsed(model: Model) -> Any:
    return text_format.Parse(render(model), pb2.ModelConfig())


@pytest.mark.parametrize("name", sorted(MODELS))
def test_equals_the_golden_file(name: str, golden_plan: PackagePlan):
    assert render(MODELS[name](golden_plan)) == (GOLDEN / name / "config.pbtxt").read_text()


def test_values_land_where_triton_looks():
    model = Model(
        "m",
        4,
        (Tensor("a", "INT32", (2, -1), optional=True, ragged=True), Tensor("b", "FP32", (1,), scalar=True)),
        (Tensor("c", "STRING", (-1,)),),
        "python",
        decoupled=True,
        dynamic_batching=DynamicBatching(4, 100, 7),
        instances=2,
        parameters={"z": "1", "a": 'with "quotes"\n'},
    )
    message = parsed(model)
    assert message.input[0].dims == [2, -1]
    assert message.input[0].optional
    assert message.input[0].allow_ragged_batch
    assert message.input[1].HasField("reshape")
    assert message.output[0].data_type == pb2.TYPE_STRING
    assert message.model_transaction_policy.decoupled
    assert message.dynamic_batching.default_queue_policy.max_queue_size == 7
    assert message.instance_group[0].count == 2
    assert message.instance_group[0].kind == pb2.ModelInstanceGroup.KIND_CPU
    assert message.parameters["a"].string_value == 'with "quotes"\n'


def test_ensemble_has_steps_and_no_backend():
    message = parsed(Model("e", 1, (), (), steps=(EnsembleStep("m", {"IN": "in"}, {"OUT": "out"}),)))
    assert message.platform == "ensemble"
    assert message.backend == ""
    assert message.ensemble_scheduling.step[0].input_map["IN"] == "in"


def test_order_of_parameters_does_not_matter():
    first, second = ({"a": "1", "b": "2"}, {"b": "2", "a": "1"})
    assert render(Model("m", 1, (), (), "python", parameters=first)) == render(Model("m", 1, (), (), "python", parameters=second))


def test_says_where_it_comes_from():
    assert render(Model("m", 1, (), (), "python")).startswith(HEADER)
