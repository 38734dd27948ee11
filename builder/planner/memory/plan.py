"""Sizing the pools: what the limits need in host memory, what the device has left beside the engines on a card."""

from collections.abc import Sequence
from dataclasses import replace
from math import ceil

from builder.api import BuildNeeds, Chip, Engine, EngineRequest, ModelShape
from builder.planner.memory.model import Capacity, EngineShare, MemoryPlan
from builder.planner.memory.needs import context_lengths, needed_tokens, sequence_tokens
from builder.planner.memory.pools import LoadStep, Occupant, balanced_tokens, load_orders, needed_fraction, reserve_bytes
from builder.planner.memory.shared_memory import shared_memory_bytes
from builder.spec import PairSpec

Models = Sequence[tuple[EngineRequest, ModelShape]]

_FRACTION_DIGITS = 10_000


def plan_memory(spec: PairSpec, chip: Chip, engine: Engine, models: Models) -> MemoryPlan:
    """Memory of the pair's engines, `models` with the target first, on the chips that the pair file names.

    Every engine uses devices from 0 on, so device 0 carries all of them and decides. There n = budget / (sum of KV bytes per token), and
    every pool holds n tokens, in whole blocks: a token of the target without its twin in the draft is of no use, and the reverse.
    """
    shares = tuple(_share(engine, request, shape) for request, shape in models)
    free = chip.memory_bytes - sum(share.own_bytes for share in shares)
    reserve = reserve_bytes(chip.memory_bytes, free) if chip.memory_bytes else 0
    kv_bytes = [share.kv_bytes_per_token for share in shares]
    needed, tokens = needed_tokens(spec), 0
    if not chip.memory_bytes:
        tokens = needed
    elif free > reserve:
        tokens = balanced_tokens(free - reserve, kv_bytes, spec.kv_cache.tokens_per_block)
    shares = tuple(replace(share, pool_tokens=tokens) for share in shares)
    orders = _orders(spec, chip.memory_bytes, shares)
    return MemoryPlan(
        chip=chip.name,
        chip_count=spec.hardware.count,
        device_bytes=chip.memory_bytes,
        reserve_bytes=reserve,
        engines=tuple(replace(share, free_fraction=_fraction(orders, share.role)) for share in shares),
        needed_tokens=needed,
        sequence_tokens=sequence_tokens(spec, spec.limits.max_sequence_tokens),
        capacity=tuple(Capacity(length, tokens // sequence_tokens(spec, length)) for length in context_lengths(spec)),
        build=_build_needs(engine, models),
        shared_memory_bytes=shared_memory_bytes(spec, engine),
        host_offload_bytes=spec.kv_cache.host_offload_bytes,
        load_orders=orders,
    )


def _share(engine: Engine, request: EngineRequest, shape: ModelShape) -> EngineShare:
    memory = engine.memory(request, shape)
    return EngineShare(
        role=request.role,
        devices=tuple(range(request.tensor_parallel * request.pipeline_parallel)),
        kv_cache=memory.kv_cache or request.kv_cache,
        weights_bytes=memory.weights_bytes,
        activation_bytes=memory.activation_bytes,
        other_bytes=memory.other_bytes,
        kv_bytes_per_token=memory.kv_bytes_per_token,
    )


def _orders(spec: PairSpec, device_bytes: int, shares: Sequence[EngineShare]) -> tuple[tuple[LoadStep, ...], ...]:
    """One process holds both models in the single topology and makes both pools at once, out of what both have left."""
    if not device_bytes:
        return ()
    if spec.serve.topology == "orchestrated":
        return load_orders(device_bytes, [Occupant(s.role, s.own_bytes, s.pool_bytes) for s in shares])
    together = Occupant("pair", sum(s.own_bytes for s in shares), sum(s.pool_bytes for s in shares))
    (step,) = load_orders(device_bytes, [together])[0]
    return (tuple(replace(step, role=share.role) for share in shares),)


def _fraction(orders: Sequence[Sequence[LoadStep]], role: str) -> float:
    return ceil(needed_fraction(orders, role) * _FRACTION_DIGITS) / _FRACTION_DIGITS if orders else 0.0


def _build_needs(engine: Engine, models: Models) -> BuildNeeds:
    """Engines are built one after another and both results stay."""
    needs = [engine.build_needs(request, shape) for request, shape in models]
    return BuildNeeds(
        host_memory_bytes=max(n.host_memory_bytes for n in needs),
        disk_bytes=sum(n.disk_bytes for n in needs),
        device_memory_bytes=max(n.device_memory_bytes for n in needs),
    )
