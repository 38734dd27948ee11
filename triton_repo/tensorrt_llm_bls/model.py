"""Triton's entry to tensorrt_llm_bls: draft-target speculation with streaming, cancellation and many requests in flight."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import triton_python_backend_utils as pb_utils

from triton_repo.tensorrt_llm_bls.request import Defaults
from triton_repo.tensorrt_llm_bls.service import Service


class TritonPythonModel:
    """Decoupled. Calls the engine models with plain `exec()`: decoupled calls from many threads crash the stub (server issue 8922)."""

    def initialize(self, args: Mapping[str, str]) -> None:
        from tokenizers import Tokenizer

        config = json.loads(args["model_config"])
        defaults = Defaults.from_parameters({key: value.get("string_value", "") for key, value in config.get("parameters", {}).items()})
        tokenizer = Tokenizer.from_file(str(Path(defaults.tokenizer_dir) / "tokenizer.json"))
        self._service = Service(pb_utils, defaults, tokenizer.decode)

    def execute(self, requests: Sequence[Any]) -> None:
        for request in requests:
            self._service.submit(request)

    def finalize(self) -> None:
        self._service.close()
