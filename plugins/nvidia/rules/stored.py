"""What a checkpoint already is, against what the pair file makes of it."""

from builder.api import Finding
from plugins.nvidia.lanes import CONVERTED, is_fixed
from plugins.nvidia.rules.case import Case, Findings, Side, any_of, finding


def stored_weights(case: Case) -> Findings:
    """A quantized checkpoint stays what it is."""
    for side in case.sides:
        stored, asked = side.facts.stored, side.request.weights
        algorithm = stored.weights
        if is_fixed(stored) and algorithm not in _algorithms(side, asked):
            yield _stored_weights(case, side, algorithm, asked)


def _stored_weights(case: Case, side: Side, algorithm: str, asked: str) -> Finding:
    word = next((w for w, row in side.lane.weights.items() if algorithm in row.algorithms), "")
    field, kind = side.field("weights"), side.facts.stored.kind
    name = algorithm or "unquantized"
    message = f"The {side.role}'s checkpoint ({kind}) already holds {name} weights; {asked} weights cannot be made of it."
    elsewhere = f"point {side.field('checkpoint')} at the unquantized model"
    if word:
        fix = f"set {field}: {word}" if not case.is_gpu or side.lane.weights[word].runs_on(case.sm) else elsewhere
        return finding("RULE-STORED-WEIGHTS", "error", field, message, found=asked, needed=word, fix=fix)
    message = f"The {side.role}'s checkpoint ({kind}) holds {algorithm} weights, which engine.kind {side.lane.kind} does not take."
    return finding("RULE-STORED-WEIGHTS", "error", field, message, found=algorithm, needed="an algorithm of the lane", fix=elsewhere)


def _algorithms(side: Side, word: str) -> tuple[str, ...]:
    row = side.lane.weights.get(word)
    return row.algorithms if row else ()


def stored_kv_cache(case: Case) -> Findings:
    """A checkpoint whose cache was calibrated for one format is not served with another."""
    for side in case.sides:
        stored, asked = side.facts.stored.kv_cache, side.request.kv_cache
        row = side.lane.kv_cache.get(asked)
        if not side.cache_is_fixed or asked == "auto" or (row is not None and stored in row.algorithms):
            continue
        field = side.field("kv_cache")
        message = (
            f"The {side.role}'s checkpoint was made for an {stored or 'unquantized'} KV cache, and {asked} is asked for; "
            "the loader refuses that."
        )
        fix = f"set {field}: auto, or point {side.field('checkpoint')} at another checkpoint"
        yield finding("RULE-STORED-KV", "error", field, message, found=asked, needed=stored.lower() or "bf16", fix=fix)


def stored_split(case: Case) -> Findings:
    """R124: the split was fixed when the checkpoint was converted."""
    for side in case.sides:
        stored, request = side.facts.stored, side.request
        if stored.kind not in CONVERTED:
            continue
        made = (stored.tensor_parallel, stored.pipeline_parallel)
        asked = (request.tensor_parallel, request.pipeline_parallel)
        if made != asked:
            message = (
                f"The {side.role}'s checkpoint was converted for tensor_parallel {made[0]} x pipeline_parallel {made[1]}, and the pair "
                f"file says {asked[0]} x {asked[1]}: the checkpoint's split counts, not a flag of the build."
            )
            fix = f"set {side.field('tensor_parallel')}: {made[0]} (pipeline_parallel {made[1]}), or convert the checkpoint again"
            found, needed = f"{asked[0]} x {asked[1]}", f"{made[0]} x {made[1]}"
            field = side.field("tensor_parallel")
            yield finding("RULE-STORED-SPLIT", "error", field, message, found=found, needed=needed, fix=fix)


def stored_kind(case: Case) -> Findings:
    """What no lane of TensorRT-LLM reads, as GGUF; the PyTorch lane says itself that it loads no folder of the engine lane."""
    for side in case.sides:
        kind, known = side.facts.stored.kind, side.lane.stored
        if kind not in (*known, *CONVERTED):
            message = f"The {side.role}'s checkpoint is of kind {kind}, and engine.kind {side.lane.kind} reads {any_of(known)}."
            field = side.field("checkpoint")
            fix = f"point {field} at the Hugging Face folder that it was made of"
            yield finding("RULE-STORED-KIND", "error", field, message, found=kind, needed=" | ".join(known), fix=fix)


def kv_scales(case: Case) -> Findings:
    """R61: a checkpoint that was quantized without its cache has no scales for one; scales that are stored are judged by its reader."""
    for side in case.sides:
        stored, kv_cache = side.facts.stored, side.kv_cache
        if not stored.weights or stored.kv_cache or stored.kind in CONVERTED or kv_cache not in ("int8", "fp8"):
            continue
        field = side.field("kv_cache")
        start = f"The {side.role}'s checkpoint was quantized without its cache, so there are no KV scales"
        fix = f"calibrate it again with an {kv_cache.upper()} cache, or set {field}: bf16"
        if kv_cache == "int8":
            message = f"{start}: an INT8 cache without calibrated scales answers nonsense."
            yield finding("RULE-KV-SCALES", "error", field, message, found="none", needed="calibrated scales", fix=fix)
        else:
            message = f"{start}: the runtime takes 1.0 for an FP8 cache, and small keys and values lose accuracy."
            yield finding("RULE-KV-SCALES", "warning", field, message, found="none", needed="calibrated scales", fix=fix)


STORED_RULES = (stored_kind, stored_weights, stored_kv_cache, stored_split, kv_scales)
