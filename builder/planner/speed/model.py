"""Values of the speed plan, and the interface of a source of step times."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from builder.api import Chip, ModelFacts
from builder.planner.speed.anchors import Anchor
from builder.planner.speed.constants import Overheads
from builder.spec.model import WorkloadSpec


@dataclass(frozen=True)
class ModelOnChips:
    """One model as it runs: precisions in the pair file's words (never auto), bytes on each of its devices.

    `lookup_bytes` is the part of the weights of which a pass reads single rows; None where the lane does not say.
    """

    role: str
    facts: ModelFacts
    weights: str
    kv_cache: str
    weights_bytes: int
    kv_bytes_per_token: int
    chip: Chip
    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    lookup_bytes: int | None = None


class StepTime(Protocol):
    """Time of one forward pass, in seconds. `error_band` is the share by which it may be off."""

    @property
    def provider(self) -> str: ...

    @property
    def error_band(self) -> float: ...

    def decode_s(self, batch: int, context_tokens: int, query_tokens: int = 1) -> float:
        """A pass over `batch` sequences of `context_tokens`, with `query_tokens` new ones each; the cache is read once per sequence."""

    def prefill_s(self, batch: int, tokens: int) -> float:
        """A pass over `batch` prompts of `tokens`."""


@dataclass(frozen=True)
class Steps:
    """Step times of the pair: `draft` is None where no draft model runs."""

    target: StepTime
    draft: StepTime | None


@dataclass(frozen=True)
class BatchRow:
    """Prediction at one batch. Rates are output tokens a second of the whole deployment, the prompts' time counted in.

    `draft_tokens` is the draft length that these figures are for, the best one where the deployment may choose; `break_even_acceptance`
    is the acceptance above which it wins, None where no acceptance would do; `anchor` names the nearest published figure; `adaptive` says
    whether the deployment stops drafting where it loses.
    """

    batch: int
    target_step_s: float
    verify_s: float
    draft_step_s: float
    cycle_s: float
    expected_length: float
    plain_tokens_per_s: float
    speculative_tokens_per_s: float
    draft_tokens: int
    break_even_acceptance: float | None
    anchor: str = ""
    adaptive: bool = True

    @property
    def speedup(self) -> float:
        return self.speculative_tokens_per_s / self.plain_tokens_per_s

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "speedup": self.speedup}


@dataclass(frozen=True)
class SpeedPlan:
    """What the pair should reach. Everything in it is a prediction.

    `saturation` is the largest batch that the limits and the pool allow. `stop_batch` is the largest batch up to which drafting wins:
    0 where it never does, None where it wins at every batch tried. `error_band` is the share by which rates may be off,
    `speedup_error_band` the share for their ratio. `longer_draft` is the draft length, beyond the limit, that is best at batch 1, with its
    speed-up; `shorter_draft` the same of one below the limit. `disagreement` is the larger over the smaller of two providers' step times,
    None where only one could answer; `other_step_s` is then the roofline's step of the target at batch 1. `batch_limit` is the field that
    limits the largest batch, "" where it is the pool. `adaptive` says whether the draft length is chosen anew each round, `lane_adapts`
    whether the lane could. `published_acceptance` says what was measured for this pair elsewhere; `doubts` are of the user's runs.
    `row_at` predicts any other batch, None where it has no figures.
    """

    provider: str
    error_band: float
    speedup_error_band: float
    acceptance: float
    acceptance_source: str
    overheads: Overheads
    rows: tuple[BatchRow, ...]
    saturation: BatchRow
    stop_batch: int | None
    anchors: tuple[Anchor, ...]
    pool_sequences: int
    longer_draft: tuple[int, float] | None = None
    shorter_draft: tuple[int, float] | None = None
    disagreement: float | None = None
    other_step_s: float | None = None
    workload: WorkloadSpec = field(default_factory=WorkloadSpec)
    batch_limit: str = ""
    adaptive: bool = True
    lane_adapts: bool = True
    published_acceptance: str = ""
    doubts: tuple[str, ...] = ()
    unverified: tuple[str, ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict)
    row_at: Callable[[int], BatchRow | None] | None = field(default=None, repr=False, compare=False)

    def as_dict(self) -> dict[str, Any]:
        marks = {"provider": self.provider, "error_band": self.error_band, "speedup_error_band": self.speedup_error_band}
        return {
            "kind": "prediction",
            **marks,
            "acceptance": {"value": self.acceptance, "source": self.acceptance_source},
            "overheads": asdict(self.overheads),
            "rows": [{**row.as_dict(), **marks} for row in self.rows],
            "saturation": {**self.saturation.as_dict(), **marks},
            "stop_batch": self.stop_batch,
            "pool_sequences": self.pool_sequences,
            "longer_draft": self.longer_draft,
            "shorter_draft": self.shorter_draft,
            "disagreement": self.disagreement,
            "other_step_s": self.other_step_s,
            "workload": self.workload.model_dump(),
            "batch_limit": self.batch_limit,
            "adaptive": self.adaptive,
            "published_acceptance": self.published_acceptance,
            "doubts": list(self.doubts),
            "unverified": list(self.unverified),
            "notes": dict(self.notes),
            "anchors": [anchor.as_dict() for anchor in self.anchors],
        }
