"""This engine's calls: its counters as they changed during the call."""

from types import SimpleNamespace

import pytest

from builder.bench.own import OwnParty


def test_work_is_what_the_counters_gained(made: SimpleNamespace) -> None:
    session = made.session()
    party = OwnParty(session)
    party.generate([[1]], new_tokens=5, mode="plain")
    answers = party.generate([[1], [2]], new_tokens=10, mode="draft_lookup")
    assert session.calls == [("plain", 1), ("draft_lookup", 2)]
    assert answers.outputs == (tuple(range(1, 11)), tuple(range(2, 12)))
    assert answers.seconds > 0
    work = answers.work
    assert work is not None
    assert (work.passes, work.rounds) == (10, 20)
    assert (work.drafted_tokens, work.accepted_tokens, work.lookup_drafted_tokens, work.lookup_accepted_tokens) == (8, 6, 4, 2)
    assert work.python_s == pytest.approx(0.005)
    party.close()
    assert session.closed
