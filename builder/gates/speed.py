"""Speed: the same prompts by the target alone and with speculation, interleaved on the same server.

Prompts repeat, so with block reuse both sides find a prompt's blocks in the cache from the second run on: the medians compare the
decoding of answers, as for prompts with a known prefix. A prompt that is new to both models costs the speculative side its draft's
prefill once.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from builder.api import Progress
from builder.gates.acceptance import count
from builder.gates.prompts import Prompt
from builder.gates.result import GateResult, not_evaluated
from builder.gates.runs import PairRun, RunSettings, run_pair
from builder.gates.stats import bootstrap_interval, geometric_mean, median, ratio_of_sums
from builder.serving.client import Client

NAME = "speed"
UNIT = "x, target-only seconds / speculative seconds"


@dataclass(frozen=True)
class SpeedSettings:
    """`repeats` measured runs of each prompt on each side after `warmup_prompts` that are not counted.

    `min_speedup_mix` holds for all prompts together, `min_speedup_kind` for each kind.
    """

    repeats: int
    warmup_prompts: int
    min_speedup_mix: float
    min_speedup_kind: float


@dataclass(frozen=True)
class PromptTimes:
    """Seconds of one prompt, both sides, by repeat; scaled to equal tokens where the two sides gave different numbers of them."""

    prompt: Prompt
    target_s: tuple[float, ...]
    speculative_s: tuple[float, ...]
    runs: tuple[PairRun, ...]


def measure_speed(
    client: Client, prompts: Sequence[Prompt], run: RunSettings, settings: SpeedSettings, progress: Progress | None = None
) -> list[list[PairRun]]:
    """Runs by repeat, then by prompt. Which side goes first alternates, so that neither always finds the prompt's blocks cached."""
    for prompt in prompts[: settings.warmup_prompts]:
        run_pair(client, prompt, run)
    repeats: list[list[PairRun]] = []
    total = settings.repeats * len(prompts)
    for repeat in range(settings.repeats):
        repeats.append([])
        for i, prompt in enumerate(prompts):
            repeats[-1].append(run_pair(client, prompt, run, target_first=(repeat + i) % 2 == 0))
            if progress is not None:
                progress("measuring both sides in turn", (repeat * len(prompts) + i + 1) / total)
    return repeats


def judge_speed(repeats: Sequence[Sequence[PairRun]], settings: SpeedSettings) -> GateResult:
    """Speed-up of a kind, and of the mix, is the ratio of summed medians: what a user who sends these prompts waits in all."""
    runs = [run for repeat in repeats for run in repeat]
    if not runs:
        return not_evaluated(NAME, "nothing was measured", settings.min_speedup_mix, UNIT)
    empty = [run.prompt.id for run in runs if not _usable(run)]
    if empty:
        return not_evaluated(NAME, f"prompt {empty[0]}: no tokens, or no time, on a side", settings.min_speedup_mix, UNIT)
    if not any(run.speculative.drafted for run in runs):
        return not_evaluated(NAME, "no tokens were drafted, so there is nothing to compare", settings.min_speedup_mix, UNIT)
    times = [_times(column) for column in zip(*repeats, strict=True)]
    kinds = {kind: _numbers([t for t in times if t.prompt.kind == kind]) for kind in dict.fromkeys(t.prompt.kind for t in times)}
    mix = _numbers(times)
    slow = [kind for kind, n in kinds.items() if not n["speedup"] >= settings.min_speedup_kind]
    passed = mix["speedup"] >= settings.min_speedup_mix and not slow
    medians = [(median(t.target_s), median(t.speculative_s)) for t in times]
    details = {
        **mix,
        "interval_95": list(bootstrap_interval([m[0] for m in medians], [m[1] for m in medians])),
        "geometric_mean_of_kinds": _number(geometric_mean([n["speedup"] for n in kinds.values()])),
        "min_speedup_kind": settings.min_speedup_kind,
        "kinds_below": slow,
        "unequal_lengths": sorted({r.prompt.id for r in runs if len(r.target.output_ids) != len(r.speculative.output_ids)}),
        "repeats": len(repeats),
        "prompts": [_prompt_row(t) for t in times],
        "kinds": kinds,
    }
    return GateResult(NAME, passed, mix["speedup"], settings.min_speedup_mix, UNIT, _summary(mix, kinds, slow, settings), details)


def _usable(run: PairRun) -> bool:
    return all(g.output_ids and math.isfinite(g.seconds) and g.seconds > 0 for g in (run.target, run.speculative))


def _times(column: Sequence[PairRun]) -> PromptTimes:
    scaled = [r.speculative.seconds * len(r.target.output_ids) / len(r.speculative.output_ids) for r in column]
    return PromptTimes(column[0].prompt, tuple(r.target.seconds for r in column), tuple(scaled), tuple(column))


def _numbers(times: Sequence[PromptTimes]) -> dict[str, Any]:
    """Speed-up with its least and greatest value over the repeats, tokens per second of both sides, and where the time went."""
    target_s, speculative_s = [median(t.target_s) for t in times], [median(t.speculative_s) for t in times]
    by_repeat = [ratio_of_sums([t.target_s[r] for t in times], [t.speculative_s[r] for t in times]) for r in range(len(times[0].target_s))]
    tokens = sum(median([len(r.target.output_ids) for r in t.runs]) for t in times)
    generations = [r.speculative for t in times for r in t.runs]
    counts, seconds = count(generations), math.fsum(g.seconds for g in generations)
    return {
        "speedup": ratio_of_sums(target_s, speculative_s),
        "speedup_min": min(by_repeat),
        "speedup_max": max(by_repeat),
        "target_tokens_per_s": tokens / math.fsum(target_s),
        "speculative_tokens_per_s": tokens / math.fsum(speculative_s),
        "draft_time_share": math.fsum(g.draft_s for g in generations) / seconds,
        "target_time_share": math.fsum(g.target_s for g in generations) / seconds,
        "tokens_per_pass": counts.length,
        "from_draft_model": (counts.accepted - counts.lookup_accepted) / len(times[0].runs),
        "from_lookup": counts.lookup_accepted / len(times[0].runs),
    }


def _prompt_row(t: PromptTimes) -> dict[str, Any]:
    return {
        "id": t.prompt.id,
        "kind": t.prompt.kind,
        "tokens": len(t.runs[0].target.output_ids),
        "target_s": median(t.target_s),
        "speculative_s": median(t.speculative_s),
        "speedup": ratio_of_sums([median(t.target_s)], [median(t.speculative_s)]),
    }


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _summary(mix: dict[str, Any], kinds: dict[str, dict[str, Any]], slow: Sequence[str], settings: SpeedSettings) -> str:
    best = max(kinds, key=lambda k: kinds[k]["speedup"])
    text = (
        f"{mix['speedup']:.2f}x over all prompts ({mix['speedup_min']:.2f} to {mix['speedup_max']:.2f} over the repeats, at least "
        f"{settings.min_speedup_mix:g}): {mix['target_tokens_per_s']:.1f} -> {mix['speculative_tokens_per_s']:.1f} tokens/s; "
        f"best kind {best} {kinds[best]['speedup']:.2f}x"
    )
    if slow:
        worst = ", ".join(f"{k} {kinds[k]['speedup']:.2f}x" for k in slow)
        text += f"; below the floor of {settings.min_speedup_kind:g} for a kind: {worst}"
    return text
