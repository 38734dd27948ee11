"""Every gate, one after another, against a running server."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from builder.api import Progress, TandemError
from builder.gates import acceptance, accuracy, lossless, speed
from builder.gates.acceptance import AcceptanceSettings
from builder.gates.accuracy import AccuracySettings, Logits
from builder.gates.lossless import LosslessSettings
from builder.gates.prompts import Prompt, spread_over_kinds, windows
from builder.gates.result import GateResult, not_evaluated
from builder.gates.runs import PairRun, RunSettings, run_pair
from builder.gates.speed import SpeedSettings
from builder.gates.verdict import Verdict, combine
from builder.serving.client import Client

ParentLogits = Callable[[Sequence[Sequence[int]]], Iterator[Logits]]
"""An engine plug-in's `parent_logits` with the checkpoint filled in."""


@dataclass(frozen=True)
class GateSettings:
    """What to validate and how. A gate whose settings are None was not asked for.

    `lossless`, `speed` and `acceptance` compare two sides: they fail where nothing is ever drafted, so do not ask for them there.
    """

    lossless_run: RunSettings
    speed_run: RunSettings
    lossless_prompts: int
    speed_prompts: int
    accuracy_windows: int
    accuracy_window_tokens: int
    lossless: LosslessSettings | None
    accuracy: AccuracySettings | None
    speed: SpeedSettings | None
    acceptance: AcceptanceSettings | None

    @property
    def asked(self) -> tuple[str, ...]:
        """Names of the gates that were asked for, in the order in which they run."""
        modules = ((lossless, self.lossless), (accuracy, self.accuracy), (speed, self.speed), (acceptance, self.acceptance))
        return tuple(module.NAME for module, settings in modules if settings is not None)


def validate(
    client: Client,
    prompts: Sequence[Prompt],
    text: str,
    parent_logits: ParentLogits,
    settings: GateSettings,
    progress: Progress | None = None,
) -> Verdict:
    """Run the gates. An error in one fails that gate and lets the others run; only an interruption ends them all.

    Acceptance is counted on the speculative answers of the lossless gate's prompts. With an adaptive draft length the counters depend on
    measured costs too: the rule drafts less on a machine where it pays less.
    """
    report = progress or _silent
    began = time.monotonic()
    runs, why = _pair_runs(client, spread_over_kinds(prompts, settings.lossless_prompts), settings, report)
    gates: dict[str, Callable[[], GateResult]] = {
        lossless.NAME: lambda: _lossless(client, runs, why, settings),
        accuracy.NAME: lambda: _accuracy(client, text, parent_logits, settings, report),
        speed.NAME: lambda: _speed(client, prompts, settings, report),
        acceptance.NAME: lambda: _acceptance(runs, why, settings),
    }
    results, durations_s = [], {}
    for name in settings.asked:
        results.append(_guarded(name, gates[name]))
        durations_s[name] = time.monotonic() - began
        began = time.monotonic()
    return replace(combine(results, settings.asked), durations_s=durations_s)


def _silent(_what: str, _share: float | None) -> None:
    return None


def _pair_runs(client: Client, prompts: Sequence[Prompt], settings: GateSettings, progress: Progress) -> tuple[list[PairRun], str]:
    """Both sides of each prompt, and why there are fewer of them than prompts."""
    runs: list[PairRun] = []
    if settings.lossless is None and settings.acceptance is None:
        return runs, ""
    try:
        for i, prompt in enumerate(prompts):
            runs.append(run_pair(client, prompt, settings.lossless_run))
            progress("comparing speculative with target-only output", (i + 1) / len(prompts))
    except TandemError as error:
        return runs, f"prompt {prompts[len(runs)].id}: {error}"
    return runs, ""


def _guarded(name: str, gate: Callable[[], GateResult]) -> GateResult:
    try:
        return gate()
    except TandemError as error:
        return not_evaluated(name, str(error))
    except Exception as error:  # noqa: BLE001 - a gate that breaks has failed, and the others still run
        return not_evaluated(name, f"{type(error).__name__}: {error}")


def _lossless(client: Client, runs: Sequence[PairRun], why: str, settings: GateSettings) -> GateResult:
    assert settings.lossless is not None
    if why:
        return not_evaluated(lossless.NAME, why, 0.0, lossless.UNIT)
    return lossless.judge_lossless(runs, settings.lossless, lossless.served_margin(client, settings.lossless_run))


def _acceptance(runs: Sequence[PairRun], why: str, settings: GateSettings) -> GateResult:
    assert settings.acceptance is not None
    if why:
        return not_evaluated(acceptance.NAME, why, settings.acceptance.min_rate, acceptance.UNIT)
    return acceptance.judge_acceptance(runs, settings.acceptance)


def _accuracy(client: Client, text: str, parent_logits: ParentLogits, settings: GateSettings, progress: Progress) -> GateResult:
    assert settings.accuracy is not None
    chosen = windows(client.prompt_ids(text, chat=False), settings.accuracy_window_tokens, settings.accuracy_windows)
    return accuracy.evaluate_accuracy(client, chosen, parent_logits(chosen), settings.accuracy, progress)


def _speed(client: Client, prompts: Sequence[Prompt], settings: GateSettings, progress: Progress) -> GateResult:
    assert settings.speed is not None
    chosen = spread_over_kinds(prompts, settings.speed_prompts)
    repeats = speed.measure_speed(client, chosen, settings.speed_run, settings.speed, progress)
    return speed.judge_speed(repeats, settings.speed)
