"""Sweeps and costs through the real planner: rules, memory and speed of public pairs, from their configurations alone."""

import dataclasses
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from builder import registry
from builder.checkpoint import Checkpoint, read_checkpoint
from builder.errors import Finding
from builder.hardware.chips import find_chip
from builder.planner.cost import plan_cost
from builder.planner.memory import MemoryPlan, check_memory, plan_memory
from builder.planner.requests import deployment, engine_request
from builder.planner.speed import ModelOnChips, SpeedPlan, plan_speed
from builder.planner.sweep import Sweep, run_sweep, smallest_hardware, with_settings, write_plot
from builder.planner.sweep.model import RowFigures
from builder.spec import Pair, load_pair
from tests.public_models import public_model

PAIRS = Path(__file__).parents[5] / "configs" / "pairs"
PRICE = {"per_chip_hour": 3.6, "date": date(2026, 11, 1)}


@dataclasses.dataclass(frozen=True)
class Judged:
    """What a sweep looks at of a plan."""

    findings: tuple[Finding, ...]
    memory: MemoryPlan | None
    speed: SpeedPlan | None

    @property
    def ok(self) -> bool:
        return not any(f.severity == "error" for f in self.findings)


Planned = tuple[Pair, Callable[[Pair], Judged]]


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Planned]:
    """A pair of configs/pairs with settings laid over it, and the planner over its two checkpoints, each read once."""
    models = tmp_path_factory.mktemp("models")
    known: dict[str, Checkpoint] = {}

    def checkpoint(name: str, role: str) -> Checkpoint:
        if name not in known:
            known[name] = read_checkpoint(public_model(models, name), f"{role}.checkpoint")
        return known[name]

    def plan(name: str, **settings: Any) -> Planned:
        pair = load_pair(PAIRS / f"{name}.yaml")
        data = {"planning.step_times": "roofline", "planning.workload": {"input_tokens": 1000, "output_tokens": 1000}, **settings}
        assert pair.spec.draft.checkpoint is not None
        checkpoints = (checkpoint(pair.spec.target.checkpoint, "target"), checkpoint(pair.spec.draft.checkpoint, "draft"))
        return with_settings(pair, data), lambda changed: judge(changed, checkpoints)

    return plan


def judge(pair: Pair, checkpoints: tuple[Checkpoint, Checkpoint]) -> Judged:
    spec, chip = pair.spec, find_chip(pair.spec.hardware.chip)
    engine = registry.engine(spec.engine.kind)
    requests = (engine_request(spec, "target", checkpoints[0].path), engine_request(spec, "draft", checkpoints[1].path))
    models = tuple(zip(requests, (c.facts for c in checkpoints), strict=True))
    findings = [*(f for request in requests for f in engine.check(request)), *engine.check_deployment(deployment(spec, chip, models))]
    if any(f.severity == "error" for f in findings):
        return Judged(tuple(findings), None, None)
    memory = plan_memory(spec, chip, engine, models)
    findings += check_memory(spec, memory)
    placed = [
        ModelOnChips(
            r.role, facts, r.weights, s.kv_cache, s.weights_bytes, s.kv_bytes_per_token, chip, r.tensor_parallel, r.pipeline_parallel
        )
        for (r, facts), s in zip(models, memory.engines, strict=True)
    ]
    return Judged(tuple(findings), memory, plan_speed(spec, placed[0], placed[1], pool_tokens=memory.pool_tokens))


def by(sweep: Sweep, field: str) -> dict[Any, RowFigures]:
    return {row.settings[field]: figures for row, figures in sweep.figures}


def test_on_a_b200_fewer_bits_hold_more_and_serve_more(planned: Callable[..., Planned]) -> None:
    pair, evaluate = planned("llama-3.3-70b-1b-nvfp4-b200")
    rows = by(run_sweep(pair, ["kv=bf16,fp8,nvfp4"], evaluate), "target.kv_cache")
    assert rows["nvfp4"].capacity_tokens == pytest.approx(rows["fp8"].capacity_tokens * 16 / 9, rel=0.01)
    assert rows["fp8"].capacity_tokens == pytest.approx(rows["bf16"].capacity_tokens * 2, rel=0.01)
    assert rows["nvfp4"].tokens_per_s > rows["fp8"].tokens_per_s > rows["bf16"].tokens_per_s


def test_defaults_on_an_h200_refuse_what_it_cannot_do_and_take_the_fp8_cache(planned: Callable[..., Planned], tmp_path: Path) -> None:
    pair, evaluate = planned("llama-3.1-70b-1b-fp8-h200")
    result = run_sweep(pair, [], evaluate)
    refused = {row.settings["target.kv_cache"]: row.codes for row in result.rows if not row.ok}
    assert refused == {"int8": ("RULE-KV-INT8-REUSE",)}
    taken = result.rows[(result.recommended or 0) - 1]
    assert (taken.settings["target.kv_cache"], taken.settings["limits.max_batch_size"]) == ("fp8", 32)
    assert result.recommended in result.front
    assert len(result.front) < len(result.figures) / 2
    write_plot(result, tmp_path / "sweep.png")


def test_bigger_batches_serve_more_in_all_and_each_user_less(planned: Callable[..., Planned]) -> None:
    pair, evaluate = planned("llama-3.1-70b-1b-fp8-h200")
    rows = list(by(run_sweep(pair, ["batch=1,4,16,64"], evaluate), "limits.max_batch_size").values())
    assert [r.batch for r in rows] == [1, 4, 16, 64]
    assert [r.tokens_per_s for r in rows] == sorted(r.tokens_per_s for r in rows)
    assert [-r.tokens_per_s_per_user for r in rows] == sorted(-r.tokens_per_s_per_user for r in rows)
    assert [-r.speedup for r in rows] == sorted(-r.speedup for r in rows)


def test_bigger_chips_hold_more_and_a_split_over_more_chips_serves_a_user_faster(planned: Callable[..., Planned]) -> None:
    pair, evaluate = planned("llama-3.1-70b-1b-fp8-h200")
    result = run_sweep(pair, ["chip=h100_sxm,h200_sxm,b200_sxm", "count=1,2"], evaluate)
    rows = {(row.settings["hardware.chip"], row.settings["hardware.count"]): row for row in result.rows}
    figures = {key: row.figures for key, row in rows.items() if row.figures}
    assert figures["h100_sxm", 1].capacity_tokens < figures["h200_sxm", 1].capacity_tokens / 10, "70 GB of weights leave little of 80"
    assert figures["h100_sxm", 1].batch == figures["h100_sxm", 1].sequences < 16, "speed is that of the batch that fits"
    assert figures["b200_sxm", 1].capacity_tokens > figures["h200_sxm", 1].capacity_tokens > figures["h100_sxm", 2].capacity_tokens / 2
    for chip in ("h200_sxm", "b200_sxm"):
        assert figures[chip, 2].tokens_per_s_per_user > figures[chip, 1].tokens_per_s_per_user
        assert figures[chip, 2].capacity_tokens > 2 * figures[chip, 1].capacity_tokens


# $ per 1M at the price range of the chip, for the published 2909 tokens/s (TensorRT-LLM 1.0, 1000 in, 1000 out); the roofline knows it
# within 30 %
@pytest.mark.parametrize(("price", "published"), [(2.50, 0.24), (7.00, 0.67)])
def test_saturated_cost_of_the_70b_on_an_h200(planned: Callable[..., Planned], price: float, published: float) -> None:
    settings = {"planning.price": {**PRICE, "per_chip_hour": price}, "limits.max_batch_size": 256, "serve.max_concurrent_requests": 256}
    pair, evaluate = planned("llama-3.1-70b-1b-fp8-h200", **settings)
    speed = evaluate(pair).speed
    assert speed is not None
    alone, saturated = plan_cost(pair.spec, speed, 1).points
    assert saturated.plain_per_million == pytest.approx(published, rel=0.3)
    assert alone.plain_per_million == pytest.approx(price / 3600 / 51.14 * 1e6, rel=0.1), "51.14 tokens/s published at batch 1"
    assert saturated.batch > 100


def test_smallest_hardware_for_a_rate_per_user(planned: Callable[..., Planned]) -> None:
    settings = {"planning.goal.tokens_per_s_per_user": 60, "planning.price": PRICE}
    pair, evaluate = planned("llama-3.1-70b-1b-fp8-h200", **settings)

    advice = smallest_hardware(pair, evaluate)
    assert advice is not None
    choices = {choice.chip: choice for choice in advice.choices}
    assert choices["h200_sxm"].count == 1
    assert choices["h100_sxm"].tokens_per_s < choices["h200_sxm"].tokens_per_s, "fewer sequences fit"
    assert choices["l40s"].count > 1
    assert "a100_sxm" not in choices, "no FP8 before sm_89"
    assert "t4" not in choices
    assert not choices["h100_sxm"].has_room, "70 GB of weights leave room for one sequence of full length"
    assert [(not c.has_room, c.memory_bytes) for c in advice.choices] == sorted((not c.has_room, c.memory_bytes) for c in advice.choices)
    assert all(c.tokens_per_s_per_user >= 60 for c in advice.choices)
    assert advice.sentence.startswith(
        f"The least that meets 60 tokens/s per user is {advice.choices[0].count} x {advice.choices[0].chip} ("
    )


def test_without_a_goal_no_hardware_is_looked_for(planned: Callable[..., Planned]) -> None:
    pair, _ = planned("llama-3.1-70b-1b-fp8-h200")

    def evaluate(_pair: Pair) -> Judged:
        raise AssertionError("planned for nothing")

    assert smallest_hardware(pair, evaluate) is None
