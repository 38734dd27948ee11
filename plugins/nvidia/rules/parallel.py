"""How both models are spread over the chips."""

import math

from plugins.nvidia.rules.case import Case, Findings, Side, any_of, finding

MOST_RANKS = 64


def enough_chips(case: Case) -> Findings:
    """R123: one process and one chip for each rank."""
    count = case.deployment.chip_count
    for side in case.sides:
        request, ranks = side.request, side.ranks
        if ranks > count:
            split = f"tensor_parallel {request.tensor_parallel} x pipeline_parallel {request.pipeline_parallel}"
            message = f"The {side.role}'s {split} takes {ranks} chips, and hardware.count is {count}."
            fields = [side.field(name) for name in ("tensor_parallel", "pipeline_parallel") if getattr(request, name) > 1]
            fix = f"set hardware.count to {ranks}, or a smaller {any_of(fields)}"
            field = fields[0]
            yield finding("RULE-WORLD-SIZE", "error", field, message, found=ranks, needed=f"<= {count}", fix=fix)


def idle_chips(case: Case) -> Findings:
    """The draft shares the target's chips, so the larger split is what is used."""
    count, used = case.deployment.chip_count, max(side.ranks for side in case.sides)
    if used < count:
        message = f"{count} chips are planned, and target and draft share {used}: the rest {'is' if count - used == 1 else 'are'} idle."
        fix = f"set hardware.count to {used}, or a larger target.tensor_parallel"
        yield finding("RULE-CHIPS-IDLE", "warning", "hardware.count", message, found=count, needed=f"<= {used}", fix=fix)


def heads_divide(case: Case) -> Findings:
    """R138: 28 heads over 8 chips; 4 or 2 heads of keys and values over 8."""
    for side in case.sides:
        heads, kv_heads, split = side.shape.heads, side.shape.kv_heads, side.request.tensor_parallel
        if not heads or _splits(heads, kv_heads, split):
            continue
        sizes = [str(n) for n in range(1, MOST_RANKS + 1) if _splits(heads, kv_heads, n)]
        message = (
            f"{heads} attention heads with {kv_heads} of keys and values cannot be split over {split} chips; "
            f"{any_of(sizes)} {'works' if len(sizes) == 1 else 'work'}."
        )
        fix = f"set {side.field('tensor_parallel')} to {any_of(sizes)}"
        needed = " | ".join(sizes)
        yield finding("RULE-TP-HEADS", "error", side.field("tensor_parallel"), message, found=split, needed=needed, fix=fix)


def _splits(heads: int, kv_heads: int, split: int) -> bool:
    """Heads go to ranks in equal numbers; heads of keys and values may be copied to several ranks, but not cut."""
    return heads % split == 0 and (kv_heads % split == 0 or split % kv_heads == 0)


def copied_kv_heads(case: Case) -> Findings:
    """More ranks than heads of keys and values."""
    for side in case.sides:
        heads, kv_heads, split = side.shape.heads, side.shape.kv_heads, side.request.tensor_parallel
        if heads and split > kv_heads and _splits(heads, kv_heads, split):
            copies = f"each of the {kv_heads} heads of keys and values is kept {split // kv_heads} times"
            message = f"Over {split} chips {copies}: a chip's cache is not smaller than over {kv_heads}."
            fix = f"{side.field('tensor_parallel')}: {kv_heads} keeps as many tokens a chip"
            field = side.field("tensor_parallel")
            yield finding("RULE-KV-COPIED", "info", field, message, found=split, needed=f"<= {kv_heads}", fix=fix)


def padded_vocabulary(case: Case) -> Findings:
    """R137: padding is added to the output layer and masked."""
    for side in case.sides:
        rows, split = side.shape.vocab_size, side.request.tensor_parallel
        if rows % split:
            padded = _padded(side)
            message = f"{rows} rows of the output layer over {split} chips are padded to {padded}; the padding is never answered."
            field = side.field("tensor_parallel")
            yield finding("RULE-VOCAB-PADDED", "info", field, message, found=rows, needed=f"a multiple of {split}")


def equal_logits(case: Case) -> Findings:
    """R21: with acceptance by logits both output layers must be equally wide, padding of the split included."""
    draft = case.draft
    if case.deployment.acceptance != "logits" or draft is None or draft.shape.vocab_size != case.target.shape.vocab_size:
        return
    target_width, draft_width = _padded(case.target), _padded(draft)
    if target_width != draft_width:
        message = (
            f"Acceptance by logits compares rows of {target_width} (target, tensor_parallel {case.target.request.tensor_parallel}) and "
            f"{draft_width} (draft, tensor_parallel {draft.request.tensor_parallel}) numbers: the split pads them differently."
        )
        fix = "set draft.tensor_parallel to target.tensor_parallel, or speculation.acceptance: tokens"
        field = draft.field("tensor_parallel")
        yield finding("RULE-LOGITS-WIDTH", "error", field, message, found=draft_width, needed=target_width, fix=fix)


def _padded(side: Side) -> int:
    split = side.request.tensor_parallel
    return math.ceil(side.shape.vocab_size / split) * split


def pipeline(case: Case) -> Findings:
    """Whole layers go to stages; drafts with several stages are documented nowhere."""
    side, field = case.target, "target.pipeline_parallel"
    stages, layers = side.request.pipeline_parallel, side.shape.layers
    if stages > layers:
        message = f"{layers} layers cannot fill {stages} pipeline stages."
        fix = f"set {field} to {layers} or less"
        yield finding("RULE-PP-LAYERS", "error", field, message, found=stages, needed=f"<= {layers}", fix=fix)
    elif layers % stages:
        most = math.ceil(layers / stages)
        message = f"{layers} layers over {stages} pipeline stages are uneven: the stage of {most} layers decides memory and time of all."
        sizes = any_of([str(n) for n in range(1, stages + 1) if layers % n == 0])
        yield finding("RULE-PP-UNEVEN", "warning", field, message, found=stages, needed=sizes, fix=f"set {field} to {sizes}")
    if case.drafts and stages > 1:
        message = "Upstream documents draft tokens with tensor parallelism only; each draft round would wait for every pipeline stage."
        fix = f"set {field}: 1 and {_no_stages(case)}"
        yield finding("RULE-PP-DRAFTS", "warning", field, message, found=stages, needed=1, fix=fix)


def _no_stages(case: Case) -> str:
    """Splits of the target by heads alone: the same number of chips, or else the next smaller and the next larger split that works."""
    shape, ranks, count = case.target.shape, case.target.ranks, case.deployment.chip_count
    sizes = [n for n in range(1, MOST_RANKS + 1) if not shape.heads or _splits(shape.heads, shape.kv_heads, n)]
    near = [ranks] if ranks in sizes else [*[n for n in sizes if n < ranks][-1:], *[n for n in sizes if n > ranks][:1]]
    ways = [f"target.tensor_parallel: {n}" + (f" with hardware.count: {n}" if n > count or count == ranks != n else "") for n in near]
    return any_of(ways)


def draft_split(case: Case) -> Findings:
    """R50, R57: a split draft pays for communication in each of its small steps."""
    draft = case.draft
    if draft and draft.request.tensor_parallel > 1:
        split, field = draft.request.tensor_parallel, "draft.tensor_parallel"
        message = f"A draft over {split} chips waits for them at every layer of every draft token; users found no gain that way."
        fix = f"set {field}: 1 unless the draft does not fit one chip"
        yield finding("RULE-DRAFT-TP", "warning", field, message, found=split, needed=1, fix=fix)


PARALLEL_RULES = (
    enough_chips,
    idle_chips,
    heads_divide,
    copied_kv_heads,
    padded_vocabulary,
    equal_logits,
    pipeline,
    draft_split,
)
