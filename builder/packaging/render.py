"""Typed model values to the text of config.pbtxt, through Triton's own protobuf schema, read back and compared."""

from typing import Any

from builder.errors import MissingError, StageError
from builder.packaging.values import Model, Tensor

HEADER = "# Written by tandem; edit the pair file instead.\n"


def render(model: Model) -> str:
    """The text of config.pbtxt; the same text for the same values.

    Raises MissingError `PKG-TRITONCLIENT` without tritonclient, StageError `PKG-ROUND-TRIP` when the text does not read back.
    """
    pb2, text_format = _schema()
    message = _message(pb2, model)
    text = HEADER + str(text_format.MessageToString(message, use_short_repeated_primitives=True))
    if text_format.Parse(text, pb2.ModelConfig()) != message:
        raise StageError("PKG-ROUND-TRIP", f"the configuration of {model.name} does not read back as it was written")
    return text


def _schema() -> tuple[Any, Any]:
    try:
        from google.protobuf import text_format
        from tritonclient.grpc import model_config_pb2
    except ImportError as error:
        raise MissingError(
            "PKG-TRITONCLIENT",
            f"packaging writes config.pbtxt with tritonclient, which is not installed: {error}",
            fix="pip install 'trt-tandem[serve]'",
        ) from error
    return model_config_pb2, text_format


def _message(pb2: Any, model: Model) -> Any:
    message = pb2.ModelConfig(name=model.name, max_batch_size=model.max_batch_size)
    message.input.extend(_input(pb2, tensor) for tensor in model.inputs)
    message.output.extend(_output(pb2, tensor) for tensor in model.outputs)
    for key, value in model.parameters.items():
        message.parameters[key].string_value = value
    if model.steps:
        message.platform = "ensemble"
        message.ensemble_scheduling.step.extend(_steps(pb2, model))
    else:
        message.backend = model.backend
        message.instance_group.add(count=model.instances, kind=pb2.ModelInstanceGroup.KIND_CPU)
        message.model_transaction_policy.decoupled = model.decoupled
        _set_batching(message, model)
    return message


def _set_batching(message: Any, model: Model) -> None:
    batching = model.dynamic_batching
    if batching is not None:
        message.dynamic_batching.preferred_batch_size.append(batching.preferred_batch_size)
        message.dynamic_batching.max_queue_delay_microseconds = batching.max_queue_delay_us
        message.dynamic_batching.default_queue_policy.max_queue_size = batching.max_queue_size


def _input(pb2: Any, tensor: Tensor) -> Any:
    message = pb2.ModelInput(
        name=tensor.name, data_type=_data_type(pb2, tensor), dims=tensor.dims, optional=tensor.optional, allow_ragged_batch=tensor.ragged
    )
    if tensor.scalar:
        message.reshape.SetInParent()
    return message


def _output(pb2: Any, tensor: Tensor) -> Any:
    return pb2.ModelOutput(name=tensor.name, data_type=_data_type(pb2, tensor), dims=tensor.dims)


def _data_type(pb2: Any, tensor: Tensor) -> Any:
    return pb2.DataType.Value(f"TYPE_{tensor.data_type}")


def _steps(pb2: Any, model: Model) -> Any:
    for step in model.steps:
        yield pb2.ModelEnsembling.Step(model_name=step.model, model_version=-1, input_map=dict(step.inputs), output_map=dict(step.outputs))
