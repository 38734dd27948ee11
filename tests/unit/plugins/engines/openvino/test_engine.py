"""The plug-in object: what it says about itself, the folder it builds, how it fails."""

import json
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from builder.api import EngineRequest, MissingError, StageError
from plugins.engines.openvino import ENGINE, weights
from plugins.engines.openvino.engine import OpenVinoEngine
from plugins.engines.openvino.record import EngineRecord
from plugins.engines.openvino.runtime.llm import Engine

BuildTiny = Callable[..., Path]


def request_for(checkpoint: Path) -> EngineRequest:
    return EngineRequest("target", checkpoint, "none", "auto", 32, 4, 384, 512, 384, 8)


def test_orchestrator_chooses_the_draft_length() -> None:
    assert ENGINE.adapts_draft_length


def test_import_loads_no_heavy_package() -> None:
    code = "import sys, plugins.engines.openvino; print({'torch', 'openvino', 'transformers', 'nncf', 'numpy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_is_found_by_its_entry_point() -> None:
    (found,) = [e for e in entry_points(group="tandem.engines") if e.name == "openvino"]
    assert isinstance(found.load(), OpenVinoEngine)


def test_versions_are_those_of_the_tools_that_shape_the_engine() -> None:
    assert set(ENGINE.versions()) >= {"exporter", "openvino", "nncf", "torch", "transformers"}
    assert ENGINE.missing_packages() == []


def test_folder_holds_record_model_and_tokenizer(build_tiny: BuildTiny) -> None:
    folder = build_tiny()
    assert sorted(p.name for p in folder.iterdir()) == ["config.json", "model.bin", "model.xml", "tokenizer"]
    assert [p.name for p in (folder / "tokenizer").iterdir() if "generation" not in p.name] == ["tokenizer.json"]


def test_record_has_the_shape_of_tensorrt_llms(build_tiny: BuildTiny) -> None:
    record = ENGINE.record(build_tiny())
    model, build, own = record["pretrained_config"], record["build_config"], record["tandem"]
    assert (model["vocab_size"], model["num_hidden_layers"], model["num_key_value_heads"], model["head_size"]) == (128, 2, 2, 16)
    assert model["quantization"] == {"quant_algo": None, "kv_cache_quant_algo": "INT8"}
    assert build["speculative_decoding_mode"] == "draft_tokens_external"
    assert (build["max_draft_len"], build["max_seq_len"], build["plugin_config"]["tokens_per_block"]) == (8, 512, 32)
    assert own["exact"] is True
    assert own["end_ids"] == [2]
    assert len(own["tokenizer_sha256"]) == 64


def test_record_survives_writing_and_reading(build_tiny: BuildTiny) -> None:
    record = EngineRecord.read(build_tiny())
    assert EngineRecord.from_json(json.loads(json.dumps(record.as_json()))) == record


def test_draft_engine_takes_no_drafts(build_tiny: BuildTiny) -> None:
    record = ENGINE.record(build_tiny(role="draft", options={"exact_draft": False}))
    assert record["build_config"]["speculative_decoding_mode"] == "none"
    assert record["build_config"]["max_draft_len"] == 0
    assert record["tandem"]["exact"] is False


@pytest.mark.parametrize(("kv_cache", "row_bytes"), [("u8", 16 + 8), ("f32", 64)])
def test_cache_size_is_bounded_by_memory_and_holds_one_sequence_at_least(build_tiny: BuildTiny, kv_cache: str, row_bytes: int) -> None:
    values = {**EngineRecord.read(build_tiny()).__dict__, "kv_cache": kv_cache}
    record = EngineRecord(**values)
    assert record.kv_bytes_per_token == 2 * 2 * 2 * row_bytes
    assert record.max_cached_tokens == 4 * 512
    long = EngineRecord(**{**values, "max_batch_size": 64, "max_sequence_tokens": 1 << 20})
    assert long.max_cached_tokens >= 1 << 20
    assert long.max_cached_tokens < 64 << 20


def test_bytes_per_token_are_those_of_the_real_cache(build_tiny: BuildTiny) -> None:
    for changes in ({}, {"kv_cache": "fp32"}):
        engine = Engine.load(build_tiny(**changes), threads=1, max_cached_tokens=512)
        assert sum(c.nbytes for c in engine._runner._caches) == (512 + 32) * engine.record.kv_bytes_per_token, (
            "the pool and one scratch block"
        )


def test_same_request_builds_the_same_bytes(build_tiny: BuildTiny, tiny_checkpoint: Path, tmp_path: Path) -> None:
    first = build_tiny(weights="int8")
    request = EngineRequest("target", tiny_checkpoint, "int8", "auto", 32, 4, 384, 512, 384, 8)
    ENGINE.build(request, tmp_path, lambda what, share: None)
    for name in ("model.xml", "model.bin", "config.json"):
        assert (tmp_path / name).read_bytes() == (first / name).read_bytes(), name


def test_progress_is_told(tiny_checkpoint: Path, tmp_path: Path) -> None:
    told: list[tuple[str, float | None]] = []
    ENGINE.build(request_for(tiny_checkpoint), tmp_path, lambda what, share: told.append((what, share)))
    shares = [share for _, share in told if share is not None]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_broken_checkpoint_is_a_failed_stage(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    with pytest.raises(StageError) as failure:
        ENGINE.build(request_for(tmp_path), tmp_path / "engine", lambda what, share: None)
    assert failure.value.finding.code == "ENGINE-BUILD"


def test_full_disk_is_told_before_writing(tiny_checkpoint: Path, tmp_path: Path) -> None:
    class Huge:
        def get_ops(self) -> list["Huge"]:
            return [self]

        def get_type_name(self) -> str:
            return "Constant"

        def get_byte_size(self) -> int:
            return 1 << 60

    with pytest.raises(MissingError) as failure:
        weights.save(Huge(), tmp_path / "model.xml")
    assert failure.value.finding.code == "DISK-FULL"
    assert list(tmp_path.iterdir()) == []


def test_server_is_given_the_tensorrtllm_backend() -> None:
    needs = ENGINE.server_needs()
    assert set(needs.backends) == {"tensorrtllm"}
    assert needs.backends["tensorrtllm"].name == "triton_backend"
