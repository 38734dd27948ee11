"""What the memory plan refuses and warns of."""

from collections.abc import Iterator

from builder.errors import Finding, Severity
from builder.hardware.host import gib, host_memory
from builder.planner.lengths import shorter
from builder.planner.memory.model import MemoryPlan
from builder.planner.memory.needs import head_room_tokens, longest_context_tokens
from builder.spec import PairSpec

IDLE_SHARE = 0.1
"""Of the memory of the devices without a draft: less unused memory is not worth a word."""
CHIPS_OF_A_MACHINE = 8


def check_memory(spec: PairSpec, plan: MemoryPlan, *, host_memory_bytes: int | None = None) -> Iterator[Finding]:
    """Findings of a plan. `host_memory_bytes` is this machine's memory, measured when not given, 0 when unknown."""
    host = host_memory().total_bytes if host_memory_bytes is None else host_memory_bytes
    if plan.device_bytes:
        yield from _check_device(spec, plan)
        if plan.full_sequences:
            yield from _check_fractions(plan)
            yield from _check_idle(spec, plan)
            yield from _check_build_device(spec, plan)
    else:
        yield from _check_host(plan, host)
    yield from _check_build_host(plan, host)
    yield from _check_offload(plan, host)


def _check_device(spec: PairSpec, plan: MemoryPlan) -> Iterator[Finding]:
    """At most one of the three: each takes the one before for granted."""
    if plan.budget_bytes <= 0:
        yield _weights(plan)
    elif plan.full_sequences == 0:
        yield _pool(spec, plan)
    elif plan.full_sequences < spec.limits.max_batch_size:
        yield _batch(spec, plan)


def _weights(plan: MemoryPlan) -> Finding:
    weights = sum(engine.weights_bytes for engine in plan.engines)
    own = sum(engine.own_bytes for engine in plan.engines)
    parts = ", ".join(f"{engine.role} {gib(engine.weights_bytes)}" for engine in plan.engines)
    message = (
        f"Weights take {gib(weights)} of one {plan.chip} ({parts}), activations and runtime {gib(own - weights)}, "
        f"of the {gib(plan.device_bytes)} that it has, {gib(plan.reserve_bytes)} of them in reserve: no room is left for keys and values."
    )
    needed = f"< {gib(plan.device_bytes - plan.reserve_bytes)}"
    return Finding("MEM-WEIGHTS", "error", message, "hardware.chip", gib(own), needed, _fix(plan))


def _pool(spec: PairSpec, plan: MemoryPlan) -> Finding:
    kv_bytes = sum(engine.kv_bytes_per_token for engine in plan.engines)
    message = (
        f"One sequence of full length ({_full(spec)}) takes {gib(plan.sequence_tokens * kv_bytes)} of keys and values in {_pools(plan)}, "
        f"and {gib(plan.budget_bytes)} of one {plan.chip} are left beside weights, activations, runtime and reserve."
    )
    longest = longest_context_tokens(spec, plan.pool_tokens, 1)
    fix = _fix(plan, *_shorter(spec, longest))
    found = str(spec.limits.max_sequence_tokens)
    return Finding("MEM-POOL", "error", message, "limits.max_sequence_tokens", found, f"<= {longest}", fix)


def _batch(spec: PairSpec, plan: MemoryPlan) -> Finding:
    batch = spec.limits.max_batch_size
    message = (
        f"At full length ({_full(spec)}) {plan.full_sequences} of limits.max_batch_size {batch} sequences fit into {_pools(plan)} at once; "
        "the others wait for room."
    )
    longest = longest_context_tokens(spec, plan.pool_tokens, batch)
    own = [f"limits.max_batch_size: {plan.full_sequences}", *_shorter(spec, longest)]
    return Finding("MEM-BATCH", "warning", message, "limits.max_batch_size", str(batch), f"<= {plan.full_sequences}", _fix(plan, *own))


def _shorter(spec: PairSpec, longest: int) -> list[str]:
    """A lower limit, with every field that must change with it."""
    changes = [f"{field}: {value}" for field, value in shorter(spec, longest).items()] if longest > 0 else []
    return [" and ".join(changes)] if changes else []


def _fix(plan: MemoryPlan, *limits: str) -> str:
    """Ways out; where the lane refuses the pair anyway, only those that mend that too."""
    if plan.refused:
        mended = "".join(f", or set {alternative}" for alternative in plan.alternatives)
        return f"mend {' and '.join(plan.refused)} first and plan again{mended}"
    ways = [*limits, *map(str, plan.alternatives)]
    return "set " + ", or ".join(ways) if ways else "take a smaller model, or split it over more chips than were tried"


def _check_fractions(plan: MemoryPlan) -> Iterator[Finding]:
    """Two engines on one device at the default fraction: what the first to load leaves for the second."""
    steps = [(order[0], order[1]) for order in plan.load_orders if len(order) == 2]
    own = {engine.role: engine.own_bytes for engine in plan.engines}
    default = plan.default_pool_fraction
    failing = [second.role for first, second in steps if (first.default_left_bytes or 0) < own[second.role]]
    if default is None or len(steps) < 2 or not failing:
        return
    orders = "; ".join(
        f"{first.role} first takes {default} of {gib(first.free_bytes)} and leaves {gib(first.default_left_bytes or 0)} for the "
        f"{second.role}'s {gib(own[second.role])}"
        for first, second in steps
    )
    outcome = "would load in neither order" if len(failing) == len(steps) else "would load in one order only"
    message = (
        f"With both KV fractions at the default of engine.kind {plan.engine_kind}, {default}, the pair {outcome} on one {plan.chip}: "
        f"{orders}. "
        f"Both pools are capped at {plan.pool_tokens} tokens instead, so the order of loading does not matter."
    )
    fractions = ", ".join(f"{engine.role} {engine.free_fraction:.4f}" for engine in plan.engines)
    yield Finding("MEM-FRACTIONS", "info", message, "kv_cache", f"{default} each", f"caps, or fractions of {fractions}")


def _check_idle(spec: PairSpec, plan: MemoryPlan) -> Iterator[Finding]:
    """The draft lies on the first devices only, and its share there bounds the target's pool on all of them."""
    target, draft = plan.share("target"), plan.share("draft")
    if not (target and draft and len(draft.devices) < len(target.devices)):
        return
    if plan.idle_bytes < IDLE_SHARE * plan.device_bytes * plan.idle_devices:
        return
    others = f"{plan.idle_devices} devices" if plan.idle_devices > 1 else "device"
    ways = ", or ".join([*map(str, plan.smaller_drafts), "a smaller draft"])
    message = (
        f"The draft's {gib(draft.total_bytes)} on the first device limit every pool to {plan.pool_tokens} tokens, so on the "
        f"{others} without it {gib(plan.idle_bytes)} stay unused; more tokens fit with {ways}. The limits can have {plan.needed_tokens} "
        "tokens live at once; what a pool holds beyond them keeps prefixes for reuse."
    )
    fix = f"take {ways}"
    severity: Severity = "info" if plan.full_sequences >= spec.limits.max_batch_size else "warning"
    yield Finding("MEM-IDLE-DEVICES", severity, message, "draft", gib(plan.idle_bytes), "", fix)


def _check_build_device(spec: PairSpec, plan: MemoryPlan) -> Iterator[Finding]:
    """Machines have 1, 2, 4, 8 or 16 chips; a pair is often quantized on a larger one than serves it."""
    if plan.build_chip_count <= plan.chip_count:
        return
    needed = 1 << (plan.build_chip_count - 1).bit_length()
    word = spec.target.weights
    export = f"a ModelOpt export with {word} weights" if word != "none" else ""
    message = (
        f"Quantizing and building takes, by estimate, the device memory of {needed} chips ({plan.chip}); the pair is to run on "
        f"{plan.chip_count}.{f' A checkpoint that is stored so already, as {export}, is not quantized again.' if export else ''}"
    )
    fix = f"build on a machine with {needed} of these chips{f', or start from {export}' if export else ''}"
    severity: Severity = "info" if needed <= CHIPS_OF_A_MACHINE else "warning"
    yield Finding("MEM-BUILD-DEVICE", severity, message, "hardware.count", str(plan.chip_count), f">= {needed} to build", fix)


def _check_host(plan: MemoryPlan, host_bytes: int) -> Iterator[Finding]:
    if not 0 < host_bytes < plan.total_bytes:
        return
    pools = sum(engine.pool_bytes for engine in plan.engines)
    message = (
        f"The engines take {gib(plan.total_bytes - pools)} and {_pools(plan)} of {plan.pool_tokens} tokens {gib(pools)}, "
        f"together more than the {gib(host_bytes)} of this machine."
    )
    fix = "lower limits.max_batch_size or limits.max_sequence_tokens, or serve on a machine with more memory"
    yield Finding("MEM-HOST", "warning", message, "limits", gib(plan.total_bytes), f"<= {gib(host_bytes)}", fix)


def _check_build_host(plan: MemoryPlan, host_bytes: int) -> Iterator[Finding]:
    if not 0 < host_bytes < plan.build.host_memory_bytes:
        return
    message = f"Building takes {gib(plan.build.host_memory_bytes)} of host memory at its peak, and this machine has {gib(host_bytes)}."
    fix = "build on a machine with more memory"
    severity: Severity = "info" if plan.device_bytes else "warning"  # a pair for a card is often planned on a laptop
    yield Finding("MEM-BUILD-HOST", severity, message, "", gib(plan.build.host_memory_bytes), f"<= {gib(host_bytes)}", fix)


def _check_offload(plan: MemoryPlan, host_bytes: int) -> Iterator[Finding]:
    """Blocks that leave a pool lie in the host's memory; which machine serves is not known, so this one is taken."""
    if not 0 < host_bytes < plan.host_offload_bytes:
        return
    message = (
        f"kv_cache.host_offload_bytes keeps {gib(plan.host_offload_bytes)} of blocks in host memory, and this machine has "
        f"{gib(host_bytes)}."
    )
    field, fix = "kv_cache.host_offload_bytes", "lower it, or serve on a machine with more memory"
    yield Finding("MEM-HOST-OFFLOAD", "warning", message, field, gib(plan.host_offload_bytes), f"< {gib(host_bytes)}", fix)


def _full(spec: PairSpec) -> str:
    return f"{spec.limits.max_sequence_tokens} tokens, and {head_room_tokens(spec)} slots for drafts and the next token"


def _pools(plan: MemoryPlan) -> str:
    return "both pools" if len(plan.engines) > 1 else "the pool"
