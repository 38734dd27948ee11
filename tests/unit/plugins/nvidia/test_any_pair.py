"""Whatever a pair file says, both lanes answer with findings, not with an exception, and each finding is whole."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder.api import Deployment, Engine, StoredFormat
from builder.error_codes import error_codes
from builder.hardware.chips import chips
from builder.spec import PairSpec
from plugins.engines.tensorrt_llm import ENGINE as TENSORRT_LLM
from plugins.engines.tensorrt_llm_pytorch import ENGINE as PYTORCH
from plugins.nvidia.releases import releases
from tests.unit.plugins.nvidia.pairs import deployment

WEIGHTS = ("none", "fp8", "nvfp4", "int8", "int4", "int4_awq", "int8_sq")
KV_CACHE = ("auto", "fp32", "bf16", "fp8", "int8", "nvfp4", "int4")
KINDS = ("huggingface", "modelopt", "tensorrt_llm", "tensorrt_llm_engine", "gguf")
ALGORITHMS = ("", "FP8", "NVFP4", "W4A16_AWQ", "MIXED_PRECISION", "BITSANDBYTES_4BIT")
OPTIONS = ({}, {"gather_context_logits": True}, {"use_paged_context_fmha": False}, {"max_beam_width": 2}, {"no_such_option": 1})

stored = st.builds(
    StoredFormat,
    kind=st.sampled_from(KINDS),
    weights=st.sampled_from(ALGORITHMS),
    kv_cache=st.sampled_from(("", "FP8", "INT8", "NVFP4")),
    tensor_parallel=st.sampled_from((1, 2)),
    release=st.sampled_from(("", "1.0.0", "1.2.1")),
)
engine_words = st.fixed_dictionaries(
    {
        "weights": st.sampled_from(WEIGHTS),
        "kv_cache": st.sampled_from(KV_CACHE),
        "tensor_parallel": st.integers(1, 9),
        "options": st.sampled_from(OPTIONS),
        "release": st.sampled_from((None, "", "newest", "0.17.0", "1.2.9", "1.9", *releases())),
        "tokens_per_block": st.integers(1, 300),
        "max_batch_size": st.integers(1, 200),
        "max_batched_tokens": st.integers(2, 40_000),
    }
)


@st.composite
def deployments(draw: st.DrawFn) -> Deployment:
    method = draw(st.sampled_from(("draft_target", "ngram", "none", "eagle")))
    target, draft = draw(engine_words), draw(engine_words)
    made = deployment(
        draw(st.sampled_from(list(chips()))),
        target={**target, "pipeline_parallel": draw(st.integers(1, 4))},
        draft={**draft, "release": target["release"], "options": target["options"]} if method == "draft_target" else None,
        target_stored=draw(stored),
        draft_stored=draw(stored),
        target_shape={"heads": draw(st.sampled_from((0, 28, 64))), "kv_heads": draw(st.sampled_from((1, 4, 8))), "head_dim": 100},
        target_config=draw(
            st.sampled_from(({}, {"architectures": []}, {"architecture": "LlamaForCausalLM"}, {"architectures": ["Unknown"]}))
        ),
    )
    return replace(
        made,
        chip_count=draw(st.integers(1, 9)),
        method=method,
        acceptance=draw(st.sampled_from(("tokens", "logits"))),
        reuse=draw(st.booleans()),
        host_offload_bytes=draw(st.sampled_from((0, 1))),
        topology=draw(st.sampled_from(("orchestrated", "single"))),
    )


@pytest.mark.parametrize("lane", [TENSORRT_LLM, PYTORCH], ids=lambda lane: lane.kind)
@settings(deadline=None)
@given(made=deployments())
def test_every_finding_is_whole(lane: Engine, made: Deployment) -> None:
    found = [*lane.check(made.target), *lane.check_deployment(made)]
    assert len(set(found)) == len(found)
    for finding in found:
        assert finding.code in error_codes()
        assert finding.field.split(".")[0] in PairSpec.model_fields
        assert finding.message.endswith((".", "?"))
        assert "\n" not in finding.message
        assert finding.fix or finding.severity == "info"
