"""The memory plan of a pair."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil

from builder.api import BuildNeeds, Chip, Engine
from builder.hardware.chips import chips as known_chips
from builder.planner.memory.alternatives import Setting, alternatives, smaller_drafts
from builder.planner.memory.model import Capacity, EngineShare, MemoryPlan
from builder.planner.memory.needs import context_lengths, needed_tokens, sequence_tokens
from builder.planner.memory.pools import TOGETHER, LoadStep, Occupant, load_orders, needed_fraction
from builder.planner.memory.shared_memory import shared_memory_bytes
from builder.planner.memory.sizing import Models, pool_tokens, reserve_of, shares_of
from builder.spec import PairSpec

_FRACTION_STEPS = 10_000


def plan_memory(
    spec: PairSpec,
    chip: Chip,
    engine: Engine,
    models: Models,
    *,
    chips: Mapping[str, Chip] | None = None,
) -> MemoryPlan:
    """Memory of the pair's engines, `models` with the target first, on the chips that the pair file names.

    Both pools hold the same number of tokens: a token of the target without its twin in the draft is of no use, and the reverse. Where the
    limits do not fit, what would make room is looked for, also on other `chips` (all known ones when not given).
    """
    shares = shares_of(engine, models)
    tokens, needed = pool_tokens(spec, chip, shares), needed_tokens(spec)
    shares = tuple(replace(share, pool_tokens=tokens) for share in shares)
    orders = _orders(spec, chip.memory_bytes, shares, engine.default_pool_fraction)
    steps = tuple(engine.build_needs(request, facts.shape, facts.stored) for request, facts in models)
    plan = MemoryPlan(
        engine_kind=engine.kind,
        default_pool_fraction=engine.default_pool_fraction,
        chip=chip.name,
        chip_count=spec.hardware.count,
        device_bytes=chip.memory_bytes,
        reserve_bytes=reserve_of(chip, shares),
        engines=tuple(replace(share, free_fraction=_fraction(orders, share.role)) for share in shares),
        needed_tokens=needed,
        sequence_tokens=sequence_tokens(spec, spec.limits.max_sequence_tokens),
        capacity=tuple(Capacity(length, tokens // sequence_tokens(spec, length)) for length in context_lengths(spec)),
        build=_whole_build(steps),
        build_chip_count=_build_chip_count(chip, shares, steps),
        build_steps=steps,
        shared_memory_bytes=shared_memory_bytes(spec, engine),
        host_offload_bytes=spec.kv_cache.host_offload_bytes,
        load_orders=orders,
    )
    start = Setting(spec, chip, spec.hardware.count, models)
    others = known_chips() if chips is None else chips
    if plan.idle_bytes and plan.full_sequences:
        plan = replace(plan, smaller_drafts=smaller_drafts(start, engine, others))
    if tokens >= needed:
        return plan
    sequences = spec.limits.max_batch_size if plan.full_sequences else 1
    found = alternatives(start, engine, chips=others, sequences=sequences)
    return replace(plan, alternatives=found, refused=start.refusals(engine))


def _orders(
    spec: PairSpec, device_bytes: int, shares: Sequence[EngineShare], default_fraction: float | None
) -> tuple[tuple[LoadStep, ...], ...]:
    """One process holds both models in the single topology and makes both pools at once, out of what both have left."""
    if not device_bytes:
        return ()
    if spec.serve.topology == "orchestrated":
        return load_orders(device_bytes, [Occupant(s.role, s.own_bytes, s.pool_bytes) for s in shares], default_fraction)
    together = Occupant(TOGETHER, sum(s.own_bytes for s in shares), sum(s.pool_bytes for s in shares))
    return load_orders(device_bytes, [together], default_fraction)


def _fraction(orders: Sequence[Sequence[LoadStep]], role: str) -> float:
    return ceil(needed_fraction(orders, role) * _FRACTION_STEPS) / _FRACTION_STEPS if orders else 0.0


def _whole_build(steps: Sequence[BuildNeeds]) -> BuildNeeds:
    """Engines are built one after another and both results stay."""
    return BuildNeeds(
        host_memory_bytes=max(step.host_memory_bytes for step in steps),
        disk_bytes=sum(step.disk_bytes for step in steps),
        device_memory_bytes=max(step.device_memory_bytes for step in steps),
    )


def _build_chip_count(chip: Chip, shares: Sequence[EngineShare], steps: Sequence[BuildNeeds]) -> int:
    """Chips of this kind whose memory together is what the largest build takes; 0 where building needs no device."""
    if not chip.memory_bytes:
        return 0
    together = max(step.device_memory_bytes * len(share.devices) for step, share in zip(steps, shares, strict=True))
    return -(-together // chip.memory_bytes)
