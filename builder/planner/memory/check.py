"""What the memory plan refuses and warns of."""

import os
from collections.abc import Iterator

from builder.errors import Finding
from builder.planner.memory.model import MemoryPlan
from builder.spec import PairSpec

GIB = 2**30


def check_memory(spec: PairSpec, plan: MemoryPlan, *, host_memory_bytes: int | None = None) -> Iterator[Finding]:
    """Findings of a plan. `host_memory_bytes` is this machine's memory, measured when not given."""
    host = physical_memory_bytes() if host_memory_bytes is None else host_memory_bytes
    if not plan.device_bytes:
        yield from _check_host(plan, host)


def physical_memory_bytes() -> int:
    """Memory of this machine; 0 when it does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError):
        return 0


def _check_host(plan: MemoryPlan, host_bytes: int) -> Iterator[Finding]:
    if not 0 < host_bytes < plan.total_bytes:
        return
    pools = sum(engine.pool_bytes for engine in plan.engines)
    message = (
        f"The engines take {_gib(plan.total_bytes - pools)} and their two pools of {plan.pool_tokens} tokens {_gib(pools)}, "
        f"together more than the {_gib(host_bytes)} of this machine."
    )
    fix = "lower limits.max_batch_size or limits.max_sequence_tokens, or serve on a machine with more memory"
    yield Finding("MEM-HOST", "warning", message, "limits", _gib(plan.total_bytes), f"<= {_gib(host_bytes)}", fix)


def _gib(count_bytes: int) -> str:
    return f"{count_bytes / GIB:.1f} GiB"
