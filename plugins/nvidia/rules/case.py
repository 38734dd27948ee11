"""What a rule looks at: the deployment, the lane's capabilities, the release, and each engine beside the facts of its checkpoint."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from builder.api import Deployment, EngineRequest, Finding, ModelFacts, ModelShape, Severity
from plugins.nvidia.lanes import CONVERTED, Lane, Precision
from plugins.nvidia.releases import Release


@dataclass(frozen=True)
class Side:
    """One engine of the pair."""

    request: EngineRequest
    facts: ModelFacts
    lane: Lane

    @property
    def role(self) -> str:
        return self.request.role

    @property
    def shape(self) -> ModelShape:
        return self.facts.shape

    @property
    def algorithm(self) -> str:
        """TensorRT-LLM's word for the weights: what the checkpoint stores, or else what this lane makes of the pair file's word."""
        if self.facts.stored.weights:
            return self.facts.stored.weights
        if self.request.weights == "fp8" and self.option("fp8_rowwise"):
            return "FP8_PER_CHANNEL_PER_TOKEN"
        row = self.lane.weights.get(self.request.weights)
        return row.algorithms[0] if row else ""

    @property
    def kv_cache(self) -> str:
        """The cache's precision; auto is what the checkpoint was calibrated for, or else 16 bits."""
        return self.lane.cache_word(self.request.kv_cache, self.facts.stored)

    @property
    def cache_is_fixed(self) -> bool:
        """Whether the checkpoint was made for one cache, so that the loader refuses another."""
        return bool(self.facts.stored.kv_cache) or self.facts.stored.kind in CONVERTED

    def other_cache(self, words: str) -> str:
        """The way to another cache: a word of the pair file, or another checkpoint where this one was made for its cache."""
        if self.cache_is_fixed:
            return f"point {self.field('checkpoint')} at a checkpoint that was not made for an {self.kv_cache.upper()} KV cache"
        return f"set {self.field('kv_cache')}{' to' if ' ' in words else ':'} {words}"

    @property
    def weights_row(self) -> Precision | None:
        return self.lane.weights.get(self.request.weights)

    @property
    def kv_row(self) -> Precision | None:
        return self.lane.kv_cache.get(self.kv_cache)

    @property
    def ranks(self) -> int:
        """Processes, each with a chip of its own."""
        return self.request.tensor_parallel * self.request.pipeline_parallel

    @property
    def architecture(self) -> str:
        """`architectures[0]` of a Hugging Face checkpoint, `architecture` of TensorRT-LLM's; "" when neither is there."""
        config = self.facts.config
        own = config.get("pretrained_config", config)
        names = config.get("architectures")
        found = names[0] if isinstance(names, list) and names else own.get("architecture", "") if isinstance(own, dict) else ""
        return str(found)

    def option(self, name: str) -> Any:
        """The value of an option of the lane, or its default."""
        row = self.lane.options.get(name)
        return self.request.options.get(name, row.default if row else None)

    def field(self, name: str) -> str:
        return f"{self.role}.{name}"


@dataclass(frozen=True)
class Case:
    """A deployment on a lane. `release` is the one asked for, or the lane's default when that one is not known."""

    deployment: Deployment
    lane: Lane
    release: Release

    @property
    def target(self) -> Side:
        return Side(self.deployment.target, self.deployment.target_facts, self.lane)

    @property
    def draft(self) -> Side | None:
        draft, facts = self.deployment.draft, self.deployment.draft_facts
        return Side(draft, facts, self.lane) if draft is not None and facts is not None else None

    @property
    def sides(self) -> tuple[Side, ...]:
        draft = self.draft
        return (self.target, draft) if draft else (self.target,)

    @property
    def drafts(self) -> bool:
        """Whether draft tokens are verified, wherever they come from."""
        return self.deployment.method != "none"

    @property
    def sm(self) -> int:
        """The chip's compute capability as one number; 0 for a processor."""
        return self.deployment.chip.sm

    @property
    def is_gpu(self) -> bool:
        return self.sm > 0


Findings = Iterator[Finding]
Rule = Callable[[Case], Findings]


def judge(case: Case, rules: Sequence[Rule]) -> list[Finding]:
    """Every finding of every rule, each once."""
    found = [finding for rule in rules for finding in rule(case)]
    return list(dict.fromkeys(found))


def finding(code: str, severity: Severity, field: str, message: str, *, found: object = "", needed: object = "", fix: str = "") -> Finding:
    """A finding whose values are written as text."""
    return Finding(code, severity, message, field, str(found), str(needed), fix)


def any_of(words: Sequence[str]) -> str:
    """`a, b or c`."""
    return f"{', '.join(words[:-1])} or {words[-1]}" if len(words) > 1 else "".join(words)
