"""What would make room: other precisions, more parallelism, other chips, each tried by formula and by the lane's own rules."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Any

from builder.api import Chip, Engine
from builder.planner.memory.model import Alternative
from builder.planner.memory.needs import sequence_tokens
from builder.planner.memory.sizing import Models, pool_tokens, shares_of
from builder.planner.requests import deployment
from builder.spec import PairSpec

KV_WORDS = ("fp8", "int8", "nvfp4")
WEIGHT_WORDS = ("fp8", "int8", "int8_sq", "nvfp4", "int4_awq", "int4")
TENSOR_PARALLEL = (2, 4, 8, 16)

Change = Mapping[str, Any]
"""Dotted fields of the pair file and the values that they would have."""


@dataclass(frozen=True)
class Setting:
    """A pair on its chips."""

    spec: PairSpec
    chip: Chip
    chip_count: int
    models: Models

    def changed(self, change: Change, chips: Mapping[str, Chip]) -> "Setting":
        """The setting with the fields of `change`."""
        chip = chips[change["hardware.chip"]] if "hardware.chip" in change else self.chip
        models = [(replace(request, chip=chip.name, **_of_role(change, request.role)), facts) for request, facts in self.models]
        return replace(self, chip=chip, chip_count=change.get("hardware.count", self.chip_count), models=models)

    def sequences(self, engine: Engine) -> int:
        """Sequences of full length that its pools hold."""
        tokens = pool_tokens(self.spec, self.chip, shares_of(engine, self.models))
        return tokens // sequence_tokens(self.spec, self.spec.limits.max_sequence_tokens)

    def refusals(self, engine: Engine) -> tuple[str, ...]:
        """Codes of the lane's errors, each once."""
        findings = [finding for request, _ in self.models for finding in engine.check(request)]
        pair = deployment(self.spec, self.chip, tuple(self.models))
        findings += engine.check_deployment(replace(pair, chip_count=self.chip_count))
        return tuple(dict.fromkeys(finding.code for finding in findings if finding.severity == "error"))


def alternatives(start: Setting, engine: Engine, *, chips: Mapping[str, Chip], sequences: int) -> tuple[Alternative, ...]:
    """The least change of each kind with which the pools hold `sequences` of full length; pairs of changes where no single one does.

    Only what the lane takes is named: a change that leaves another refusal in place would be refused again.
    """
    candidates = (_kv_caches(start), _weights(start), _draft_parallel(start), _tensor_parallel(start), _chips(start, chips))
    kinds = [list(kind) for kind in candidates]

    def first(changes: Sequence[Change]) -> Alternative | None:
        for change in changes:
            changed = start.changed(change, chips)
            found = changed.sequences(engine)
            if found >= sequences and not changed.refusals(engine):
                return Alternative({field: str(value) for field, value in change.items()}, found)
        return None

    found = [first(kind) for kind in kinds]
    if not any(found):
        found = [first([{**a, **b} for a, b in product(one, other)]) for one, other in combinations(kinds, 2)]
    return tuple(alternative for alternative in found if alternative)


def smaller_drafts(start: Setting, engine: Engine, chips: Mapping[str, Chip]) -> tuple[Alternative, ...]:
    """Ways to make the draft's share of the first device smaller, each with what all pools then hold; without those the lane refuses."""
    if len(start.models) < 2:
        return ()
    now, found = start.sequences(engine), []
    for kind in ([{"draft.kv_cache": word} for word in KV_WORDS], list(_draft_parallel(start))):
        tried = ((change, start.changed(change, chips)) for change in kind)
        fitting = [(change, made.sequences(engine)) for change, made in tried if not made.refusals(engine)]
        best = max(fitting, key=lambda pair: pair[1], default=None)
        if best is not None and best[1] > now:
            found.append(Alternative({field: str(value) for field, value in best[0].items()}, best[1]))
    return tuple(found)


def _kv_caches(start: Setting) -> Iterator[Change]:
    for word, roles in product(KV_WORDS, _role_groups(start)):
        yield {f"{role}.kv_cache": word for role in roles}


def _weights(start: Setting) -> Iterator[Change]:
    for roles, word in product(_role_groups(start), WEIGHT_WORDS):
        yield {f"{role}.weights": word for role in roles}


def _tensor_parallel(start: Setting) -> Iterator[Change]:
    request, facts = start.models[0]
    roles = [other.role for other, _ in start.models] if start.spec.serve.topology == "single" else ["target"]
    for size in TENSOR_PARALLEL:
        if size > request.tensor_parallel and facts.shape.heads % size == 0:
            chip_count = size * request.pipeline_parallel
            count = {"hardware.count": chip_count} if chip_count > start.chip_count else {}
            yield {f"{role}.tensor_parallel": size for role in roles} | count


def _draft_parallel(start: Setting) -> Iterator[Change]:
    """A draft that crowds the first chip can be spread over those that the target has anyway."""
    if len(start.models) < 2 or start.spec.serve.topology == "single":
        return
    request, facts = start.models[1]
    for size in TENSOR_PARALLEL:
        if request.tensor_parallel < size <= start.chip_count and facts.shape.heads % size == 0:
            yield {"draft.tensor_parallel": size}


def _chips(start: Setting, chips: Mapping[str, Chip]) -> Iterator[Change]:
    for chip in sorted(chips.values(), key=lambda c: (c.memory_bytes, c.name)):
        if chip.memory_bytes > start.chip.memory_bytes:
            yield {"hardware.chip": chip.name}


def _role_groups(start: Setting) -> list[tuple[str, ...]]:
    """The target alone first, then both."""
    roles = tuple(request.role for request, _ in start.models)
    return [roles[:1], roles] if len(roles) > 1 else [roles]


def _of_role(change: Change, role: str) -> dict[str, Any]:
    return {field.removeprefix(f"{role}."): value for field, value in change.items() if field.startswith(f"{role}.")}
