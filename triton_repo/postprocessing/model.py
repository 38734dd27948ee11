"""Triton's entry to postprocessing: token ids to text."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils

FALSE_WORDS = frozenset({"false", "0", "no", "f", "n"})


class TritonPythonModel:
    """TOKENS_BATCH [rows, beams, n] and SEQUENCE_LENGTH [rows, beams] to OUTPUT [rows, beams]."""

    def initialize(self, args: Mapping[str, str]) -> None:
        from transformers import AutoTokenizer

        parameters = {key: value.get("string_value", "") for key, value in json.loads(args["model_config"]).get("parameters", {}).items()}
        self._tokenizer = AutoTokenizer.from_pretrained(parameters["tokenizer_dir"], local_files_only=True, trust_remote_code=False)
        self._skip_special = parameters.get("skip_special_tokens", "true").lower() not in FALSE_WORDS

    def execute(self, requests: Sequence[Any]) -> list[Any]:
        return [self._answer(request) for request in requests]

    def _answer(self, request: Any) -> Any:
        ids = pb_utils.get_input_tensor_by_name(request, "TOKENS_BATCH").as_numpy()
        lengths = pb_utils.get_input_tensor_by_name(request, "SEQUENCE_LENGTH").as_numpy()
        if ids.ndim != 3 or lengths.shape != ids.shape[:2]:
            message = f"TOKENS_BATCH {list(ids.shape)} and SEQUENCE_LENGTH {list(lengths.shape)} do not fit"
            return pb_utils.InferenceResponse(error=pb_utils.TritonError(message, pb_utils.TritonError.INVALID_ARG))
        rows, counts = ids.reshape(-1, ids.shape[2]), lengths.reshape(-1)
        texts = [self._text(row[: int(count)]) for row, count in zip(rows, counts, strict=True)]
        return pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT", np.array(texts, dtype=np.object_).reshape(lengths.shape))])

    def _text(self, ids: Any) -> bytes:
        text: str = self._tokenizer.decode(ids.tolist(), skip_special_tokens=self._skip_special, clean_up_tokenization_spaces=False)
        return text.encode("utf-8")
