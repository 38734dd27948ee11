"""Where step times come from: the user's table, aiconfigurator, or the roofline."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from builder.errors import RefusedError
from builder.planner.speed.aiconfigurator import INSTALL, AiconfiguratorStepTime, CannotAnswerError
from builder.planner.speed.constants import constants
from builder.planner.speed.measured import LowBatchStepTime, MeasuredStepTime
from builder.planner.speed.measured_file import FIELD, MeasuredFile, StepTable
from builder.planner.speed.model import ModelOnChips, Steps, StepTime
from builder.planner.speed.roofline import RooflineStepTime
from builder.spec import PairSpec

PROBE_TOKENS = 1024


@dataclass(frozen=True)
class Chosen:
    """Step times of the pair; `notes` says by role why a provider was passed over, `save` keeps new figures for the next plan."""

    steps: Steps
    notes: Mapping[str, str]
    save: Callable[[], None]


@contextmanager
def chosen_steps(
    spec: PairSpec, target: ModelOnChips, draft: ModelOnChips | None, measured: MeasuredFile | None, *, wanted: str | None = None
) -> Iterator[Chosen]:
    """Step times by `planning.step_times`, auto being the first provider that can answer; new figures are kept at the end.

    Raises RefusedError SPEED-MEASURED-MISSING or SPEED-AICONFIGURATOR when the one that was asked for cannot answer.
    """
    wanted = wanted or spec.planning.step_times
    notes: dict[str, str] = {}
    kept: list[AiconfiguratorStepTime] = []
    tables = {"target": measured.target if measured else None, "draft": measured.draft if measured else None}
    found = {model.role: _choose(model, tables[model.role], wanted, notes, kept) for model in (target, draft) if model}
    corrected = {
        role: _corrected(spec, steps, model) for (role, steps), model in zip(found.items(), (target, draft), strict=False) if model
    }

    def save() -> None:
        for steps in kept:
            steps.save()

    try:
        yield Chosen(Steps(corrected["target"], corrected.get("draft")), notes, save)
    finally:
        save()


def _choose(
    model: ModelOnChips, table: StepTable | None, wanted: str, notes: dict[str, str], kept: list[AiconfiguratorStepTime]
) -> StepTime:
    if table and wanted in ("auto", "measured"):
        return MeasuredStepTime(table, RooflineStepTime(model))
    if wanted == "measured" and model.role == "target":
        message = "The setting planning.step_times is measured, but there are no step times of the target."
        fix = "name a file with target.decode in planning.measured, or set planning.step_times: auto"
        raise RefusedError("SPEED-MEASURED-MISSING", message, field=FIELD, found="none", needed="target.decode", fix=fix)
    if wanted in ("auto", "aiconfigurator", "measured"):
        try:
            steps = AiconfiguratorStepTime.of(model)
            steps.decode_s(1, PROBE_TOKENS)
            steps.prefill_s(1, PROBE_TOKENS)
        except CannotAnswerError as error:
            if wanted == "aiconfigurator":
                raise _refusal(str(error)) from error
            # nobody measured a processor with it, so that it cannot answer is no news
            notes |= {model.role: str(error)} if model.chip.sm else {}
        else:
            kept.append(steps)
            return steps
    return RooflineStepTime(model)


def _refusal(reason: str) -> RefusedError:
    fix = INSTALL if "not installed" in reason else "set planning.step_times: roofline or auto"
    message = f"The setting planning.step_times is aiconfigurator, but {reason}."
    return RefusedError("SPEED-AICONFIGURATOR", message, field="planning.step_times", found=reason, needed="figures for this pair", fix=fix)


def _corrected(spec: PairSpec, steps: StepTime, model: ModelOnChips) -> StepTime:
    """Added-up kernels are slower than a built engine at small batches."""
    rule = constants()["low_batch"]
    applies = spec.engine.kind in rule["engine_kinds"] and model.weights in rule["weights"] and steps.provider == "aiconfigurator"
    return LowBatchStepTime(steps, rule["factor"], rule["full_to_batch"], rule["none_from_batch"]) if applies else steps
