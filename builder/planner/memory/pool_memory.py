"""Names that the plan still uses; they go once it takes a MemoryPlan."""

from dataclasses import asdict, dataclass
from typing import Any

from builder.api import Engine, EngineRequest, ModelShape
from builder.checkpoint import Checkpoint


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


def memory_of(engine: Engine, request: EngineRequest, checkpoint: Checkpoint, tokens: int) -> PoolMemory:
    """Memory of one engine with a pool of `tokens`."""
    shape = ModelShape(checkpoint.parameters, checkpoint.layers, checkpoint.kv_heads, checkpoint.head_dim)
    memory = engine.memory(request, shape)
    return PoolMemory(request.role, memory.weights_bytes, memory.kv_bytes_per_token, tokens, memory.other_bytes)
