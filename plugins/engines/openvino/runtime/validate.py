"""What a request must satisfy before it may enter the engine."""

import math

import numpy as np

from plugins.engines.openvino.record import EngineRecord
from plugins.engines.openvino.runtime.request import Request, RequestError, Sampling, Words

CODE = "INVALID_ARG"
MOST_LOGITS_BYTES = 1 << 30
"""What the logits in one answer may take."""


def validate(request: Request, record: EngineRecord, max_cached_tokens: int) -> None:
    """Raises RequestError for the first thing that cannot be served by this engine."""
    _check_lengths(request, record, max_cached_tokens)
    _check_ids("input_ids", request.input_ids, record)
    _check_ids("draft_input_ids", request.draft_ids, record)
    _check_ids("end_id", request.end_ids, record)
    _check_words("stop_words_list", request.stop_words, record)
    _check_words("bad_words_list", request.bad_words, record)
    _check_drafts(request, record)
    _check_sampling(request.sampling)


def _require(ok: bool, field: str, found: object, needed: str) -> None:
    if not ok:
        raise RequestError(CODE, field, str(found), needed)


def _check_lengths(request: Request, record: EngineRecord, max_cached_tokens: int) -> None:
    prompt, new = len(request.input_ids), request.max_new_tokens
    longest = min(record.max_sequence_tokens, max_cached_tokens)
    _require(1 <= prompt <= record.max_input_tokens, "input_lengths", prompt, f"1 to {record.max_input_tokens} tokens")
    _require(new >= 1, "request_output_len", new, "at least 1 token")
    _require(prompt + new <= longest, "request_output_len", f"{new} after {prompt}", f"at most {longest} tokens in all")
    _require(request.min_tokens >= 0, "min_tokens", request.min_tokens, "0 or more")
    wanted = prompt * request.want_context_logits + new * request.num_sequences * request.want_generation_logits
    most = MOST_LOGITS_BYTES // (4 * record.vocab_size)
    _require(wanted <= most, "logits", f"{wanted} rows", f"at most {most} rows of logits in one answer")


def _check_drafts(request: Request, record: EngineRecord) -> None:
    drafts, own, most = len(request.draft_ids), request.speculation.max_draft_tokens, record.max_draft_tokens
    _require(drafts <= most, "draft_input_ids", f"{drafts} tokens", f"at most {most} tokens")
    _require(0 <= own <= most, "max_draft_tokens", own, f"0 to {most}")
    _require(not (drafts and own), "draft_input_ids", f"{drafts} tokens", "none when the engine drafts by itself")
    _require(1 <= request.num_sequences <= record.max_batch_size, "num_sequences", request.num_sequences, f"1 to {record.max_batch_size}")
    _require(not drafts or request.num_sequences == 1, "num_sequences", request.num_sequences, "1 with draft_input_ids")
    if request.draft_logits is not None:
        shape, needed = request.draft_logits.shape, (drafts, record.vocab_size)
        _require(shape == needed, "draft_logits", f"shape {list(shape)}", f"shape {list(needed)}")
        _require(
            bool(np.isfinite(request.draft_logits.max(axis=1)).all()), "draft_logits", "rows without a finite number", "finite numbers"
        )


def _check_ids(field: str, ids: tuple[int, ...], record: EngineRecord) -> None:
    if ids and (min(ids) < 0 or max(ids) >= record.vocab_size):
        bad = next(i for i in ids if not 0 <= i < record.vocab_size)
        raise RequestError(CODE, field, str(bad), f"0 to {record.vocab_size - 1}")


def _check_words(field: str, words: Words, record: EngineRecord) -> None:
    for word in words:
        _require(bool(word), field, "an empty word", "words of at least one token")
        _check_ids(field, word, record)


def _check_sampling(sampling: Sampling) -> None:
    _require(math.isfinite(sampling.temperature) and sampling.temperature >= 0, "temperature", sampling.temperature, "0 or more")
    _require(sampling.top_k >= 0, "runtime_top_k", sampling.top_k, "0 (all) or more")
    _require(0 < sampling.top_p <= 1, "runtime_top_p", sampling.top_p, "more than 0, at most 1")
    _require(0 <= sampling.min_p <= 1, "min_p", sampling.min_p, "0 (all) to 1")
    _require(0.01 <= sampling.repetition_penalty <= 100, "repetition_penalty", sampling.repetition_penalty, "0.01 to 100")
    _require(abs(sampling.presence_penalty) <= 100, "presence_penalty", sampling.presence_penalty, "-100 to 100")
    _require(abs(sampling.frequency_penalty) <= 100, "frequency_penalty", sampling.frequency_penalty, "-100 to 100")
    _require(sampling.seed is None or 0 <= sampling.seed < 1 << 64, "seed", sampling.seed, "0 to 2^64 - 1")
