"""Cross-checks of a package plan with the engines' own records, before anything is written."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builder.errors import Finding, FindingsError, RefusedError
from builder.packaging.plan import PackagePlan


@dataclass(frozen=True)
class EngineFacts:
    """What packaging reads of an engine's `config.json`; None where the record is silent."""

    path: Path
    vocab_size: int | None
    max_batch_size: int | None
    max_input_tokens: int | None
    max_sequence_tokens: int | None
    max_draft_tokens: int | None
    tokens_per_block: int | None
    kv_cache: str
    end_ids: tuple[int, ...]


def read_engine(engine_dir: Path) -> EngineFacts:
    """Raises RefusedError `PKG-ENGINE-RECORD` when there is no readable record."""
    path = engine_dir / "config.json"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RefusedError(
            "PKG-ENGINE-RECORD",
            f"{path} cannot be read: {error}",
            field="engine",
            found=str(path),
            needed="a built engine",
            fix="tandem build CONFIG",
        ) from error
    return _facts(path, content)


def check(plan: PackagePlan) -> tuple[EngineFacts, EngineFacts | None]:
    """The records of target and draft. Raises FindingsError with every mismatch at once; RefusedError `PKG-ENGINE-RECORD`."""
    target = read_engine(plan.target_engine_dir)
    draft = None if plan.draft_engine_dir is None else read_engine(plan.draft_engine_dir)
    findings = tuple(_mismatches(plan, target, draft))
    if findings:
        raise FindingsError(findings)
    return target, draft


def sequence_limit(plan: PackagePlan, target: EngineFacts) -> int:
    """Longest prompt plus answer the orchestrator can serve. It resends the grown sequence as a prompt, so the input limit counts too."""
    limits = [plan.target_pool_tokens]
    if target.max_sequence_tokens is not None:
        limits.append(target.max_sequence_tokens)
    if target.max_input_tokens is not None:
        limits.append(target.max_input_tokens + 1)
    return min(limits)


def shared_vocab_size(target: EngineFacts, draft: EngineFacts | None) -> int | None:
    """Token ids that both engines have: the plan lets their widths differ by padding. None without a draft or where a record is silent."""
    if draft is None or target.vocab_size is None or draft.vocab_size is None:
        return None
    return min(target.vocab_size, draft.vocab_size)


def _facts(path: Path, content: Mapping[str, Any]) -> EngineFacts:
    model, build, own = (content.get(key) or {} for key in ("pretrained_config", "build_config", "tandem"))
    return EngineFacts(
        path=path,
        vocab_size=model.get("vocab_size", own.get("vocab_size")),
        max_batch_size=build.get("max_batch_size"),
        max_input_tokens=build.get("max_input_len"),
        max_sequence_tokens=build.get("max_seq_len"),
        max_draft_tokens=build.get("max_draft_len"),
        tokens_per_block=(build.get("plugin_config") or {}).get("tokens_per_block"),
        kv_cache=(model.get("quantization") or {}).get("kv_cache_quant_algo") or "",
        end_ids=tuple(own.get("end_ids", ())),
    )


def _mismatches(plan: PackagePlan, target: EngineFacts, draft: EngineFacts | None) -> Iterator[Finding]:
    yield from _of_engine(plan, target, "target", plan.target_kv_cache, plan.target_pool_tokens)
    yield from _equal("PKG-VOCAB-SIZE", target, "vocab_size", target.vocab_size, plan.vocab_size)
    yield from _least(
        "PKG-DRAFT-LENGTH", target, "max_draft_len", target.max_draft_tokens, plan.num_draft_tokens, "speculation.max_draft_tokens"
    )
    if draft is not None:
        yield from _of_engine(plan, draft, "draft", plan.draft_kv_cache, plan.draft_pool_tokens)
    if not (plan.tokenizer_dir / "tokenizer.json").is_file():
        path = str(plan.tokenizer_dir / "tokenizer.json")
        yield Finding(
            "PKG-TOKENIZER",
            "error",
            f"{path} is missing",
            "tokenizer",
            "no tokenizer.json",
            "a fast tokenizer",
            "save it with transformers",
            path,
        )


def _of_engine(plan: PackagePlan, engine: EngineFacts, role: str, kv_cache: str | None, pool_tokens: int) -> Iterator[Finding]:
    yield from _equal("PKG-BLOCK", engine, "tokens_per_block", engine.tokens_per_block, plan.tokens_per_block)
    yield from _equal("PKG-KV-CACHE", engine, "kv_cache_quant_algo", engine.kv_cache, kv_cache)
    yield from _least("PKG-BATCH", engine, "max_batch_size", engine.max_batch_size, plan.max_batch_size, "limits.max_batch_size")
    if pool_tokens < 1:
        yield Finding(
            "PKG-POOL",
            "error",
            f"the {role}'s KV pool is {pool_tokens} tokens",
            f"{role} pool",
            str(pool_tokens),
            "1 token at least",
            file=str(engine.path),
        )


def _equal(code: str, engine: EngineFacts, name: str, found: object, needed: object) -> Iterator[Finding]:
    if found is not None and needed is not None and found != needed:
        found, needed = found or "none", needed or "none"
        yield _finding(
            code, engine, name, found, needed, f"{needed}", lambda: f"{name} of {engine.path} is {found}, the plan needs {needed}"
        )


def _least(code: str, engine: EngineFacts, name: str, found: int | None, needed: int, key: str) -> Iterator[Finding]:
    if found is not None and found < needed:
        yield _finding(
            code, engine, name, found, needed, f"{needed} or more", lambda: f"{name} of {engine.path} is {found}, {key} is {needed}"
        )


def _finding(code: str, engine: EngineFacts, name: str, found: object, needed: object, text: str, message: Callable[[], str]) -> Finding:
    return Finding(code, "error", message(), name, str(found), text, "build the engine again: tandem build CONFIG", str(engine.path))
