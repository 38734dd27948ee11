"""llama.cpp built for this machine: Q8_0 and Q4_0 weights, keys and values in q8_0, plain greedy decoding over its C interface."""

import ctypes
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import llama_cpp
import numpy as np
from protocol import Ids, serve

TOKENS_PER_BATCH = 512


class LlamaCppPeer:
    """One context for each format, made when it is first asked, which the warm-up does."""

    def load(self, settings: dict[str, Any]) -> dict[str, str]:
        self.settings = settings
        self.end_ids = set(settings["end_ids"])
        self.context = cache(self._context)
        quiet = llama_cpp.llama_log_callback(lambda _level, text, _data: None)
        self._kept = quiet  # ctypes does not keep it
        llama_cpp.llama_log_set(quiet, ctypes.c_void_p())
        llama_cpp.llama_backend_init()
        return {
            "version": f"llama-cpp-python {version('llama-cpp-python')}",
            "build": llama_cpp.llama_print_system_info().decode(),
            "precision": "KV q8_0, flash attention, whole prompt in one batch",
        }

    def generate(self, prompts: list[Ids], new_tokens: int, mode: str) -> list[Ids]:
        context, vocab_size = self.context(mode)
        return [self._answer(context, vocab_size, ids, new_tokens) for ids in prompts]

    def _answer(self, context: Any, vocab_size: int, ids: Ids, new_tokens: int) -> Ids:
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(context), True)
        for start in range(0, len(ids), TOKENS_PER_BATCH):
            _decode(context, ids[start : start + TOKENS_PER_BATCH])
        output: Ids = []
        while True:
            logits = np.ctypeslib.as_array(llama_cpp.llama_get_logits_ith(context, -1), shape=(vocab_size,))
            output.append(int(logits.argmax()))
            if len(output) == new_tokens or output[-1] in self.end_ids:
                return output
            _decode(context, output[-1:])

    def _context(self, mode: str) -> tuple[Any, int]:
        path = Path(self.settings["models"]) / f"target-{mode}.gguf"
        model = llama_cpp.llama_model_load_from_file(str(path).encode(), llama_cpp.llama_model_default_params())
        if not model:
            raise RuntimeError(f"{path} cannot be loaded")
        params = llama_cpp.llama_context_default_params()
        params.n_ctx = self.settings["max_tokens"]
        params.n_batch = params.n_ubatch = TOKENS_PER_BATCH
        params.n_threads = params.n_threads_batch = self.settings["threads"]
        params.type_k = params.type_v = llama_cpp.GGML_TYPE_Q8_0
        params.flash_attn_type = llama_cpp.LLAMA_FLASH_ATTN_TYPE_ENABLED
        context = llama_cpp.llama_init_from_model(model, params)
        if not context:
            raise RuntimeError(f"no context for {path}")
        return context, llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(model))


def _decode(context: Any, ids: Ids) -> None:
    tokens = (llama_cpp.llama_token * len(ids))(*ids)
    code = llama_cpp.llama_decode(context, llama_cpp.llama_batch_get_one(tokens, len(ids)))
    if code:
        raise RuntimeError(f"llama_decode returned {code}")


if __name__ == "__main__":
    serve(LlamaCppPeer())
