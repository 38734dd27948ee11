"""The engines that this backend can run, imported only when an engine folder asks for one."""

import importlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_MODULES = {
    "null": ("plugins.engines.openvino.triton_backend.null_engine", "plugins.engines.openvino.triton_backend.null_engine"),
    "openvino": ("plugins.engines.openvino.runtime.llm", "plugins.engines.openvino.runtime.request"),
}


@dataclass(frozen=True)
class Runtime:
    """An engine class and the types of its requests."""

    Engine: Any
    Request: Any
    Sampling: Any
    RequestError: Any


def runtime_of(engine_dir: Path) -> Runtime:
    """The runtime that an engine folder is for.

    Raises OSError when there is no record, ValueError when it names a kind that is not here.
    """
    record = json.loads((engine_dir / "config.json").read_text(encoding="utf-8"))
    kind = str(record.get("tandem", {}).get("kind", "openvino"))
    if kind not in _MODULES:
        raise ValueError(f"{engine_dir / 'config.json'}: engine kind is {kind!r}, needed: one of {', '.join(sorted(_MODULES))}")
    engine, types = (importlib.import_module(name) for name in _MODULES[kind])
    return Runtime(engine.Engine, types.Request, types.Sampling, types.RequestError)
