"""Words of the pair file that a lane does not have: without a meaning, nothing else can be said of the engine."""

import difflib

from builder.api import EngineRequest, Finding
from plugins.nvidia.lanes import Lane
from plugins.nvidia.rules.case import Findings, any_of, finding


def check_words(request: EngineRequest, lane: Lane) -> list[Finding]:
    """Weights, cache and options of one engine that the lane has not; options are the pair's and said once, with the target."""
    return [*_weights(request, lane), *_kv_cache(request, lane), *(_options(request, lane) if request.role == "target" else ())]


def _weights(request: EngineRequest, lane: Lane) -> Findings:
    word, field, known = request.weights, f"{request.role}.weights", list(lane.weights)
    if word not in lane.weights:
        why = lane.absent["weights"].get(word, f"it has {any_of(known)}")
        message = f"engine.kind {lane.kind} has no {word} weights: {why}."
        fix = f"set {field} to {any_of(known)}"
        yield finding("RULE-WEIGHTS-LANE", "error", field, message, found=word, needed=" | ".join(known), fix=fix)


def _kv_cache(request: EngineRequest, lane: Lane) -> Findings:
    word, field, known = request.kv_cache, f"{request.role}.kv_cache", ["auto", *lane.kv_cache]
    if word not in known:
        why = lane.absent["kv_cache"].get(word, f"it has {any_of(known)}")
        message = f"engine.kind {lane.kind} has no {word} KV cache: {why}."
        fix = f"set {field} to {any_of(known)}"
        yield finding("RULE-KV-LANE", "error", field, message, found=word, needed=" | ".join(known), fix=fix)


def _options(request: EngineRequest, lane: Lane) -> Findings:
    for name, value in sorted(request.options.items()):
        option, field = lane.options.get(name), f"engine.options.{name}"
        if option is None:
            yield _unknown(name, field, lane)
        elif option.never:
            message = f"The option {name} cannot be used with a pair: {option.never}."
            yield finding("RULE-OPTION-NEVER", "error", field, message, found=value, needed="not given", fix="remove it")
        elif not option.allows(value):
            message = f"The option {name} takes {option.needed}, and {value!r} is none."
            yield finding("RULE-OPTION-VALUE", "error", field, message, found=value, needed=option.needed, fix=f"give {option.needed}")


def _unknown(name: str, field: str, lane: Lane) -> Finding:
    if name in lane.elsewhere:
        place = lane.elsewhere[name]
        message = f"{name} is no option: the pair file has {place} for it."
        return finding("RULE-OPTION-ELSEWHERE", "error", field, message, found=name, needed=place, fix="remove it")
    near = difflib.get_close_matches(name, lane.options, n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]}?" if near else "."
    message = f"engine.kind {lane.kind} has no option {name}{hint}"
    fix = f"write {near[0]}" if near else "remove it"
    return finding("RULE-OPTION", "error", field, message, found=name, needed=" | ".join(lane.options) or "no options", fix=fix)
