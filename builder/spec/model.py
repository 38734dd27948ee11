"""What a pair file may say. Every default of the product stands here, once."""

from datetime import date
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")]
Weights = Literal["none", "fp8", "nvfp4", "int8", "int4", "int4_awq", "int8_sq"]
KvCache = Literal["auto", "fp32", "bf16", "fp8", "int8", "nvfp4", "int4"]
Port = Annotated[int, Field(ge=1, le=65535)]
Parallel = Annotated[int, Field(ge=1, le=1024)]
"""Chips that one model is split over; far above every deployment."""
Tokens = Annotated[int, Field(ge=1, le=100_000_000)]
Share = Annotated[float, Field(ge=0, le=1)]


class Section(BaseModel):
    """Base of every section: frozen, unknown keys refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class EngineSpec(Section):
    """Which lane builds and runs the engines."""

    kind: str = Field("openvino", description="Name of an engine plug-in: openvino, tensorrt_llm, tensorrt_llm_pytorch or a third party's.")
    release: str | None = Field(None, description="Release of the lane's tool, for example 1.2.1. NVIDIA lanes only.")
    options: dict[str, bool | int | float | str] = Field(
        default_factory=dict, description="Options of the lane's own; unknown ones are refused."
    )


class HardwareSpec(Section):
    """Where the deployment runs."""

    chip: str = Field("cpu", description="What the engines run on: a row of configs/chips.yaml; cpu for the OpenVINO lane.")
    count: int = Field(1, ge=1, le=1024, description="Number of chips.")


class TargetSpec(Section):
    """The model whose answers are served."""

    checkpoint: str = Field(
        min_length=1, description="Checkpoint folder, relative to the pair file's folder, or hub id (owner/name, owner/name@revision)."
    )
    weights: Weights = Field("int8", description="Weight precision of the engine.")
    kv_cache: KvCache = Field("auto", description="Precision of the paged KV cache; auto is the lane's own choice.")
    tensor_parallel: Parallel = 1
    pipeline_parallel: Parallel = 1


class DraftSpec(Section):
    """Where draft tokens come from."""

    method: Literal["draft_target", "ngram", "none"] = Field(
        "draft_target", description="draft_target: a draft model; ngram: prompt lookup alone; none: no speculation."
    )
    lookup: bool = Field(True, description="Propose a continuation found in the prompt or answer before the draft model is asked.")
    checkpoint: str | None = Field(None, min_length=1, description="Checkpoint folder or hub id of the draft model.")
    weights: Weights = Field("int8", description="Weight precision of the draft engine.")
    kv_cache: KvCache = Field("auto", description="Precision of the draft's KV cache.")
    tensor_parallel: Parallel = 1

    @model_validator(mode="after")
    def _checkpoint_fits_method(self) -> "DraftSpec":
        if self.method == "draft_target" and self.checkpoint is None:
            raise ValueError("draft.method draft_target needs draft.checkpoint; without a draft model take method ngram or none")
        if self.method != "draft_target" and self.checkpoint is not None:
            raise ValueError(f"draft.checkpoint has no meaning with draft.method {self.method}; remove it or take draft_target")
        return self


class SpeculationSpec(Section):
    """How the target verifies."""

    max_draft_tokens: int = Field(5, ge=1, le=32, description="Most draft tokens verified in one pass.")
    acceptance: Literal["tokens", "logits"] = Field("tokens", description="tokens: exact match of token ids; logits: rejection sampling.")
    adaptive: bool = Field(True, description="Choose each round's draft length from measured acceptance and cost; it may be zero.")


class KvCacheSpec(Section):
    """The paged KV cache of both engines."""

    tokens_per_block: int = Field(32, ge=1, le=65_536)
    reuse: bool = Field(True, description="Reuse blocks of a common prefix. Draft-target speculation needs it.")
    host_offload_bytes: int = Field(0, ge=0, le=1 << 50)


class LimitsSpec(Section):
    """What the engines are built for, in sequences and tokens."""

    max_batch_size: int = Field(8, ge=1, le=65_536)
    max_input_tokens: Tokens = 1536
    max_sequence_tokens: int = Field(2048, ge=2, le=100_000_000, description="Prompt and answer together.")
    max_batched_tokens: int = Field(1024, ge=2, le=100_000_000, description="Most tokens fed in one forward pass.")

    @model_validator(mode="after")
    def _input_fits_sequence(self) -> "LimitsSpec":
        if self.max_input_tokens >= self.max_sequence_tokens:
            raise ValueError(
                f"limits.max_input_tokens ({self.max_input_tokens}) must be below limits.max_sequence_tokens ({self.max_sequence_tokens}): "
                "an answer needs at least one token"
            )
        return self


class ServeSpec(Section):
    """The Triton server."""

    topology: Literal["orchestrated", "single"] = Field("orchestrated", description="orchestrated: tensorrt_llm_bls asks draft and target.")
    http_port: Port = 8000
    grpc_port: Port = 8001
    metrics_port: Port = 8002
    openai_port: Port = 9000
    max_concurrent_requests: int = Field(64, ge=1, le=65_536, description="Requests that the orchestrator works on at once; more wait.")

    @model_validator(mode="after")
    def _ports_differ(self) -> "ServeSpec":
        ports = [self.http_port, self.grpc_port, self.metrics_port, self.openai_port]
        if len(set(ports)) != len(ports):
            raise ValueError(f"the four ports of serve must differ, found {ports}")
        return self


class LosslessGate(Section):
    """Speculative output against target-only output, token ids compared."""

    prompts: int = Field(24, ge=1, le=30, description="Of the 30 that come with this release.")
    tokens: Tokens = Field(64, description="New tokens a prompt.")
    near_tie_logits: float = Field(
        0.0, ge=0, description="A difference passes only if the target's logits of both tokens are closer than this; 0 allows none."
    )


class AccuracyGate(Section):
    """Served target against its unquantized parent on the text set."""

    text_tokens: int = Field(2048, ge=64, le=2048, description="Tokens of the text set that are scored.")
    window_tokens: int = Field(256, ge=16, le=2048)
    max_mean_kl: float = Field(0.05, ge=0, description="Nats per token.")
    min_top1_agreement: Share = 0.90

    @model_validator(mode="after")
    def _a_window_fits(self) -> "AccuracyGate":
        if self.window_tokens > self.text_tokens:
            raise ValueError(f"gates.accuracy.window_tokens ({self.window_tokens}) is more than text_tokens ({self.text_tokens})")
        return self


class SpeedGate(Section):
    """Target-only against speculative service, side by side in one run."""

    prompts_per_kind: int = Field(4, ge=1, le=5, description="Of the 5 of each kind that come with this release.")
    tokens: Tokens = Field(128, description="Most new tokens a prompt.")
    repeats: int = Field(3, ge=1, le=1000)
    min_speedup_mix: float = Field(1.0, ge=0)
    min_speedup_kind: float = Field(0.97, ge=0)


class AcceptanceGate(Section):
    """How many draft tokens the target keeps."""

    min_rate: Share = Field(0.15, description="Accepted share of all drafted tokens.")
    min_length: float = Field(1.1, ge=1, description="Tokens gained in one verify pass, the target's own included.")


class GatesSpec(Section):
    """Thresholds of the verdict."""

    lossless: LosslessGate = LosslessGate()
    accuracy: AccuracyGate = AccuracyGate()
    speed: SpeedGate = SpeedGate()
    acceptance: AcceptanceGate = AcceptanceGate()


class WorkloadSpec(Section):
    """A typical request, for the plan's speed and capacity."""

    input_tokens: int = Field(1000, ge=1, le=100_000_000)
    output_tokens: int = Field(500, ge=1, le=100_000_000)


class PriceSpec(Section):
    """What a chip costs; prices are never built in."""

    per_chip_hour: float = Field(gt=0, allow_inf_nan=False)
    currency: str = "USD"
    date: date
    source: str = Field("", description="Where the price was read.")


class GoalSpec(Section):
    """What the deployment must reach; the plan says how many chips that takes."""

    tokens_per_s_per_user: float | None = Field(None, gt=0, allow_inf_nan=False)
    tokens_per_s: float | None = Field(None, gt=0, allow_inf_nan=False, description="Of the whole deployment.")


class PlanningSpec(Section):
    """What the plan's predictions start from; nothing here changes what is built."""

    workload: WorkloadSpec = WorkloadSpec()
    acceptance: float | None = Field(
        None,
        gt=0,
        lt=1,
        description="Chance that one draft token is accepted, measured on your prompts; else 0.7 is assumed, for prompt lookup 0.4.",
    )
    step_times: Literal["auto", "measured", "aiconfigurator", "roofline"] = Field(
        "auto", description="Where step times come from; auto takes the first of these that can answer."
    )
    measured: Path | None = Field(None, description="Your own step times and calibration runs, a JSON file.")
    price: PriceSpec | None = None
    goal: GoalSpec = GoalSpec()
    engineering_cost: float | None = Field(
        None, gt=0, allow_inf_nan=False, description="What setting the draft up costs, in the price's currency."
    )


class PairSpec(Section):
    """A draft and a target, how they are built, served and judged."""

    name: Name = Field(description="Name of the deployment and of its folder under build/.")
    engine: EngineSpec = EngineSpec()
    hardware: HardwareSpec = HardwareSpec()
    target: TargetSpec
    draft: DraftSpec
    speculation: SpeculationSpec = SpeculationSpec()
    kv_cache: KvCacheSpec = KvCacheSpec()
    limits: LimitsSpec = LimitsSpec()
    serve: ServeSpec = ServeSpec()
    gates: GatesSpec = GatesSpec()
    planning: PlanningSpec = PlanningSpec()

    @model_validator(mode="after")
    def _drafts_need_reuse(self) -> "PairSpec":
        if self.draft.method != "none" and not self.kv_cache.reuse:
            raise ValueError(
                "kv_cache.reuse false with draft tokens: every round would recompute the whole prefix; set it true or draft.method none"
            )
        return self

    @model_validator(mode="after")
    def _gates_fit_limits(self) -> "PairSpec":
        limit, input_limit = self.limits.max_sequence_tokens, self.limits.max_input_tokens
        for name, tokens in (("lossless", self.gates.lossless.tokens), ("speed", self.gates.speed.tokens)):
            if tokens >= limit:
                raise ValueError(f"gates.{name}.tokens ({tokens}) must be below limits.max_sequence_tokens ({limit})")
        if self.gates.accuracy.window_tokens >= min(limit, input_limit + 1):
            raise ValueError(
                f"gates.accuracy.window_tokens ({self.gates.accuracy.window_tokens}) must fit limits.max_input_tokens ({input_limit})"
            )
        return self

    @property
    def has_draft_model(self) -> bool:
        return self.draft.method == "draft_target"

    @property
    def uses_lookup(self) -> bool:
        return self.draft.method == "ngram" or (self.draft.method == "draft_target" and self.draft.lookup)
