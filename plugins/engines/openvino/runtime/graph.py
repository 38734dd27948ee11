"""From the stateful IR on disk to the compiled paged model.

A paged model can be neither saved as IR and read back nor exported as a blob (OpenVINO 2026.4), so this is done at every load.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

SAMPLED_ROWS = "sampled_tokens_indices"
"""Input [rows] int64: the fed tokens whose logits are wanted."""


_WINDOWS = ["tandem", "windows"]
_WINDOW_PORT = 10


def compile_paged(
    model_file: Path, cache: Mapping[str, str], threads: int | None, widths: Sequence[int], *, fixed_shapes: bool
) -> list[Any]:
    """Compiled models for any number of rows, then for each width; cache blocks are inputs, logits are those of the sampled rows.

    `cache`: compile properties of the cache. A model of fixed width is fed, and samples, exactly so many rows; with `fixed_shapes` that is
    known when it is compiled. Raises RuntimeError when this CPU cannot compute in the precision that the cache needs.
    """
    import openvino as ov
    from openvino._offline_transformations import paged_attention_transformation

    core = ov.Core()
    properties = _properties(cache, threads)
    if properties["INFERENCE_PRECISION_HINT"] == "bf16" and "BF16" not in core.get_property("CPU", "OPTIMIZATION_CAPABILITIES"):
        raise RuntimeError("a bf16 cache needs a CPU that computes in bf16 (AVX512-BF16 or AMX); use int8 or fp32")
    model = core.read_model(model_file)
    paged_attention_transformation(model)
    _apply_windows(model)
    _gather_rows(model)
    compiled = [core.compile_model(model, "CPU", properties)]
    for width in widths:
        if fixed_shapes and properties["INFERENCE_PRECISION_HINT"] == "f32":  # in bf16 known shapes take kernels with other last bits
            model.reshape({name: [width] for name in ("input_ids", "position_ids", SAMPLED_ROWS)})
        compiled.append(core.compile_model(model, "CPU", properties))
    return compiled


def note_windows(model: Any, windows: list[int]) -> None:
    """Write the windows of the layers, in tokens, 0 for none, into a model that will be saved."""
    if any(windows):
        model.set_rt_info(",".join(map(str, windows)), _WINDOWS)


def _apply_windows(model: Any) -> None:
    """Give each layer its window: the transformation drops the mask, and a traced one would not grow with the sequence."""
    from openvino import opset13 as op

    if not model.has_rt_info(_WINDOWS):
        return
    windows = [int(text) for text in str(model.get_rt_info(_WINDOWS).value).split(",")]
    nodes = [node for node in model.get_ordered_ops() if node.get_type_name() == "PagedAttentionExtension"]
    for node, window in zip(nodes, windows, strict=True):
        node.input(_WINDOW_PORT).replace_source_output(op.constant(window, dtype="int32").output(0))


def _properties(cache: Mapping[str, str], threads: int | None) -> dict[str, Any]:
    """Compile options. The number of threads is always said: left to OpenVINO, several compiled models get in each other's way."""
    return {**cache, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": threads or len(os.sched_getaffinity(0))}


def _gather_rows(model: Any) -> None:
    """Compute the output layer for the sampled rows only: it is a large share of a prefill, for a small model most of it."""
    import openvino as ov
    from openvino import opset13 as op

    rows = op.parameter([-1], ov.Type.i64, name=SAMPLED_ROWS)
    rows.output(0).get_tensor().set_names({SAMPLED_ROWS})
    head = _output_layer(model)
    hidden = head.input_value(0)
    head.input(0).replace_source_output(op.gather(hidden, rows, op.constant(0, dtype="int64")).output(0))
    model.add_parameters([rows])
    model.validate_nodes_and_infer_types()


def _output_layer(model: Any) -> Any:
    """The last MatMul before the logits; soft-capping or scaling may follow it."""
    node = model.output("logits").get_node()
    while node.get_type_name() != "MatMul":
        node = node.input_value(0).get_node()
    return node
