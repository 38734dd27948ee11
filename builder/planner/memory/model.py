"""The memory plan as values. All figures of an engine are per device; the device is the busiest one, which every engine uses."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from builder.api import BuildNeeds
from builder.planner.memory.pools import LoadStep


@dataclass(frozen=True)
class EngineShare:
    """One engine's memory on each of its `devices`, in bytes; `pool_tokens` is the cap of its paged KV cache.

    `kv_cache` is the precision in the pair file's words, never auto. `free_fraction` is the least share of the free memory that lets the
    pool reach its cap whichever engine loads first; 0 where the pool lies in host memory.
    """

    role: str
    devices: tuple[int, ...]
    kv_cache: str
    weights_bytes: int
    activation_bytes: int
    other_bytes: int
    kv_bytes_per_token: int
    lookup_bytes: int | None = None
    pool_tokens: int = 0
    free_fraction: float = 0.0

    @property
    def pool_bytes(self) -> int:
        return self.kv_bytes_per_token * self.pool_tokens

    @property
    def own_bytes(self) -> int:
        """All but the pool."""
        return self.weights_bytes + self.activation_bytes + self.other_bytes

    @property
    def total_bytes(self) -> int:
        return self.own_bytes + self.pool_bytes

    def as_dict(self) -> dict[str, Any]:
        sums = {"pool_bytes": self.pool_bytes, "total_bytes": self.total_bytes}
        return {**asdict(self), "devices": list(self.devices), **sums}


@dataclass(frozen=True)
class Capacity:
    """How many sequences of a context length fit at once."""

    context_tokens: int
    sequences: int


@dataclass(frozen=True)
class Alternative:
    """Fields of the pair file that, changed together, make room: the pools then hold `sequences` of full length."""

    changes: Mapping[str, str]
    sequences: int

    def __str__(self) -> str:
        changed = " and ".join(f"{field}: {value}" for field, value in self.changes.items())
        return f"{changed} ({self.sequences} sequence{'s' if self.sequences != 1 else ''})"


@dataclass(frozen=True)
class MemoryPlan:
    """Memory of the pair. `device_bytes` 0 means that engines and pools lie in host memory and pools are as large as the limits need.

    `refused` are the codes of what the lane refuses; `alternatives` make room where the limits do not fit, and `smaller_drafts` where the
    draft crowds the first device.
    """

    engine_kind: str
    default_pool_fraction: float | None
    chip: str
    chip_count: int
    device_bytes: int
    reserve_bytes: int
    engines: tuple[EngineShare, ...]
    needed_tokens: int
    sequence_tokens: int
    capacity: tuple[Capacity, ...]
    build: BuildNeeds
    build_chip_count: int
    shared_memory_bytes: int
    host_offload_bytes: int = 0
    load_orders: tuple[tuple[LoadStep, ...], ...] = ()
    refused: tuple[str, ...] = ()
    build_steps: tuple[BuildNeeds, ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    smaller_drafts: tuple[Alternative, ...] = ()

    def share(self, role: str) -> EngineShare | None:
        """The engine of `role`, when the pair has one."""
        return next((engine for engine in self.engines if engine.role == role), None)

    @property
    def pool_tokens(self) -> int:
        """Tokens that every pool holds."""
        return self.engines[0].pool_tokens

    @property
    def full_sequences(self) -> int:
        """Sequences of the longest allowed length that fit at once."""
        return self.pool_tokens // self.sequence_tokens

    @property
    def total_bytes(self) -> int:
        """Of all engines, on the busiest device."""
        return sum(engine.total_bytes for engine in self.engines)

    @property
    def budget_bytes(self) -> int:
        """For pools on the busiest device; below 0 when the engines alone do not fit. Of no meaning in host memory."""
        return self.device_bytes - self.reserve_bytes - sum(engine.own_bytes for engine in self.engines)

    @property
    def stranded_bytes(self) -> int:
        """Memory of the budget that no pool uses."""
        return max(0, self.budget_bytes - sum(engine.pool_bytes for engine in self.engines)) if self.device_bytes else 0

    @property
    def idle_bytes(self) -> int:
        """Memory of the devices behind the first that no pool can use: pools are as large on every device as on the busiest one."""
        if not self.device_bytes:
            return 0
        others = sorted({device for engine in self.engines for device in engine.devices})[1:]
        used = [sum(engine.total_bytes for engine in self.engines if device in engine.devices) for device in others]
        return sum(max(0, self.device_bytes - self.reserve_bytes - count) for count in used)

    @property
    def idle_devices(self) -> int:
        """Devices that do not carry every engine."""
        return len({d for e in self.engines for d in e.devices if any(d not in other.devices for other in self.engines)})

    def as_dict(self) -> dict[str, Any]:
        """For `tandem plan --json`."""
        device = {
            "chip": self.chip,
            "count": self.chip_count,
            "memory_bytes": self.device_bytes,
            "reserve_bytes": self.reserve_bytes,
            "used_bytes": self.total_bytes,
            "stranded_bytes": self.stranded_bytes,
            "idle_bytes": self.idle_bytes,
        }
        return {
            **{engine.role: engine.as_dict() for engine in self.engines},
            "device": device,
            "needed_tokens": self.needed_tokens,
            "sequence_tokens": self.sequence_tokens,
            "capacity": [asdict(row) for row in self.capacity],
            "build": {**asdict(self.build), "chip_count": self.build_chip_count},
            "shared_memory_bytes": self.shared_memory_bytes,
            "host_offload_bytes": self.host_offload_bytes,
            "load_orders": [[asdict(step) for step in order] for order in self.load_orders],
            "alternatives": [{"changes": dict(a.changes), "sequences": a.sequences} for a in self.alternatives],
            "smaller_drafts": [{"changes": dict(a.changes), "sequences": a.sequences} for a in self.smaller_drafts],
        }
