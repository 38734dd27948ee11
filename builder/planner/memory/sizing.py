"""What engines take of a device, and how many tokens the pools can have in the rest."""

from collections.abc import Sequence

from builder.api import Chip, Engine, EngineRequest, ModelFacts
from builder.planner.memory.model import EngineShare
from builder.planner.memory.needs import needed_tokens
from builder.planner.memory.pools import balanced_tokens, reserve_bytes
from builder.spec import PairSpec

Models = Sequence[tuple[EngineRequest, ModelFacts]]
"""The engines of a pair and the facts of their checkpoints, the target first."""


def shares_of(engine: Engine, models: Models) -> tuple[EngineShare, ...]:
    """Each engine's memory on each of its devices, its pool not yet sized."""
    return tuple(_share(engine, request, facts) for request, facts in models)


def reserve_of(chip: Chip, shares: Sequence[EngineShare]) -> int:
    """Bytes of each device that no pool may use; 0 in host memory."""
    return reserve_bytes(chip.memory_bytes, free_bytes(chip, shares)) if chip.memory_bytes else 0


def free_bytes(chip: Chip, shares: Sequence[EngineShare]) -> int:
    """What the engines leave of the device that carries all of them; below 0 when they do not fit."""
    return chip.memory_bytes - sum(share.own_bytes for share in shares)


def pool_tokens(spec: PairSpec, chip: Chip, shares: Sequence[EngineShare]) -> int:
    """Tokens of every pool: what the limits need in host memory, all that the device has room for on a card.

    Every engine uses devices from 0 on, so device 0 carries all of them and decides.
    """
    if not chip.memory_bytes:
        return needed_tokens(spec)
    budget_bytes = free_bytes(chip, shares) - reserve_of(chip, shares)
    return balanced_tokens(budget_bytes, [share.kv_bytes_per_token for share in shares], spec.kv_cache.tokens_per_block)


def _share(engine: Engine, request: EngineRequest, facts: ModelFacts) -> EngineShare:
    memory = engine.memory(request, facts.shape, facts.stored)
    return EngineShare(
        role=request.role,
        devices=tuple(range(request.tensor_parallel * request.pipeline_parallel)),
        kv_cache=memory.kv_cache or request.kv_cache,
        weights_bytes=memory.weights_bytes,
        activation_bytes=memory.activation_bytes,
        other_bytes=memory.other_bytes,
        kv_bytes_per_token=memory.kv_bytes_per_token,
        lookup_bytes=memory.lookup_bytes,
    )
