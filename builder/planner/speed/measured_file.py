"""The user's own measurements: what the file `planning.measured` may say."""

import json
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from builder.errors import Finding, FindingsError, RefusedError

Count = Annotated[int, Field(ge=1, le=10_000_000)]
Drafts = Annotated[int, Field(ge=1, le=1000)]
Seconds = Annotated[float, Field(gt=0, le=3600, allow_inf_nan=False)]
Rate = Annotated[float, Field(gt=0, allow_inf_nan=False)]
FIELD = "planning.measured"
MEASURING_ERROR = 1.05
"""Two runs of the same thing may differ by so much."""


class Section(BaseModel):
    """Base of every section: frozen, unknown keys refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class DecodeStep(Section):
    """Time of one pass over `batch` sequences of `context_tokens`, with `query_tokens` new tokens each."""

    batch: Count
    context_tokens: Count
    query_tokens: Count = 1
    seconds: Seconds


class PromptPass(Section):
    """Time of one pass over `batch` prompts of `tokens`."""

    batch: Count
    tokens: Count
    seconds: Seconds


class StepTable(Section):
    """Step times of one model."""

    decode: tuple[DecodeStep, ...] = Field(min_length=1)
    prefill: tuple[PromptPass, ...] = ()


class CalibrationRun(Section):
    """One run with drafts. Rates are output tokens a second of all requests together, from first prompt to last token."""

    draft_tokens: Drafts
    tokens_per_s: Rate
    acceptance_length: float = Field(ge=1, allow_inf_nan=False, description="Tokens of a cycle, the target's own included.")
    plain_tokens_per_s: Rate | None = Field(None, description="The same requests without drafts.")
    batch: Count = 1
    input_tokens: Count | None = Field(None, description="Of a request; planning.workload's when left out.")
    output_tokens: Count | None = None

    @model_validator(mode="after")
    def _length_is_possible(self) -> "CalibrationRun":
        if self.acceptance_length > self.draft_tokens + 1:
            raise ValueError(
                f"acceptance_length {self.acceptance_length} is more than {self.draft_tokens} drafts and the target's own token can yield"
            )
        return self

    @model_validator(mode="after")
    def _rate_is_possible(self) -> "CalibrationRun":
        if self.plain_tokens_per_s and self.tokens_per_s > self.plain_tokens_per_s * self.acceptance_length * MEASURING_ERROR:
            raise ValueError(
                f"{self.tokens_per_s:g} tokens/s are more than {self.acceptance_length:g} times the {self.plain_tokens_per_s:g} tokens/s "
                "without drafts, though no cycle yields more tokens than that or is shorter than a step without drafts"
            )
        return self


class MeasuredFile(Section):
    """Step times and calibration runs. Every part may be left out."""

    format: Literal[1]
    measured_on: str = ""
    runtime: str = ""
    target: StepTable | None = None
    draft: StepTable | None = None
    calibration: tuple[CalibrationRun, ...] = ()

    @model_validator(mode="after")
    def _runs_differ(self) -> "MeasuredFile":
        lengths = {run.draft_tokens for run in self.calibration}
        if self.calibration and len(lengths) < 2:
            raise ValueError(
                "calibration needs two runs that differ in draft_tokens: the overheads of a step and of a cycle are two unknowns"
            )
        return self


def read_measured(file: Path) -> MeasuredFile:
    """Raises RefusedError SPEED-MEASURED-MISSING, or SPEED-MEASURED-INVALID with everything that is wrong."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        fix = "write the measurements to that file, or remove planning.measured"
        message = f"The measurements {file.name} cannot be read."
        raise RefusedError("SPEED-MEASURED-MISSING", message, field=FIELD, found=str(error), needed="a JSON file", fix=fix) from error
    try:
        return MeasuredFile.model_validate(json.loads(text))
    except ValidationError as error:
        raise FindingsError(tuple(_finding(file, part["loc"], part["msg"], part.get("input")) for part in error.errors())) from error
    except (ValueError, RecursionError) as error:
        reason = _not_json(error)
        message = f"The measurements {file.name} are not JSON: {reason}."
        fix = "write one JSON object as docs/planning.md shows"
        raise RefusedError("SPEED-MEASURED-INVALID", message, field=FIELD, found=reason, needed="JSON", fix=fix) from error


def refused_run(run: CalibrationRun, reason: str) -> RefusedError:
    """A calibration run that cannot have been."""
    message = f"The calibration run with {run.draft_tokens} draft tokens at {run.tokens_per_s:g} tokens/s cannot have been: {reason}."
    fix = "measure output tokens a second from the first prompt to the last token, on the chips that the pair file names"
    return RefusedError(
        "SPEED-MEASURED-INVALID",
        message,
        field=FIELD,
        found=f"{run.tokens_per_s:g} tokens/s",
        needed="a cycle that holds its pass",
        fix=fix,
    )


def _not_json(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at line {error.lineno}"
    return "it is nested too deeply" if isinstance(error, RecursionError) else "it has a number of too many digits"


def _finding(file: Path, where: tuple[int | str, ...], message: str, found: object) -> Finding:
    place = ".".join(str(part) for part in where) or "the file"
    said = message.removeprefix("Value error, ")
    fix = "write it as docs/planning.md shows"
    return Finding(
        "SPEED-MEASURED-INVALID", "error", f"The measurements {file.name} are wrong at {place}: {said}.", FIELD, repr(found)[:80], said, fix
    )
