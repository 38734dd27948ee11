"""OpenVINO GenAI through its paged backend: plain, prompt lookup, and speculative decoding with the pair's draft model."""

from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import openvino_genai as genai
from protocol import Ids, serve

MAX_NGRAM_TOKENS = 3


class GenAiPeer:
    """Pipelines are compiled when a mode is first asked, which the warm-up does."""

    def load(self, settings: dict[str, Any]) -> dict[str, str]:
        self.settings, self.models = settings, Path(settings["models"])
        self.pipeline = cache(self._pipeline)
        self.pipeline("plain")
        return {
            "version": f"openvino-genai {version('openvino-genai')}, openvino {version('openvino')}",
            "model": (self.models / "origin.txt").read_text(encoding="utf-8").strip(),
            "precision": "int8 weights, KV u8, no prefix cache",
        }

    def generate(self, prompts: list[Ids], new_tokens: int, mode: str) -> list[Ids]:
        kind, _, count = mode.partition("_")
        config = self._config(new_tokens, kind, int(count or 0))
        results = self.pipeline(kind).generate([ov.Tensor(np.array([ids])) for ids in prompts], [config] * len(prompts))
        return [list(map(int, result.m_generation_ids[0])) for result in results]

    def _config(self, new_tokens: int, kind: str, count: int) -> genai.GenerationConfig:
        config = genai.GenerationConfig()
        config.max_new_tokens, config.do_sample = new_tokens, False
        config.stop_token_ids = set(self.settings["end_ids"])
        if self.settings["end_ids"]:
            config.eos_token_id = self.settings["end_ids"][0]
        if kind != "plain":
            config.num_assistant_tokens = count
        if kind == "lookup":
            config.max_ngram_size = MAX_NGRAM_TOKENS
        return config

    def _pipeline(self, kind: str) -> genai.ContinuousBatchingPipeline:
        more: dict[str, Any] = {"prompt_lookup": True} if kind == "lookup" else {}
        if kind == "draft":
            more["draft_model"] = genai.draft_model(str(self.models / "draft"), "CPU", **self._device())
        return genai.ContinuousBatchingPipeline(str(self.models / "target"), self._scheduler(), "CPU", {**self._device(), **more})

    def _device(self) -> dict[str, Any]:
        return {"INFERENCE_NUM_THREADS": self.settings["threads"], "PERFORMANCE_HINT": "LATENCY", "KV_CACHE_PRECISION": "u8"}

    def _scheduler(self) -> genai.SchedulerConfig:
        scheduler = genai.SchedulerConfig()
        scheduler.enable_prefix_caching = False
        scheduler.max_num_seqs = max(self.settings["batch"], 1)
        scheduler.max_num_batched_tokens = 1024
        scheduler.num_kv_blocks = -(-self.settings["batch"] * self.settings["max_tokens"] // 32)
        return scheduler


if __name__ == "__main__":
    serve(GenAiPeer())
