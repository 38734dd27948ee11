"""Memory of both engines: weights, and two KV pools that hold the same number of tokens."""

from dataclasses import asdict, dataclass
from typing import Any

from builder.api import Engine, EngineRequest, ModelShape
from builder.checkpoint import Checkpoint
from builder.spec import PairSpec


@dataclass(frozen=True)
class PoolMemory:
    """Memory of one engine in bytes; `pool_tokens` is the cap of its paged KV cache."""

    role: str
    weights_bytes: int
    kv_bytes_per_token: int
    pool_tokens: int
    other_bytes: int = 0

    @property
    def pool_bytes(self) -> int:
        return self.kv_bytes_per_token * self.pool_tokens

    @property
    def total_bytes(self) -> int:
        return self.weights_bytes + self.pool_bytes + self.other_bytes

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "pool_bytes": self.pool_bytes, "total_bytes": self.total_bytes}


def pool_tokens(spec: PairSpec) -> int:
    """Tokens that each pool must hold: every sequence at full length plus a whole draft and the target's own token, in whole blocks."""
    head_room = spec.speculation.max_draft_tokens + 1 if spec.draft.method != "none" else 1
    block = spec.kv_cache.tokens_per_block
    blocks_per_sequence = -(-(spec.limits.max_sequence_tokens + head_room) // block)
    return spec.limits.max_batch_size * blocks_per_sequence * block


def memory_of(engine: Engine, request: EngineRequest, checkpoint: Checkpoint, tokens: int) -> PoolMemory:
    """Memory of one engine with a pool of `tokens`."""
    shape = ModelShape(checkpoint.parameters, checkpoint.layers, checkpoint.kv_heads, checkpoint.head_dim)
    memory = engine.memory(request, shape)
    return PoolMemory(request.role, memory.weights_bytes, memory.kv_bytes_per_token, tokens, memory.other_bytes)
