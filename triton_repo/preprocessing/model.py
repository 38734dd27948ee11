"""Triton's entry to preprocessing: text to token ids, several rows at once."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils

from triton_repo.preprocessing.tokens import Settings, pad_rows, prompt_ids, text_of, word_lists

TRUE_WORDS = frozenset({"true", "1", "yes", "t", "y"})


class TritonPythonModel:
    """Loads the tokenizer from its folder alone: no network, no code of the checkpoint."""

    def initialize(self, args: Mapping[str, str]) -> None:
        from transformers import AutoTokenizer

        parameters = {key: value.get("string_value", "") for key, value in json.loads(args["model_config"]).get("parameters", {}).items()}
        self._tokenizer = AutoTokenizer.from_pretrained(parameters["tokenizer_dir"], local_files_only=True, trust_remote_code=False)
        special = parameters.get("add_special_tokens", "true")
        self._settings = Settings(add_special_tokens=special.startswith("${") or special.lower() in TRUE_WORDS)

    def execute(self, requests: Sequence[Any]) -> list[Any]:
        return [self._answer(request) for request in requests]

    def _answer(self, request: Any) -> Any:
        try:
            return pb_utils.InferenceResponse([pb_utils.Tensor(name, array) for name, array in self._outputs(request).items()])
        except ValueError as error:
            return pb_utils.InferenceResponse(error=pb_utils.TritonError(str(error), pb_utils.TritonError.INVALID_ARG))

    def _outputs(self, request: Any) -> dict[str, Any]:
        queries = _read(request, "QUERY").reshape(-1)
        count = len(queries)
        pad_id, end_id = self._ids(request, count)
        chat = _read(request, "APPLY_CHAT_TEMPLATE")
        settings = replace(self._settings, apply_chat_template=chat is not None and bool(chat.reshape(-1)[0]))
        rows = [prompt_ids(self._tokenizer, text_of(query), settings) for query in queries]
        wanted = frozenset(request.requested_output_names())
        outputs = {
            "INPUT_ID": pad_rows(rows, int(pad_id[0, 0])),
            "REQUEST_INPUT_LEN": np.array([[len(row)] for row in rows], dtype=np.int32),
            "DECODER_INPUT_ID": pad_id,
            "REQUEST_DECODER_INPUT_LEN": np.ones((count, 1), dtype=np.int32),
            "BAD_WORDS_IDS": self._words(request, "BAD_WORDS_DICT", count),
            "STOP_WORDS_IDS": self._words(request, "STOP_WORDS_DICT", count),
            "EMBEDDING_BIAS": np.zeros((count, 0), dtype=np.float32),
            "REQUEST_OUTPUT_LEN": _read(request, "REQUEST_OUTPUT_LEN"),
            "OUT_END_ID": end_id,
            "OUT_PAD_ID": pad_id,
        }
        return {name: array for name, array in outputs.items() if name in wanted}

    def _ids(self, request: Any, count: int) -> tuple[Any, Any]:
        """Pad and end ids [count, 1]: the client's, else the tokenizer's; pad falls back to end."""
        tokenizer = self._tokenizer
        end = -1 if tokenizer.eos_token_id is None else tokenizer.eos_token_id
        pad = max(end, 0) if tokenizer.pad_token_id is None else tokenizer.pad_token_id
        sent_pad, sent_end = _read(request, "PAD_ID"), _read(request, "END_ID")
        return (
            np.full((count, 1), pad, dtype=np.int32) if sent_pad is None else sent_pad,
            np.full((count, 1), end, dtype=np.int32) if sent_end is None else sent_end,
        )

    def _words(self, request: Any, name: str, count: int) -> Any:
        sent = _read(request, name)
        rows = [[]] * count if sent is None else [[text_of(word) for word in row] for row in sent.reshape(count, -1)]
        return word_lists(self._tokenizer, rows)


def _read(request: Any, name: str) -> Any:
    tensor = pb_utils.get_input_tensor_by_name(request, name)
    return None if tensor is None else tensor.as_numpy()
