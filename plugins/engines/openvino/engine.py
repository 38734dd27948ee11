"""The engine plug-in: checks, builds and describes CPU engines."""

import errno
import json
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from builder.api import (
    API_VERSION,
    BuildNeeds,
    Deployment,
    EngineMemory,
    EngineOptions,
    EngineRequest,
    EngineSession,
    Finding,
    MissingError,
    ModelShape,
    Progress,
    ServerNeeds,
    StageError,
    StoredFormat,
    TandemError,
)
from plugins.engines.openvino.check import check, check_deployment
from plugins.engines.openvino.head import read_head_ids, write_head_ids
from plugins.engines.openvino.kv_cache import WORDS as KV_WORDS
from plugins.engines.openvino.memory import build_needs, engine_memory
from plugins.engines.openvino.record import FILE_NAME, MODEL_FILE, TOKENIZER_FOLDER, TUNED_FOR, EngineRecord
from plugins.engines.openvino.tokenizer import copy_tokenizer, tokenizer_digest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PACKAGES = ("nncf", "numpy", "openvino", "torch", "transformers")
EXPORTER_VERSION = "7"
"""Part of the stage's key: raise it when the same inputs lead to another engine."""


class OpenVinoEngine:
    """`engine.kind: openvino`."""

    kind = "openvino"
    api_version = API_VERSION
    default_pool_fraction = None
    adapts_draft_length = True

    def check(self, request: EngineRequest) -> Sequence[Finding]:
        return check(request)

    def check_deployment(self, deployment: Deployment) -> Sequence[Finding]:
        return check_deployment(deployment)

    def memory(self, request: EngineRequest, shape: ModelShape, stored: StoredFormat | None = None) -> EngineMemory:
        return engine_memory(request, shape)

    def build_needs(self, request: EngineRequest, shape: ModelShape, stored: StoredFormat | None = None) -> BuildNeeds:
        return build_needs(request, shape)

    def versions(self) -> Mapping[str, str]:
        return {"exporter": EXPORTER_VERSION} | {name: found for name in PACKAGES if (found := _installed(name))}

    def missing_packages(self) -> Sequence[str]:
        return [name for name in PACKAGES if _installed(name) is None]

    def build(self, request: EngineRequest, destination: Path, progress: Progress) -> None:
        """Export, compress, write, record. Raises StageError; MissingError `DISK-FULL` when the disk is full."""
        try:
            self._build(request, destination, progress)
        except TandemError:
            raise
        except OSError as error:
            raise _os_failure(error, destination) from error
        except Exception as error:  # whatever torch, OpenVINO or NNCF raise, the stage has failed
            message = f"{request.checkpoint} cannot be built: {error}"
            raise StageError("ENGINE-BUILD", message, last_lines=_last_lines(error)) from error

    def _build(self, request: EngineRequest, destination: Path, progress: Progress) -> None:
        from plugins.engines.openvino.export import load, to_graph
        from plugins.engines.openvino.fuse import merge_projections
        from plugins.engines.openvino.selfcheck import selfcheck
        from plugins.engines.openvino.survey import probe
        from plugins.engines.openvino.weights import compress, save

        record = describe(request, self.versions())
        head_ids = read_head_ids(request.checkpoint, record.vocab_size) if request.role == "draft" else None
        progress("export", 0.0)
        hf_model = load(request.checkpoint, head_ids)
        expected = probe(hf_model, record.vocab_size)
        model = to_graph(hf_model)
        merge_projections(model)
        progress(f"compress weights: {request.weights}", 0.6)
        model = compress(model, request.weights, request.options)
        progress("write model", 0.8)
        destination.mkdir(parents=True, exist_ok=True)
        save(model, destination / MODEL_FILE)
        copy_tokenizer(request.checkpoint, destination / TOKENIZER_FOLDER)
        if head_ids is not None:
            write_head_ids(head_ids, destination)
        progress("compare with the checkpoint", 0.85)
        del hf_model, model  # their memory is needed
        selfcheck(destination, record, expected).write(destination)
        progress("done", 1.0)

    def record(self, engine_dir: Path) -> Mapping[str, Any]:
        content: Mapping[str, Any] = json.loads((engine_dir / FILE_NAME).read_text(encoding="utf-8"))
        return content

    def server_needs(self) -> ServerNeeds:
        """The Python-based backend that speaks `tensorrtllm`'s tensor contract."""
        return ServerNeeds(backends={"tensorrtllm": Path(__file__).parent / "triton_backend"})

    def parent_logits(self, checkpoint: Path, windows: Sequence[Sequence[int]]) -> "Iterator[NDArray[np.float32]]":
        from plugins.engines.openvino.reference import parent_logits

        return parent_logits(checkpoint, windows)

    def open(self, target_dir: Path, draft_dir: Path | None, options: EngineOptions) -> EngineSession:
        from plugins.engines.openvino.session import OpenVinoSession

        return OpenVinoSession.open(target_dir, draft_dir, options)


def describe(request: EngineRequest, versions: Mapping[str, str]) -> EngineRecord:
    """The record of the engine that `request` leads to."""
    from transformers import AutoConfig

    from plugins.engines.openvino.export import head_dim, kv_heads

    config = AutoConfig.from_pretrained(request.checkpoint)
    return EngineRecord(
        role=request.role,
        architecture=(config.architectures or ["unknown"])[0],
        model_type=config.model_type,
        vocab_size=config.vocab_size,
        hidden_size=config.hidden_size,
        layers=config.num_hidden_layers,
        heads=config.num_attention_heads,
        kv_heads=kv_heads(config),
        head_dim=head_dim(config),
        max_position_tokens=config.max_position_embeddings,
        weights=request.weights,
        kv_cache=KV_WORDS[request.kv_cache],
        max_batch_size=request.max_batch_size,
        max_input_tokens=request.max_input_tokens,
        max_sequence_tokens=request.max_sequence_tokens,
        max_batched_tokens=request.max_batched_tokens,
        max_draft_tokens=request.max_draft_tokens if request.role == "target" else 0,
        exact=request.role == "target" or bool(request.options.get("exact_draft", True)),
        tuned_for=str(request.options.get("tuned_for", TUNED_FOR[0])),
        end_ids=_end_ids(request.checkpoint),
        tokenizer_sha256=tokenizer_digest(request.checkpoint),
        versions=versions,
        options=dict(request.options),
    )


def _end_ids(checkpoint: Path) -> tuple[int, ...]:
    """End-of-sequence ids: the generation configuration's, or else the model's."""
    for name in ("generation_config.json", "config.json"):
        path = checkpoint / name
        found = json.loads(path.read_text(encoding="utf-8")).get("eos_token_id") if path.is_file() else None
        if found is not None:
            return tuple(found) if isinstance(found, list) else (int(found),)
    return ()


def _installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _os_failure(error: OSError, destination: Path) -> TandemError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        message = f"The disk of {destination} is full."
        return MissingError("DISK-FULL", message, field="disk", fix="free some space, or choose another folder")
    return StageError("ENGINE-BUILD", f"The engine cannot be written: {error}")


def _last_lines(error: Exception) -> tuple[str, ...]:
    return tuple(str(error).strip().splitlines()[-10:])
