"""Folders of TensorRT-LLM's own: converted checkpoints (config.json and rankN.safetensors), and built engines (rankN.engine)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from builder.api.model import ModelShape, StoredFormat
from builder.checkpoint.generation import read_end_ids
from builder.checkpoint.geometry import Geometry
from builder.checkpoint.hf import sizes_of
from builder.checkpoint.model import Checkpoint
from builder.checkpoint.names import embedding_of, is_head, weights_in
from builder.checkpoint.quantization import bits_of
from builder.checkpoint.rope import check_rope, read_rope
from builder.checkpoint.safetensors import HeaderError, Tensor, read_header
from builder.checkpoint.scales import read_cache_scales
from builder.checkpoint.shape import shape_of
from builder.checkpoint.shards import listed
from builder.checkpoint.values import count_of, is_number, mapping_of
from builder.errors import Finding

MODES = {1: "none", 2: "draft_tokens_external", 4: "medusa", 8: "lookahead", 16: "explicit_draft_tokens", 32: "eagle"}
"""TensorRT-LLM's bit flags of speculative_decoding_mode."""
COUNTS = ("max_batch_size", "max_input_len", "max_seq_len", "max_num_tokens", "max_draft_len", "max_beam_width")
LIMITS = ("max_batch_size", "max_input_len", "max_seq_len", "max_num_tokens", "gather_context_logits", "gather_generation_logits")


def is_engine(config: Mapping[str, Any]) -> bool:
    """Whether config.json is the record of a built engine."""
    return isinstance(config.get("pretrained_config"), Mapping) and isinstance(config.get("build_config"), Mapping)


def is_converted(folder: Path, config: Mapping[str, Any]) -> bool:
    """Whether config.json is that of a converted checkpoint."""
    return isinstance(config.get("architecture"), str) and ("mapping" in config or any(folder.glob("rank*.safetensors")))


def read_engine(path: Path, config: Mapping[str, Any], field: str) -> Checkpoint:
    """A built engine: sizes and storage from its record, counts by formula. Raises RefusedError CKPT-CONFIG."""
    model, build = config["pretrained_config"], config["build_config"]
    geometry = sizes_of(model, path, field)
    stored = _format(model, "tensorrt_llm_engine", str(config.get("version", "")), _limits(build))
    findings = (*_record(build, field), *_ranks(path, stored, ".engine", field))
    return _checkpoint(path, config, model, shape_of(geometry, ()), stored, (), findings, field)


def read_converted(path: Path, config: Mapping[str, Any], field: str) -> Checkpoint:
    """A converted checkpoint; counts from the ranks' headers when all are there. Raises RefusedError CKPT-CONFIG."""
    geometry = sizes_of(config, path, field)
    stored = _format(config, "tensorrt_llm", str(config.get("version", "")), {})
    findings = list(_ranks(path, stored, ".safetensors", field))
    ranks: list[tuple[Tensor, ...]] = []
    for rank in range(stored.tensor_parallel * stored.pipeline_parallel):
        file = path / f"rank{rank}.safetensors"
        if file.is_file():
            ranks.append(_header(file, field, findings))
    shape, state = shape_of(geometry, ()), ""
    if not findings:
        shape = _shape(geometry, ranks, stored, bool(config.get("use_parallel_embedding")))
        scales = read_cache_scales(stored, ranks[0], geometry.layers // stored.pipeline_parallel, field)
        findings += scales.findings
        state = scales.state
    tensors = tuple(tensor for rank in ranks for tensor in rank)
    return _checkpoint(path, config, config, shape, replace(stored, kv_scales=state), tensors, tuple(findings), field)


def _checkpoint(
    path: Path,
    config: Mapping[str, Any],
    model: Mapping[str, Any],
    shape: ModelShape,
    stored: StoredFormat,
    tensors: tuple[Tensor, ...],
    findings: tuple[Finding, ...],
    field: str,
) -> Checkpoint:
    rope = read_rope(model)
    embedding = embedding_of(tensors)
    return Checkpoint(
        path=path,
        config=config,
        model_type=str(model.get("qwen_type") or model.get("model_type") or model.get("architecture", "")),
        shape=shape,
        stored=stored,
        rope=rope,
        tensors=tensors,
        embedding_rows=_embedding_rows(model, embedding, stored),
        end_ids=read_end_ids(path, model),
        findings=(*findings, *check_rope(rope, field), *_rotary_base(model, field)),
    )


def _embedding_rows(model: Mapping[str, Any], embedding: Tensor | None, stored: StoredFormat) -> int:
    """Rows of the whole embedding; the ranks may share it out by rows."""
    if embedding is None:
        return 0
    split = bool(model.get("use_parallel_embedding")) and not model.get("embedding_sharding_dim")
    return embedding.shape[0] * (stored.tensor_parallel if split else 1)


def _rotary_base(model: Mapping[str, Any], field: str) -> Iterator[Finding]:
    """modelopt leaves the base out when it does not find it where transformers 4 kept it, and nothing downstream notices."""
    if str(model.get("position_embedding_type", "rope")).startswith("rope") and not is_number(model.get("rotary_base")):
        message = (
            "config.json of the converted checkpoint names no rotary_base, so TensorRT-LLM takes 10000; "
            "a model that was trained with another base answers nonsense without an error."
        )
        fix = "set rotary_base to rope_theta of the model's own config.json and build again"
        yield Finding("CKPT-ROPE-BASE", "warning", message, field, "no rotary_base", "rotary_base", fix)


def _format(model: Mapping[str, Any], kind: str, release: str, details: Mapping[str, str]) -> StoredFormat:
    mapping, quantization = mapping_of(model.get("mapping")), mapping_of(model.get("quantization"))
    kept = {name: str(quantization[name]) for name in ("group_size", "has_zero_point") if quantization.get(name)}
    return StoredFormat(
        kind=kind,
        weights=str(quantization.get("quant_algo") or ""),
        kv_cache=str(quantization.get("kv_cache_quant_algo") or ""),
        tensor_parallel=count_of(mapping.get("tp_size")) or 1,
        pipeline_parallel=count_of(mapping.get("pp_size")) or 1,
        release=release,
        details={**kept, **details, "dtype": str(model.get("dtype", ""))},
    )


def _limits(build: Mapping[str, Any]) -> dict[str, str]:
    """What the engine was built for; an engine that was not built for drafts from outside takes none of them."""
    mode = build.get("speculative_decoding_mode")
    word = MODES.get(mode, str(mode)) if type(mode) is int else str(mode or "none").rsplit(".", 1)[-1].lower()
    drafts = count_of(build.get("max_draft_len")) if word == "draft_tokens_external" else 0
    limits = {name: str(build[name]) for name in LIMITS if name in build}
    return {**limits, "speculative_decoding_mode": word, "max_draft_tokens": str(drafts)}


def _record(build: Mapping[str, Any], field: str) -> Iterator[Finding]:
    """Values of another kind than TensorRT-LLM writes; they are read as not there."""
    parts = [(name, build[name], "a whole number", type(build[name]) is int) for name in COUNTS if build.get(name) is not None]
    if build.get("plugin_config") is not None:
        parts.append(("plugin_config", build["plugin_config"], "an object", isinstance(build["plugin_config"], Mapping)))
    for name, value, needed, fits in parts:
        if not fits:
            found = repr(value)[:80]
            message = f"The engine's config.json has build_config.{name} {found}, and TensorRT-LLM writes {needed} there."
            yield Finding(
                "CKPT-ENGINE-RECORD", "error", message, field, found, needed, "copy config.json of the engine again, or build it again"
            )


def _ranks(path: Path, stored: StoredFormat, ending: str, field: str) -> Iterator[Finding]:
    world = stored.tensor_parallel * stored.pipeline_parallel
    absent = [f"rank{rank}{ending}" for rank in range(world) if not (path / f"rank{rank}{ending}").is_file()]
    if absent:
        message = (
            f"config.json is made for {world} ranks (tensor parallel {stored.tensor_parallel}, "
            f"pipeline parallel {stored.pipeline_parallel}) and {listed(absent)} {'is' if len(absent) == 1 else 'are'} not there: "
            f"{world - len(absent)} of {world} files are present."
        )
        fix = f"copy {listed(absent)}, or convert again"
        yield Finding("CKPT-RANK-MISSING", "error", message, field, f"{world - len(absent)} of {world} files", listed(absent), fix)


def _header(file: Path, field: str, findings: list[Finding]) -> tuple[Tensor, ...]:
    try:
        return read_header(file)
    except HeaderError as error:
        message = f"{file.name}: {error}."
        findings.append(Finding("CKPT-WEIGHTS", "error", message, field, file.name, "a whole file", f"copy {file.name} again"))
        return error.tensors


def _shape(geometry: Geometry, ranks: Sequence[Sequence[Tensor]], stored: StoredFormat, embedding_is_split: bool) -> ModelShape:
    """Counts of all ranks; what every rank of a stage holds in full (norms, an embedding that is not split) counts once."""
    width, bits = stored.tensor_parallel, bits_of(stored)
    whole = tied_total = embedding = 0
    for number, rank in enumerate(ranks):
        table = embedding_of(rank)
        for tensor in rank:
            copied = len(tensor.shape) < 2 or (tensor is table and not embedding_is_split)
            if copied and number % width:
                continue
            count = weights_in(tensor, bits)
            whole += count
            embedding += count if tensor is table else 0
            tied_total += count if is_head(tensor.name) else 0
    formula = shape_of(geometry, ())
    tied = tied_total == 0
    idle = formula.parameters - formula.active_parameters - (0 if formula.tied_head else formula.embedding_parameters)
    return replace(
        formula,
        parameters=whole,
        embedding_parameters=embedding,
        active_parameters=whole - idle - (0 if tied else embedding),
        tied_head=tied,
    )
