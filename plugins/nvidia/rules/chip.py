"""Which number formats the chip and the lane have."""

from dataclasses import replace

from builder.api import Finding
from plugins.nvidia.lanes import Precision, is_fixed
from plugins.nvidia.memory import engine_memory
from plugins.nvidia.releases import at_least
from plugins.nvidia.rules.case import Case, Findings, Side, any_of, finding

FAMILIES = {80: "Ampere", 89: "Ada", 90: "Hopper", 100: "Blackwell"}
"""Where a compute capability begins, for messages."""
NEWEST_SM = 129
POOL_ROOM = 0.05
"""Of a chip's memory, the least for a cache and a reserve."""
SHORT = {"": "unquantized", "none": "unquantized"}


def chip_is_gpu(case: Case) -> Findings:
    """The lanes of TensorRT-LLM run on NVIDIA GPUs only."""
    if not case.is_gpu:
        name = case.deployment.chip.name
        message = f"TensorRT-LLM runs on NVIDIA GPUs, and {name} is none."
        fix = "set hardware.chip to a GPU of configs/chips.yaml, or engine.kind: openvino"
        yield finding("RULE-CHIP-GPU", "error", "hardware.chip", message, found=name, needed="an NVIDIA GPU", fix=fix)


def chip_supported(case: Case) -> Findings:
    """Chip against release: too old for the lane, too new for the release, or never read."""
    if not case.is_gpu:
        return
    chip, sm = case.deployment.chip.name, case.sm
    row = next((c for c in case.lane.chips if c.sm == sm), None)
    needed = any_of([f"sm_{c.sm}" for c in case.lane.chips])
    if row is None:
        message = f"{chip} is sm_{sm}, which no release of engine.kind {case.lane.kind} supports."
        fix = "choose another hardware.chip"
        yield finding("RULE-CHIP-SM", "error", "hardware.chip", message, found=f"sm_{sm}", needed=needed, fix=fix)
    elif not at_least(case.release, row.since):
        message = f"{chip} is sm_{sm}, which TensorRT-LLM supports from {row.since} on; the release is {case.release.name}."
        fix = f'set engine.release to "{row.since}" or later'
        yield finding("RULE-CHIP-RELEASE", "error", "hardware.chip", message, found=case.release.name, needed=f">= {row.since}", fix=fix)


def weights_on_chip(case: Case) -> Findings:
    """FP8 weights need sm_89, NVFP4 sm_100; INT8, INT4 and SmoothQuant are gone on sm_100 to sm_119."""
    for side in case.sides if case.is_gpu else ():
        rows = (side.weights_row, case.lane.algorithms.get(side.algorithm))
        refusing = next((row for row in rows if row and not row.runs_on(case.sm)), None)
        if refusing:
            yield _weights(case, side, refusing)


def _weights(case: Case, side: Side, row: Precision) -> Finding:
    chip, sm = case.deployment.chip.name, case.sm
    name = _title(side.algorithm or side.request.weights)
    if sm < row.min_sm:
        message = f"{name} weights need {_from(row.min_sm)}, and {chip} is sm_{sm}."
        needed = f"sm_{row.min_sm} or newer"
    else:
        message = f"{name} weights cannot run on {chip}, which is sm_{sm}: {row.not_why}."
        needed = _outside(row)
    fix = f"{_other_weights(case, side)}choose a chip with {needed}"
    return finding("RULE-WEIGHTS-CHIP", "error", side.field("weights"), message, found=f"sm_{sm}", needed=needed, fix=fix)


def _other_weights(case: Case, side: Side) -> str:
    """Weights that run on the chip, of those that leave room for a cache where any do; of a checkpoint that is quantized, none."""
    words = [word for word, row in case.lane.weights.items() if row.runs_on(case.sm) and word != side.request.weights]
    if is_fixed(side.facts.stored):
        return f"point {side.field('checkpoint')} at the unquantized model, or "
    fitting = [word for word in words if _fits(case, side, word)]
    return f"set {side.field('weights')} to {any_of(fitting or words)}, or "


def _fits(case: Case, changed: Side, word: str) -> bool:
    """Whether both engines load on one chip and leave room, with other weights on one side."""
    requests = [replace(s.request, weights=word) if s.role == changed.role else s.request for s in case.sides]
    memory = [engine_memory(r, s.shape, case.lane.kind, s.facts.stored) for r, s in zip(requests, case.sides, strict=True)]
    own = sum(m.weights_bytes + m.activation_bytes + m.other_bytes for m in memory)
    return own < case.deployment.chip.memory_bytes * (1 - POOL_ROOM)


def kv_cache_on_chip(case: Case) -> Findings:
    """FP8 caches need sm_89 (engine lane), NVFP4 ones sm_100 or sm_103, INT8 ones are gone on sm_100 to sm_119."""
    for side in case.sides if case.is_gpu else ():
        row = side.kv_row
        if row and not row.runs_on(case.sm):
            yield _kv_cache(case, side, row)


def _kv_cache(case: Case, side: Side, row: Precision) -> Finding:
    chip, sm = case.deployment.chip.name, case.sm
    if sm < row.min_sm:
        message = f"An {_title(row.name)} KV cache needs {_from(row.min_sm)}, and {chip} is sm_{sm}."
        needed = f"sm_{row.min_sm} or newer"
    else:
        message = f"An {_title(row.name)} KV cache cannot be on {chip}, which is sm_{sm}: {row.not_why}."
        needed = _outside(row)
    others = [_with_limits(o) for o in case.lane.kv_cache.values() if o.runs_on(sm)]
    field = side.field("kv_cache")
    fix = f"{side.other_cache(any_of(others))}; or choose a chip with {needed}"
    return finding("RULE-KV-CHIP", "error", field, message, found=f"sm_{sm}", needed=needed, fix=fix)


def kv_cache_in_release(case: Case) -> Findings:
    """A cache format that only later releases load."""
    for side in case.sides:
        row = side.kv_row
        if row and not at_least(case.release, row.since):
            message = f"An {_title(row.name)} KV cache exists from TensorRT-LLM {row.since} on; the release is {case.release.name}."
            fix = f'set engine.release to "{case.lane.default}", or {side.field("kv_cache")}: fp8'
            needed = f">= {row.since}"
            yield finding("RULE-KV-RELEASE", "error", side.field("kv_cache"), message, found=case.release.name, needed=needed, fix=fix)


def _title(word: str) -> str:
    return SHORT.get(word, word.upper())


def _from(sm: int) -> str:
    family = FAMILIES.get(sm)
    return f"sm_{sm} ({family}) or newer" if family else f"sm_{sm} or newer"


def _outside(row: Precision) -> str:
    """The compute capabilities that a row leaves, when it refuses a range of them."""
    assert row.not_sm is not None
    first, last = row.not_sm
    below = f"sm_{row.min_sm} to sm_{first - 1}"
    return below if last >= NEWEST_SM else f"{below}, or sm_{last + 1} and newer"


def _with_limits(row: Precision) -> str:
    word = "bf16 (16-bit)" if row.name == "bf16" else row.name
    return f"{word} (only with {row.only})" if row.only else word
