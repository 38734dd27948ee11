"""What the pair file asks of a lane: one request for each engine, and the deployment as a whole."""

from pathlib import Path

from builder.api import Chip, Deployment, EngineRequest, ModelFacts, Role
from builder.spec import PairSpec


def engine_request(spec: PairSpec, role: Role, checkpoint: Path) -> EngineRequest:
    """The engine of one role."""
    model = spec.target if role == "target" else spec.draft
    drafts = role == "target" and spec.draft.method != "none"
    return EngineRequest(
        role=role,
        checkpoint=checkpoint,
        weights=model.weights,
        kv_cache=model.kv_cache,
        tokens_per_block=spec.kv_cache.tokens_per_block,
        max_batch_size=spec.limits.max_batch_size,
        # the orchestrator sends the grown sequence as a prompt in every round
        max_input_tokens=spec.limits.max_sequence_tokens - 1,
        max_sequence_tokens=spec.limits.max_sequence_tokens,
        max_batched_tokens=spec.limits.max_batched_tokens,
        max_draft_tokens=spec.speculation.max_draft_tokens if drafts else 0,
        options=dict(spec.engine.options),
        release=spec.engine.release,
        chip=spec.hardware.chip,
        tensor_parallel=model.tensor_parallel,
        pipeline_parallel=spec.target.pipeline_parallel if role == "target" else 1,
    )


def deployment(spec: PairSpec, chip: Chip, models: tuple[tuple[EngineRequest, ModelFacts], ...]) -> Deployment:
    """The pair on its chips; `models` is the target, then the draft when there is one."""
    (target, target_facts), *drafts = models
    draft, draft_facts = drafts[0] if drafts else (None, None)
    return Deployment(
        chip=chip,
        chip_count=spec.hardware.count,
        target=target,
        target_facts=target_facts,
        draft=draft,
        draft_facts=draft_facts,
        method=spec.draft.method,
        acceptance=spec.speculation.acceptance,
        max_draft_tokens=spec.speculation.max_draft_tokens if spec.draft.method != "none" else 0,
        reuse=spec.kv_cache.reuse,
        host_offload_bytes=spec.kv_cache.host_offload_bytes,
        topology=spec.serve.topology,
        max_prompt_tokens=spec.limits.max_input_tokens,
    )
