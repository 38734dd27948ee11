"""Typed values of a Triton model configuration, the part of the schema that Tandem uses."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

DataType = Literal["BOOL", "INT32", "INT64", "UINT64", "FP16", "FP32", "STRING"]


@dataclass(frozen=True)
class Tensor:
    """An input or output. `dims` without the batch dimension, -1 for any size; `scalar` reshapes [1] to [] for the backend."""

    name: str
    data_type: DataType
    dims: tuple[int, ...]
    optional: bool = False
    scalar: bool = False
    ragged: bool = False


@dataclass(frozen=True)
class DynamicBatching:
    """How requests are gathered; `max_queue_size` 0 means no limit."""

    preferred_batch_size: int
    max_queue_delay_us: int = 0
    max_queue_size: int = 0


@dataclass(frozen=True)
class EnsembleStep:
    """One model of an ensemble: its tensor names to the ensemble's."""

    model: str
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]


@dataclass(frozen=True)
class Model:
    """One model configuration: either a `backend` or, with `steps`, an ensemble."""

    name: str
    max_batch_size: int
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    backend: str = ""
    decoupled: bool = False
    dynamic_batching: DynamicBatching | None = None
    instances: int = 1
    parameters: Mapping[str, str] = field(default_factory=dict)
    steps: tuple[EnsembleStep, ...] = ()
