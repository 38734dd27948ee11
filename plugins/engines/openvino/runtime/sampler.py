"""Choosing tokens: greedy or sampled, with penalties and bans; verification of drafts is the same choice made row by row."""

from collections.abc import Sequence as SequenceOf
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from plugins.engines.openvino.runtime.sequence import Sampling, Sequence

Row = NDArray[np.float32]
_CANDIDATES = 1024
"""Tokens sorted first when only `top_p` limits the choice; nearly always enough, the whole vocabulary is sorted otherwise."""


def uniform(seed: int, position: int) -> float:
    """A number in [0, 1) that depends on the seed and on the position in the sequence only.

    So a sequence that is resent and continued (the draft-target loop) draws the same numbers as one that was never interrupted.
    """
    digest = blake2b(seed.to_bytes(16, "little", signed=True) + position.to_bytes(8, "little"), digest_size=8).digest()
    return (int.from_bytes(digest, "little") >> 11) * 2.0**-53


def choose(row: Row, sequence: Sequence) -> int:
    """The next token of `sequence` from its row of logits [vocab]; the row is not changed."""
    sampling = sequence.request.sampling
    row = _banned(_penalized(row, sequence.tokens, sampling), sequence)
    if sampling.greedy:
        return int(row.argmax())
    ids, probabilities = candidates(row, sampling)
    return int(ids[_inverse(probabilities, uniform(sequence.seed, len(sequence.tokens)))])


def accept(rows: NDArray[np.float32], sequence: Sequence) -> int:
    """Verify the drafts of `sequence` against rows [1 + drafts, vocab] and extend it; returns how many rows were used.

    Each row's token is drawn from the engine's own distribution p and kept whatever was drafted; verification goes on while it equals the
    draft. This is rejection sampling with a one-hot proposal: draft d is accepted with probability p(d), and a token that replaces it has
    the distribution p without d, renormalized. So the answer is distributed as if nothing had been drafted, and greedy is the special case
    of exact match.
    """
    for used, row in enumerate(rows, start=1):
        token = choose(row, sequence)
        matched = used <= len(sequence.drafts) and token == sequence.drafts[used - 1]
        sequence.accepted_tokens += matched
        if sequence.accept(token) or not matched:
            return used
    return len(rows)


def log_probability(row: Row, token: int) -> float:
    """Natural logarithm of the raw softmax of one row [vocab] at one token."""
    top = row.max()
    return float(row[token] - top - np.log(np.exp(row - top).sum(dtype=np.float64)))


def candidates(row: Row, sampling: Sampling) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Tokens that may be drawn, most likely first, and their probabilities (they sum to 1)."""
    scaled = row.astype(np.float64) / sampling.temperature
    top = scaled.max()
    if sampling.top_k:
        ids = _largest(scaled, sampling.top_k)
        weights = np.exp(scaled[ids] - top)
        total = weights.sum()
    else:
        everything = np.exp(scaled - top)
        total = everything.sum()
        ids = _nucleus_candidates(scaled, everything, sampling.top_p * total)
        weights = everything[ids]
    keep = _nucleus(weights, sampling.top_p * total) if sampling.top_p < 1.0 else len(ids)
    weights = weights[:keep]
    return ids[:keep], weights / weights.sum()


def _largest(row: NDArray[np.float64], count: int) -> NDArray[np.intp]:
    """Indices of the `count` largest entries, largest first, the smaller index first among equals."""
    if count >= len(row):
        return np.argsort(-row, kind="stable")
    chosen = np.sort(np.argpartition(-row, count - 1)[:count])
    return chosen[np.argsort(-row[chosen], kind="stable")]


def _nucleus_candidates(scaled: NDArray[np.float64], weights: NDArray[np.float64], mass: float) -> NDArray[np.intp]:
    if len(scaled) <= _CANDIDATES or mass >= weights.sum():
        return np.argsort(-scaled, kind="stable")
    ids = _largest(scaled, _CANDIDATES)
    return ids if weights[ids].sum() >= mass else np.argsort(-scaled, kind="stable")


def _nucleus(weights: NDArray[np.float64], mass: float) -> int:
    """How many of the sorted weights reach `mass`, at least one."""
    return min(len(weights), int(np.searchsorted(weights.cumsum(), mass)) + 1)


def _inverse(probabilities: NDArray[np.float64], draw: float) -> int:
    return min(len(probabilities) - 1, int(np.searchsorted(probabilities.cumsum(), draw, side="right")))


def _penalized(row: Row, tokens: SequenceOf[int], sampling: Sampling) -> Row:
    if not sampling.penalized:
        return row
    ids, counts = np.unique(np.asarray(tokens), return_counts=True)
    row = row.copy()
    seen = row[ids]
    seen = np.where(seen < 0, seen * sampling.repetition_penalty, seen / sampling.repetition_penalty)
    row[ids] = seen - sampling.presence_penalty - sampling.frequency_penalty * counts
    return row


def _banned(row: Row, sequence: Sequence) -> Row:
    """The row with tokens that must not come next at minus infinity."""
    tokens = sequence.tokens
    banned = [w[-1] for w in sequence.request.bad_words if tuple(tokens[len(tokens) - len(w) + 1 :]) == w[:-1]]
    if not sequence.ending_allowed:
        banned += sequence.request.end_ids
    if not banned:
        return row
    row = row.copy()
    row[banned] = -np.inf
    return row
