"""Opening a pair file: hub ids are planned from headers and fetched whole for a run; many variants read their checkpoints once."""

from pathlib import Path
from typing import Any

import pytest

from builder.errors import FindingsError
from builder.pipeline import session as session_module
from builder.pipeline.session import Places, Session, plan_many
from builder.planner.sweep import with_settings
from builder.spec import load_pair
from tests.unit.builder.conftest import COMMIT, Hub

pytest.importorskip("huggingface_hub")
PAIR = "name: hubbed\ntarget: {checkpoint: acme/tiny, weights: none}\ndraft: {method: ngram}\n"


@pytest.fixture
def pair_file(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    file = tmp_path / "pair.yaml"
    file.write_text(PAIR)
    return file


def weights_asked(hub: Hub) -> list[str]:
    return [asked for path, asked in hub.requests if path.endswith("model.safetensors")]


def test_a_plan_asks_for_headers_and_a_run_for_weights(hub: Hub, pair_file: Path, tmp_path: Path) -> None:
    places = Places(tmp_path / "build")
    planned = Session.open(pair_file, places, hash_weights=False).plan
    assert planned.ok, planned.findings
    assert [stage.key for stage in planned.stages] == [None, None]
    assert all(asked for asked in weights_asked(hub)), "a plan reads ranges, never a whole file"
    run = Session.open(pair_file, places).plan
    assert all(stage.key for stage in run.stages)
    target = run.checkpoints["target"].path
    assert (target / "model.safetensors").read_bytes() == (hub.folder / "model.safetensors").read_bytes()
    assert run.requests[0].checkpoint == target
    recorded = run.as_dict()["checkpoints"]["target"]
    assert (recorded["hub_id"], recorded["commit"]) == ("acme/tiny", COMMIT)


def test_a_refused_pair_fetches_no_weights(hub: Hub, pair_file: Path, tmp_path: Path) -> None:
    pair_file.write_text(PAIR + "limits: {max_sequence_tokens: 999999}\n")
    assert not Session.open(pair_file, Places(tmp_path / "build")).plan.ok
    assert all(asked for asked in weights_asked(hub))


def test_variants_read_a_checkpoint_once(write_checkpoint: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target, reads = write_checkpoint("target"), []
    file = tmp_path / "pair.yaml"
    file.write_text(f"name: many\ntarget: {{checkpoint: {target}}}\ndraft: {{method: ngram}}\n")
    read = session_module.read_checkpoint
    monkeypatch.setattr(session_module, "read_checkpoint", lambda path, field: (reads.append(path), read(path, field))[1])
    pair = load_pair(file)
    evaluate = plan_many(Places(tmp_path / "build"), pair)
    plans = [evaluate(with_settings(pair, {"limits.max_batch_size": batch})) for batch in (1, 2, 4)]
    assert [plan.pair.spec.limits.max_batch_size for plan in plans] == [1, 2, 4]
    assert reads == [target]


def test_a_lane_that_is_planned_only_refuses_a_run_before_weights_are_read(write_checkpoint: Any, tmp_path: Path) -> None:
    target = write_checkpoint("target", layers=4)
    file = tmp_path / "pair.yaml"
    file.write_text(
        f"name: only\nengine: {{kind: tensorrt_llm, release: '1.2.1'}}\nhardware: {{chip: h100_sxm}}\n"
        f"target: {{checkpoint: {target}, weights: none}}\ndraft: {{method: none}}\nlimits: {{max_batched_tokens: 2048}}\n"
    )
    session = Session.open(file, Places(tmp_path / "build"))
    assert session.plan.ok, session.plan.findings
    assert [stage.key for stage in session.plan.stages] == [None, None]
    with pytest.raises(FindingsError, match="does not build or run it yet"):
        session.require_ok()


def with_goal(write_checkpoint: Any, tmp_path: Path, rest: str = "") -> tuple[Path, Places]:
    file = tmp_path / "pair.yaml"
    target = write_checkpoint("target")
    file.write_text(
        f"name: goal\ntarget: {{checkpoint: {target}}}\ndraft: {{method: ngram}}\nplanning: {{goal: {{tokens_per_s: 1}}{rest}}}\n"
    )
    return file, Places(tmp_path / "build")


def test_the_smallest_hardware_is_looked_for_once_a_pair_is_accepted(write_checkpoint: Any, tmp_path: Path) -> None:
    told: list[str] = []
    file, places = with_goal(write_checkpoint, tmp_path)
    session = Session.open(file, places, hash_weights=False)
    assert session.plan.ok, session.plan.findings
    advice = session.smallest_hardware(places, lambda text, _share: told.append(text))
    assert advice is not None
    assert [choice.chip for choice in advice.choices] == ["cpu"]
    assert told == ["trying chips (cpu)"]


def test_a_refused_pair_gets_no_advice(write_checkpoint: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What refuses it need not be the hardware, and then no chip would meet the goal."""
    file, places = with_goal(write_checkpoint, tmp_path, ", price: {per_chip_hour: 3, date: 2999-01-01}")
    session = Session.open(file, places, hash_weights=False)
    assert [f.code for f in session.plan.findings if f.severity == "error"] == ["COST-PRICE-FUTURE"]
    assert session.plan.speed is not None
    monkeypatch.setattr(session_module, "plan_many", lambda *_: pytest.fail("planned for nothing"))
    assert session.smallest_hardware(places) is None


def test_variants_read_a_tokenizer_once(write_checkpoint: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, places = with_goal(write_checkpoint, tmp_path)
    reads: list[Path] = []
    read = session_module.read_tokenizer
    monkeypatch.setattr(session_module, "read_tokenizer", lambda folder, like=None: (reads.append(folder), read(folder, like))[1])
    pair = load_pair(file)
    evaluate = plan_many(places, pair)
    assert all(evaluate(with_settings(pair, {"limits.max_batch_size": batch})).ok for batch in (1, 2, 4))
    assert len(reads) == 1
