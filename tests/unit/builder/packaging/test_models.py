"""The six models fit together: names, types, wiring."""

import pytest

from builder.packaging import models
from builder.packaging.plan import PackagePlan
from builder.packaging.values import Model


def by_name(model: Model) -> dict[str, object]:
    return {tensor.name: (tensor.data_type, tensor.dims) for tensor in (*model.inputs, *model.outputs)}


def test_only_the_orchestrator_is_decoupled(golden_plan: PackagePlan):
    assert not models.tensorrt_llm(golden_plan).decoupled
    assert not models.tensorrt_llm_draft(golden_plan).decoupled
    assert models.tensorrt_llm_bls(golden_plan, end_ids=(), max_sequence_tokens=1).decoupled


def test_engine_models_differ_in_engine_and_pool_only(golden_plan: PackagePlan):
    target, draft = models.tensorrt_llm(golden_plan), models.tensorrt_llm_draft(golden_plan)
    assert (target.inputs, target.outputs) == (draft.inputs, draft.outputs)
    changed = {key for key in target.parameters if target.parameters[key] != draft.parameters[key]}
    assert changed == {"gpt_model_path"}


def test_ensemble_is_wired_to_tensors_that_exist(golden_plan: PackagePlan):
    ensemble = models.ensemble(golden_plan)
    parts = {
        model.name: model
        for model in (models.preprocessing(golden_plan), models.tensorrt_llm(golden_plan), models.postprocessing(golden_plan))
    }
    pool = {tensor.name for tensor in ensemble.inputs}
    for step in ensemble.steps:
        part = parts[step.model]
        assert set(step.inputs) <= {tensor.name for tensor in part.inputs}
        assert {tensor.name for tensor in part.inputs if not tensor.optional} <= set(step.inputs)
        assert set(step.outputs) <= {tensor.name for tensor in part.outputs}
        assert set(step.inputs.values()) <= pool
        pool |= set(step.outputs.values())
    assert {tensor.name for tensor in ensemble.outputs} <= pool


@pytest.mark.parametrize("name", ["INPUT_ID", "STOP_WORDS_IDS", "OUT_END_ID"])
def test_preprocessing_outputs_have_the_engine_s_types(golden_plan: PackagePlan, name: str):
    engine = by_name(models.tensorrt_llm(golden_plan))
    _, wanted = models._BETWEEN[name]
    assert by_name(models.preprocessing(golden_plan))[name] == engine[wanted]


def test_without_a_draft_model_the_orchestrator_names_none(golden_plan: PackagePlan):
    from dataclasses import replace

    bls = models.tensorrt_llm_bls(replace(golden_plan, draft_engine_dir=None), end_ids=(), max_sequence_tokens=1)
    assert bls.parameters["tensorrt_llm_draft_model_name"] == ""


@pytest.mark.parametrize("name", ["embedding_bias", "draft_input_ids", "min_tokens", "seed", "stop", "exclude_input_in_output"])
def test_upstream_names_are_there(golden_plan: PackagePlan, name: str):
    assert name in by_name(models.tensorrt_llm(golden_plan))
