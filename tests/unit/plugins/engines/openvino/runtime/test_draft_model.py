"""The draft model's cache keeps step with the target's sequences, whatever the target accepts."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from plugins.engines.openvino.runtime.draft_model import DraftModel, Want
from plugins.engines.openvino.runtime.request import Request, Sampling
from plugins.engines.openvino.runtime.sequence import Sequence

VOCAB = 50
MakeModel = Callable[..., DraftModel]


def counting_up(position: int, token: int) -> NDArray[np.float32]:
    row: NDArray[np.float32] = np.eye(VOCAB, dtype=np.float32)[(token + 1) % VOCAB]
    return row


@pytest.fixture
def make_model(table_draft: MakeModel) -> MakeModel:
    return lambda **changes: table_draft(counting_up, VOCAB, **changes)


def sequence(*tokens: int, **request: object) -> Sequence:
    return Sequence.of(Request(tokens, 30, **request))  # type: ignore[arg-type]


def fed(model: DraftModel) -> list[list[tuple[int, tuple[int, ...]]]]:
    """Each pass: for each sequence the place it began at and the tokens fed."""
    passes = model.runner.passes  # type: ignore[attr-defined]
    return [[(feed.cached_tokens, tuple(feed.tokens)) for feed in feeds] for feeds in passes]


def test_reads_the_prompt_once_and_then_one_token_a_pass(make_model: MakeModel) -> None:
    model, one = make_model(), sequence(7, 8, 9)
    assert model.propose([Want(one, 3, sampled=False)])[0].tokens == [10, 11, 12]
    assert fed(model) == [[(0, (7, 8, 9))], [(3, (10,))], [(4, (11,))]]


@pytest.mark.parametrize(("accepted", "begins", "again"), [(0, 3, (40,)), (1, 4, (40,)), (2, 5, (40,)), (3, 5, (12, 40))])
def test_rolls_back_to_what_the_target_accepted(make_model: MakeModel, accepted: int, begins: int, again: tuple[int, ...]) -> None:
    """Of three drafts the third was never fed, so only then there are two tokens to read."""
    model, one = make_model(), sequence(7, 8, 9)
    drafted = model.propose([Want(one, 3, sampled=False)])[0].tokens
    one.tokens += [*drafted[:accepted], 40]
    assert model.unread_tokens(one) == len(again)
    assert model.propose([Want(one, 2, sampled=False)])[0].tokens == [41, 42]
    assert fed(model)[3:] == [[(begins, again)], [(begins + len(again), (41,))]]


def test_several_sequences_share_the_passes(make_model: MakeModel) -> None:
    model, short, long = make_model(), sequence(1, 2), sequence(20, 21, 22)
    drafts = model.propose([Want(short, 1, sampled=False), Want(long, 3, sampled=False)])
    assert [d.tokens for d in drafts] == [[3], [23, 24, 25]]
    assert [len(one) for one in fed(model)] == [2, 1, 1]


def test_end_id_ends_the_draft(make_model: MakeModel) -> None:
    one = sequence(7, end_ids=(9,))
    assert make_model().propose([Want(one, 6, sampled=False)])[0].tokens == [8, 9]


def test_long_prompt_is_read_in_chunks_over_several_rounds(make_model: MakeModel) -> None:
    model, one = make_model(max_batched_tokens=4), sequence(*range(10))
    lengths = []
    for _ in range(3):
        lengths.append(len(model.propose([Want(one, 2, sampled=False)])[0].tokens))
    assert lengths == [0, 2, 2], "the second time what is left fits in one pass"
    assert [begin for ((begin, _),) in fed(model)][:4] == [0, 4, 8, 10]


def test_no_room_means_no_draft_and_no_harm(make_model: MakeModel) -> None:
    model = make_model(blocks=2)
    small, large = sequence(1, 2), sequence(*range(12))
    drafts = model.propose([Want(large, 2, sampled=False), Want(small, 2, sampled=False)])
    assert [d.tokens for d in drafts] == [[], [3, 4]]
    for one in (small, large):
        model.forget(one)
    assert model.blocks.used == 0


def test_beyond_its_own_context_the_draft_model_is_silent(make_model: MakeModel) -> None:
    model = make_model(max_sequence_tokens=6)
    assert model.propose([Want(sequence(1, 2, 3), 4, sampled=False)])[0].tokens == []
    assert model.propose([Want(sequence(1, 2, 3), 3, sampled=False)])[0].tokens == [4, 5, 6]


def test_next_request_reuses_what_the_last_one_left(make_model: MakeModel) -> None:
    model, one = make_model(), sequence(*range(10))
    model.propose([Want(one, 2, sampled=False)])
    model.forget(one)
    model.propose([Want(sequence(*range(10), 33), 1, sampled=False)])
    assert fed(model)[-1] == [(9, (9, 33))]
    assert model.blocks.free + model.blocks.used + model.blocks.cached == model.blocks.total


def test_sampled_draft_says_what_it_was_drawn_from(make_model: MakeModel) -> None:
    one = sequence(7, sampling=Sampling(temperature=0.5, top_k=3, seed=1))
    draft = make_model().propose([Want(one, 4, sampled=True)])[0]
    assert [len(q.ids) for q in draft.drawn_from] == [3] * 4
    assert all(q.of(t) > 0 for q, t in zip(draft.drawn_from, draft.tokens, strict=True))
    expected = np.exp(2.0) / (np.exp(2.0) + 2)
    assert draft.drawn_from[0].of(8) == pytest.approx(expected)


def test_ids_that_the_target_does_not_have_are_never_drafted(table_draft: MakeModel) -> None:
    """Its vocabulary is padded to 50, the target's has 40 ids; the likeliest of what is left is id 0."""
    wide = table_draft(counting_up, VOCAB, target_vocab_size=40)
    assert wide.propose([Want(sequence(37), 4, sampled=False)])[0].tokens == [38, 39, 0, 1]
    sampled = wide.propose([Want(sequence(39, sampling=Sampling(seed=3)), 3, sampled=True)])[0]
    assert [len(q.ids) for q in sampled.drawn_from] == [40] * 3
    assert max(sampled.tokens) < 40


def test_behind_an_id_that_it_does_not_have_it_is_silent(table_draft: MakeModel) -> None:
    narrow = table_draft(counting_up, VOCAB, target_vocab_size=64)
    drafts = narrow.propose([Want(sequence(3, 50, 4), 2, sampled=False), Want(sequence(3, 4), 2, sampled=False)])
    assert [draft.tokens for draft in drafts] == [[], [5, 6]]
    assert all(max(tokens) < VOCAB for one in fed(narrow) for _, tokens in one)


def test_a_ban_of_an_id_that_it_does_not_have_is_no_ban(table_draft: MakeModel) -> None:
    one = sequence(3, bad_words=((60,), (4,)), end_ids=(61,), min_tokens=20)
    assert table_draft(counting_up, VOCAB, target_vocab_size=64).propose([Want(one, 1, sampled=False)])[0].tokens == [0]


def test_penalties_hold_for_the_draft_too(make_model: MakeModel) -> None:
    """Token 8 was said before; its penalty is larger than its lead."""
    one = sequence(8, 7, sampling=Sampling(top_k=1, presence_penalty=2.0))
    assert make_model().propose([Want(one, 1, sampled=False)])[0].tokens == [0]
