"""Weight compression with NNCF, and writing the model file."""

import contextlib
import io
import logging
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from builder.api import MissingError
from plugins.engines.openvino.piecewise import compress_int4, compress_int8, widen

DEFAULT_GROUP_SIZE = 64
"""Weights of one row that share a scale in int4; smaller is more exact and larger in bytes."""
DEFAULT_RATIO = 0.8
"""Share of the layers in int4; the most sensitive rest stays in int8."""


def compress(model: Any, weights: str, options: Mapping[str, Any]) -> Any:
    """The model with its weights in `none | int8 | int4`; must come before the paged transformation, which makes element types dynamic."""
    if weights == "none":
        widen(model)
        return model
    # without this NNCF 3.4 reports every call to a server in the network, from nine forks of this process
    os.environ.setdefault("NNCF_CI", "1")
    import nncf

    nncf.set_log_level(logging.WARNING)
    with contextlib.redirect_stdout(io.StringIO()):  # NNCF draws progress bars
        if weights == "int8":
            compress_int8(model)
        else:
            group_size, ratio = int(options.get("group_size", DEFAULT_GROUP_SIZE)), float(options.get("ratio", DEFAULT_RATIO))
            compress_int4(model, group_size, ratio)
    return model


def save(model: Any, path: Path) -> None:
    """Write `path` (xml) and the weights beside it. Raises MissingError `DISK-FULL` before anything is written that would not fit."""
    import openvino as ov

    needed = _weight_bytes(model)
    free = shutil.disk_usage(path.parent).free
    if free < needed:
        raise MissingError(
            "DISK-FULL",
            f"{path.parent} has {free} bytes free; the engine's weights take {needed}.",
            field="disk",
            found=f"{free} bytes",
            needed=f"{needed} bytes",
            fix="free some space, or choose another output folder",
        )
    _rename(model)
    ov.save_model(model, path, compress_to_fp16=False)


def _rename(model: Any) -> None:
    """Names by place instead of OpenVINO's counters, which differ with what the process did before: same input, same bytes.

    Inputs keep their own names, by which the paged transformation finds them.
    """
    model.set_friendly_name("model")
    for place, node in enumerate(model.get_ordered_ops()):
        if node.get_type_name() != "Parameter":
            node.set_friendly_name(f"{node.get_type_name()}_{place}")
    for port in model.inputs:
        port.get_node().set_friendly_name(port.any_name)


def _weight_bytes(model: Any) -> int:
    return sum(node.get_byte_size() for node in model.get_ops() if node.get_type_name() == "Constant")
