"""Choosing tokens: greedy or sampled, with penalties and bans; verification of drafts is the same choice made row by row."""

from collections.abc import Sequence as SequenceOf
from hashlib import blake2b
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from plugins.engines.openvino.runtime.request import Request, Sampling
from plugins.engines.openvino.runtime.sequence import Distribution, Sequence

Row = NDArray[np.float32]
Purpose = Literal["choose", "draft", "accept", "replace"]
_CANDIDATES = (256, 4096)
"""Numbers of tokens sorted in turn when `top_p` or `min_p` limits the choice; the whole vocabulary is sorted when they are not enough."""


def uniform(seed: int, position: int, purpose: Purpose = "choose") -> float:
    """A number in [0, 1) that depends on the seed, the position in the sequence and what it decides only.

    So a sequence that is resent and continued (the draft-target loop) draws the same numbers as one that was never interrupted.
    """
    key = seed.to_bytes(16, "little", signed=True) + position.to_bytes(8, "little")
    digest = blake2b(key, digest_size=8, person=purpose.encode()).digest()
    return (int.from_bytes(digest, "little") >> 11) * 2.0**-53


def choose(row: Row, sequence: Sequence) -> int:
    """The next token of `sequence` from its row of logits [vocab]; the row is not changed."""
    row = adjusted(row, sequence.request, sequence.tokens)
    if sequence.request.sampling.greedy:
        return int(row.argmax())
    return draw(candidates(row, sequence.request.sampling), uniform(sequence.seed, len(sequence.tokens)))


def accept(rows: NDArray[np.float32], sequence: Sequence) -> int:
    """Verify the drafts of `sequence` against rows [1 + drafts, vocab] and extend it; returns how many rows were used.

    The answer is distributed as if nothing had been drafted; greedy is the special case of exact match.
    """
    drafts = sequence.drafts
    assert len(sequence.drafts_from) in (0, len(drafts)), "a draft is judged by what it was drawn from"
    for used, row in enumerate(rows, start=1):
        if used > len(drafts):
            token, matched = choose(row, sequence), False
        elif sequence.drafts_from:
            token, matched = _judge(row, sequence, drafts[used - 1], sequence.drafts_from[used - 1])
        else:
            token = choose(row, sequence)
            matched = token == drafts[used - 1]
        sequence.counts.accepted_tokens += matched
        if sequence.accept(token) or not matched:
            return used
    return len(rows)


def _judge(row: Row, sequence: Sequence, draft: int, drawn_from: Distribution) -> tuple[int, bool]:
    """Rejection sampling (Leviathan et al. 2023, algorithm 1): keep a draft drawn from q with probability min(1, p/q), or else draw from
    the residual max(0, p - q).

    A draft that is certain, q = 1, needs none of this: to draw from p and compare is the same, and then the token does not even depend
    on the draft.
    """
    p = candidates(adjusted(row, sequence.request, sequence.tokens), sequence.request.sampling)
    position, likely = len(sequence.tokens), p.of(draft)
    if uniform(sequence.seed, position, "accept") * drawn_from.of(draft) < likely:
        return draft, True
    return draw(_residual(p, drawn_from), uniform(sequence.seed, position, "replace")), False


def _residual(p: Distribution, q: Distribution) -> Distribution:
    """The normalized positive part of p - q; p itself where rounding leaves nothing."""
    order = np.argsort(q.ids)
    at = np.minimum(np.searchsorted(q.ids, p.ids, sorter=order), len(order) - 1)
    theirs = np.where(q.ids[order[at]] == p.ids, q.probabilities[order[at]], 0.0)
    left = np.maximum(p.probabilities - theirs, 0.0)
    total = left.sum()
    return Distribution(p.ids, left / total) if total > 0 else p


def draw(distribution: Distribution, uniform_draw: float) -> int:
    """The token at this place of the cumulated probabilities."""
    cumulated = distribution.probabilities.cumsum()
    return int(distribution.ids[min(len(cumulated) - 1, int(np.searchsorted(cumulated, uniform_draw, side="right")))])


def log_probability(row: Row, token: int) -> float:
    """Natural logarithm of the raw softmax of one row [vocab] at one token."""
    top = row.max()
    return float(row[token] - top - np.log(np.exp(row - top).sum(dtype=np.float64)))


def candidates(row: Row, sampling: Sampling) -> Distribution:
    """Tokens that may be drawn and their probabilities: temperature, then top-k, top-p, min-p."""
    with np.errstate(over="ignore"):  # at a temperature next to zero only the largest stays
        scaled = (row.astype(np.float64) - row.max()) / sampling.temperature
    if sampling.top_k:
        ids = _largest(scaled, sampling.top_k)
        weights = np.exp(scaled[ids])
        total = weights.sum()
    else:
        everything = np.exp(scaled)
        total = everything.sum()
        if sampling.top_p >= 1.0 and sampling.min_p <= 0.0:
            return Distribution(np.arange(len(row)), everything / total)
        ids = _likely(scaled, everything, sampling.top_p * total, sampling.min_p)
        weights = everything[ids]
    keep = _nucleus(weights, sampling.top_p * total) if sampling.top_p < 1.0 else len(ids)
    if sampling.min_p > 0.0:
        keep = min(keep, int((weights >= sampling.min_p).sum()))
    weights = weights[:keep]
    return Distribution(ids[:keep], weights / weights.sum())


def _largest(row: NDArray[np.float64], count: int) -> NDArray[np.intp]:
    """Indices of the `count` largest entries, largest first, the smaller index first among equals."""
    if count >= len(row):
        return np.argsort(-row, kind="stable")
    chosen = np.sort(np.argpartition(-row, count - 1)[:count])
    return chosen[np.argsort(-row[chosen], kind="stable")]


def _likely(scaled: NDArray[np.float64], weights: NDArray[np.float64], mass: float, min_p: float) -> NDArray[np.intp]:
    """Indices, most likely first, of at least all tokens that top-p and min-p leave. Weights are relative to the largest one's."""
    for count in _CANDIDATES:
        if count < len(scaled):
            ids = _largest(scaled, count)
            if weights[ids].sum() >= mass or weights[ids[-1]] < min_p:
                return ids
    return np.argsort(-scaled, kind="stable")


def _nucleus(weights: NDArray[np.float64], mass: float) -> int:
    """How many of the sorted weights reach `mass`, at least one."""
    return min(len(weights), int(np.searchsorted(weights.cumsum(), mass)) + 1)


def adjusted(row: Row, request: Request, tokens: SequenceOf[int]) -> Row:
    """The row [vocab] that follows `tokens`, with penalties, and with what must not come next at minus infinity.

    A ban of everything is none.
    """
    return _banned(_penalized(row, tokens, request.sampling), request, tokens) if request.adjusts else row


def _penalized(row: Row, tokens: SequenceOf[int], sampling: Sampling) -> Row:
    if not sampling.penalized:
        return row
    ids, counts = np.unique(np.asarray(tokens), return_counts=True)
    row = row.copy()
    seen = row[ids]
    seen = np.where(seen < 0, seen * sampling.repetition_penalty, seen / sampling.repetition_penalty)
    row[ids] = seen - sampling.presence_penalty - sampling.frequency_penalty * counts
    return row


def _banned(row: Row, request: Request, tokens: SequenceOf[int]) -> Row:
    banned = [w[-1] for w in request.bad_words if tuple(tokens[len(tokens) - len(w) + 1 :]) == w[:-1]]
    if not request.may_end_after(len(tokens) - len(request.input_ids) + 1):
        banned += request.end_ids
    banned = [token for token in banned if token < len(row)]  # the draft model's row may be narrower than the target's
    if not banned:
        return row
    left = row.copy()
    left[banned] = -np.inf
    return left if left.max() > -np.inf else row
