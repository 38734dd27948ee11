"""Step times of aiconfigurator-core: measured kernels of TensorRT-LLM's PyTorch flow, added up. Optional, and never on the network."""

import importlib.metadata
import importlib.util
import json
import logging
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from builder.planner.speed.constants import error_band
from builder.planner.speed.model import ModelOnChips
from builder.planner.speed.step_cache import StepCache, cache_key

PACKAGE, DISTRIBUTION, BACKEND = "aiconfigurator_core", "aiconfigurator-core", "trtllm"
INSTALL = "pip install --no-deps aiconfigurator-core==0.12.0 packaging"
"""Without its dependencies: it asks for a numpy that the server's Python package refuses, and needs none here."""

GEMM_MODES = {
    "none": "bfloat16",
    "fp8": "fp8",
    "nvfp4": "nvfp4",
    "int8": "int8_wo",
    "int4": "int4_wo",
    "int4_awq": "int4_wo",
    "int8_sq": "sq",
}
EXPERT_MODES = {"none": "bfloat16", "fp8": "fp8", "nvfp4": "nvfp4", "int4": "int4_wo", "int4_awq": "int4_wo"}
KV_MODES = {"bf16": "bfloat16", "fp8": "fp8", "int8": "int8", "nvfp4": "fp8"}
NVFP4_SHARE_OF_FP8 = 9 / 16
"""A 4-bit value and an 8-bit scale for every 16 of them. The package knows no NVFP4 cache, and widening to FP8 is not counted."""

ANY_DECODE_CONTEXT = 1
REFUSALS = (ArithmeticError, AssertionError, AttributeError, ImportError, LookupError, OSError, RuntimeError, TypeError, ValueError)
"""What the package raises where it has no figures."""


class CannotAnswerError(Exception):
    """aiconfigurator-core is missing, or has no figures for this model, chip or precision."""


@dataclass(frozen=True)
class AiconfiguratorStepTime:
    """Step times in seconds, kept on disk. Raises CannotAnswerError when the package has no figures for what is asked."""

    model: ModelOnChips
    cache: StepCache

    @classmethod
    def of(cls, model: ModelOnChips) -> "AiconfiguratorStepTime":
        """Raises CannotAnswerError where the package, the chip or a precision is not there; nothing heavy is imported yet."""
        version = installed_version()
        if version is None:
            raise CannotAnswerError("aiconfigurator-core is not installed")
        if not knows_chip(model.chip.name):
            raise CannotAnswerError(f"aiconfigurator-core {version} has no figures for {model.chip.name}")
        if model.weights not in GEMM_MODES or model.kv_cache not in KV_MODES:
            raise CannotAnswerError(f"aiconfigurator-core has no figures for {model.weights} weights with a {model.kv_cache} cache")
        return cls(model, StepCache.open(cache_key({"version": version, "options": _options(model), "config": dict(model.facts.config)})))

    @property
    def provider(self) -> str:
        return "aiconfigurator"

    @property
    def error_band(self) -> float:
        return error_band("aiconfigurator")

    def decode_s(self, batch: int, context_tokens: int, query_tokens: int = 1) -> float:
        """Seconds; products for every query token, attention once for every sequence."""
        return self._ask(f"decode {batch} {context_tokens} {query_tokens}", lambda: self._decode_s(batch, context_tokens, query_tokens))

    def prefill_s(self, batch: int, tokens: int) -> float:
        """Seconds; see StepTime."""
        return self._ask(f"prefill {batch} {tokens}", lambda: self._engine.predict_prefill_latency(batch, tokens) / 1e3)

    def save(self) -> None:
        """Keep what was worked out for the next plan."""
        self.cache.save()

    def _ask(self, question: str, work_out: Callable[[], float]) -> float:
        if question in self.cache.values:
            return self.cache.values[question]
        with _silence():
            try:
                return self.cache.keep(question, float(work_out()))
            except REFUSALS as error:
                raise CannotAnswerError(_cannot_answer(self.model)) from error

    def _decode_s(self, batch: int, context_tokens: int, query_tokens: int) -> float:
        products_s, _ = self._parts_s(batch * query_tokens, context_tokens)
        _, attention_s = self._parts_s(batch, context_tokens)
        share = NVFP4_SHARE_OF_FP8 if self.model.kv_cache == "nvfp4" else 1.0
        return products_s + share * attention_s

    def _parts_s(self, batch: int, context_tokens: int) -> tuple[float, float]:
        """Products and attention. Where attention is no operation of its own, it is what the context adds."""
        _, operations = self._engine.run_static_per_op(batch_size=batch, isl=context_tokens, osl=2, mode="static_gen")
        total = sum(ms for _, ms, *_ in operations)
        attention = sum(ms for name, ms, *_ in operations if "attention" in name)
        if not attention:
            attention = total - float(self._engine.predict_decode_latency(batch, ANY_DECODE_CONTEXT))
        return (total - attention) / 1e3, attention / 1e3

    @cached_property
    def _engine(self) -> Any:
        from aiconfigurator_core.sdk.engine import EngineHandle

        # a name would be looked up on the hub; a folder never is
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "config.json").write_text(json.dumps(self.model.facts.config, default=str), encoding="utf-8")
            options = _options(self.model)
            return EngineHandle.compile(folder, options.pop("system"), options.pop("backend"), **options)


def installed_version() -> str | None:
    """Version of aiconfigurator-core in this environment."""
    try:
        return importlib.metadata.version(DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:
        return None


def knows_chip(name: str) -> bool:
    """Whether it has measured kernels of TensorRT-LLM on this chip."""
    spec = importlib.util.find_spec(PACKAGE)
    folders = spec.submodule_search_locations if spec else None
    return any(Path(folder, "systems", "data", name, "gemm", BACKEND).is_dir() for folder in folders or ())


def _options(model: ModelOnChips) -> dict[str, Any]:
    """Arguments of the package's engine, with its own words for precisions."""
    options: dict[str, Any] = {
        "system": model.chip.name,
        "backend": BACKEND,
        "tp_size": model.tensor_parallel,
        "pp_size": model.pipeline_parallel,
        "gemm_quant_mode": _gemm_mode(model),
        "kvcache_quant_mode": KV_MODES[model.kv_cache],
    }
    if model.facts.shape.kv_lora_rank:
        # it has measured latent attention over prompts in 16 bits alone
        options["fmha_quant_mode"] = "bfloat16"
    if model.facts.shape.experts:
        blocks = options["gemm_quant_mode"] == "fp8_block"
        options |= {"moe_tp_size": model.tensor_parallel, "moe_ep_size": 1}
        options["moe_quant_mode"] = "fp8_block" if blocks else EXPERT_MODES.get(model.weights)
    return options


def _gemm_mode(model: ModelOnChips) -> str:
    stored = model.facts.config.get("quantization_config")
    if model.weights == "fp8" and isinstance(stored, dict) and stored.get("weight_block_size"):
        return "fp8_block"
    return GEMM_MODES[model.weights]


def _cannot_answer(model: ModelOnChips) -> str:
    """In words: what the package says is of its own files and tables."""
    family = str(model.facts.config.get("model_type") or "")[:40]
    models = f"{family} models" if family else "this model"
    precisions = f"{model.weights} weights and a {model.kv_cache} cache"
    return f"aiconfigurator-core {installed_version()} cannot predict {models} with {precisions} on {model.chip.name}"


@contextmanager
def _silence() -> Iterator[None]:
    """The package's warnings are about data that this plan does not use."""
    logger = logging.getLogger(PACKAGE)
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)
