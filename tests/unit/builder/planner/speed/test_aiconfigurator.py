"""aiconfigurator as a provider: its words, its cache, and what it cannot answer. Without the package these tests are skipped."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from builder.planner.speed.aiconfigurator import AiconfiguratorStepTime, CannotAnswerError, installed_version, knows_chip
from builder.planner.speed.step_cache import StepCache, cache_folder, cache_key
from tests.unit.builder.planner.speed.models import on_chips

LLAMA, SMALL = "meta-llama/Llama-3.3-70B-Instruct", "meta-llama/Llama-3.2-1B-Instruct"

needs_package = pytest.mark.skipif(installed_version() is None, reason="aiconfigurator-core is not installed (make setup installs it)")


@needs_package
def test_version_is_the_pinned_one() -> None:
    assert installed_version() == "0.12.0"


@needs_package
def test_published_batch_one_is_met_within_its_known_error() -> None:
    """51.14 tokens/s published; kernels added up say 43.1, which is the known 15 % at small FP8 batches."""
    steps = AiconfiguratorStepTime.of(on_chips(LLAMA, "h200_sxm"))
    assert 1 / steps.decode_s(1, 1024) == pytest.approx(43.0, rel=0.02)


@needs_package
def test_cache_is_read_once_for_all_query_tokens() -> None:
    """A call with k+1 times the batch, which the package offers, counts the cache k+1 times: a win becomes a loss at 8k and batch 64."""
    target = AiconfiguratorStepTime.of(on_chips(LLAMA, "h200_sxm"))
    draft = AiconfiguratorStepTime.of(on_chips(SMALL, "h200_sxm", role="draft"))
    plain_s, verify_s, naive_s = target.decode_s(64, 8192), target.decode_s(64, 8192, 5), target.decode_s(320, 8192)
    drafts_s = 4 * draft.decode_s(64, 8192) + 0.002
    length = (1 - 0.7**5) / 0.3
    assert verify_s < 1.5 * plain_s
    assert naive_s > 2.5 * plain_s
    assert plain_s * length / (verify_s + drafts_s) > 1.4
    assert plain_s * length / (naive_s + drafts_s) < 1.0


@needs_package
def test_nvfp4_cache_takes_nine_sixteenths_of_attention() -> None:
    steps = {kv: AiconfiguratorStepTime.of(on_chips(LLAMA, "b200_sxm", weights="nvfp4", kv_cache=kv)) for kv in ("fp8", "nvfp4")}
    gained_s = steps["fp8"].decode_s(64, 8192) - steps["nvfp4"].decode_s(64, 8192)
    _, attention_s = steps["fp8"]._parts_s(64, 8192)
    assert attention_s > 0.01
    assert gained_s == pytest.approx(7 / 16 * attention_s)


@needs_package
@pytest.mark.parametrize(
    ("name", "weights", "ways"),
    [("deepseek-ai/DeepSeek-V3", "fp8", 8), ("mistralai/Mixtral-8x7B-Instruct-v0.1", "fp8", 2), ("Qwen/Qwen2.5-72B-Instruct", "fp8", 1)],
)
def test_families_can_be_asked(name: str, weights: str, ways: int) -> None:
    steps = AiconfiguratorStepTime.of(on_chips(name, "h200_sxm", weights=weights, tensor_parallel=ways))
    assert 0 < steps.decode_s(8, 1024) < steps.decode_s(8, 1024, 5) < steps.prefill_s(8, 1024)


@needs_package
def test_answers_are_kept_and_the_package_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    model = on_chips(SMALL, "h200_sxm")
    first = AiconfiguratorStepTime.of(model)
    answers = [first.decode_s(4, 1024, 3), first.prefill_s(1, 512)]
    first.save()
    again = AiconfiguratorStepTime.of(model)
    monkeypatch.setattr(AiconfiguratorStepTime, "_engine", property(lambda _self: pytest.fail("the package was asked")))
    assert [again.decode_s(4, 1024, 3), again.prefill_s(1, 512)] == answers


@needs_package
def test_other_options_are_other_entries() -> None:
    model = on_chips(SMALL, "h200_sxm")
    AiconfiguratorStepTime.of(model).cache.file.parent.mkdir(parents=True, exist_ok=True)
    files = {AiconfiguratorStepTime.of(replace(model, **change)).cache.file for change in ({}, {"weights": "none"}, {"tensor_parallel": 2})}
    assert len(files) == 3


@needs_package
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"chip": "l4"}, "aiconfigurator-core 0.12.0 has no figures for l4"),
        ({"kv_cache": "fp32"}, "aiconfigurator-core has no figures for fp8 weights with a fp32 cache"),
    ],
)
def test_unknown_chip_or_cache_cannot_be_answered(change: dict[str, str], reason: str) -> None:
    with pytest.raises(CannotAnswerError, match=f"^{reason}$"):
        AiconfiguratorStepTime.of(on_chips(LLAMA, change.get("chip", "h200_sxm"), kv_cache=change.get("kv_cache", "fp8")))


@needs_package
@pytest.mark.parametrize("weights", ["int4", "int8"])
def test_precision_without_measured_kernels_cannot_be_answered(weights: str) -> None:
    with pytest.raises(CannotAnswerError, match=rf"cannot predict llama models with {weights} weights and a fp8 cache on h200_sxm$"):
        AiconfiguratorStepTime.of(on_chips(LLAMA, "h200_sxm", weights=weights)).decode_s(1, 1024)


@needs_package
def test_unknown_architecture_is_never_looked_up_on_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.socket.connect", lambda *_args: pytest.fail("the network was asked"))
    model = on_chips(SMALL, "h200_sxm")
    odd = replace(
        model, facts=replace(model.facts, config={**model.facts.config, "architectures": ["OddForCausalLM"], "model_type": "odd"})
    )
    with pytest.raises(CannotAnswerError, match=r"cannot predict odd models with fp8 weights"):
        AiconfiguratorStepTime.of(odd).decode_s(1, 1024)


def test_missing_package_cannot_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("builder.planner.speed.aiconfigurator.installed_version", lambda: None)
    with pytest.raises(CannotAnswerError, match=r"^aiconfigurator-core is not installed$"):
        AiconfiguratorStepTime.of(on_chips(SMALL, "h200_sxm"))


@needs_package
def test_package_that_cannot_be_imported_cannot_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Installed without its dependencies, one of which is missing."""
    monkeypatch.setitem(sys.modules, "aiconfigurator_core.sdk.engine", None)
    with pytest.raises(CannotAnswerError, match=r"cannot predict llama models with fp8 weights and a fp8 cache on h200_sxm$"):
        AiconfiguratorStepTime.of(on_chips(SMALL, "h200_sxm")).decode_s(1, 1024)


def test_package_that_is_not_there_knows_no_chip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("builder.planner.speed.aiconfigurator.PACKAGE", "a_package_that_is_not_there")
    assert not knows_chip("h200_sxm")


@pytest.mark.parametrize("content", ["{", "[]", json.dumps({"decode 1 1 1": "fast"})])
def test_broken_cache_counts_as_empty(content: str) -> None:
    cache_folder().mkdir(parents=True)
    (cache_folder() / "key.json").write_text(content)
    assert StepCache.open("key").values == {}


def test_cache_that_cannot_be_written_is_left_out(cache_home: Path) -> None:
    cache = StepCache.open("key")
    cache.keep("decode 1 1 1", 0.5)
    cache_home.write_text("a file where the folder should be")
    cache.save()
    assert cache.values == {"decode 1 1 1": 0.5}
    assert cache.changed


def test_cache_key_depends_on_everything() -> None:
    assert cache_key({"version": "1", "options": {"tp": 1}}) != cache_key({"version": "1", "options": {"tp": 2}})
