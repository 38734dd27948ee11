"""One run: who fails is left out, this engine's failure ends it, answers that cannot be compared are refused."""

from collections.abc import Sequence
from types import SimpleNamespace

import pytest

from builder.bench.measure import Answers, Call, Party, Run, checked, measure, warm_up
from builder.errors import StageError


class Scripted:
    """Answers with as many tokens as asked for, and fails from a given call on."""

    def __init__(self, fails_at: int = 1000) -> None:
        self.calls: list[tuple[str, int]] = []
        self.fails_at, self.closed = fails_at, False

    def generate(self, prompts: Sequence[Sequence[int]], *, new_tokens: int, mode: str) -> Answers:
        self.calls.append((mode, new_tokens))
        if len(self.calls) > self.fails_at:
            raise StageError("TEST-BROKEN", "broken")
        return Answers(tuple(tuple(range(new_tokens)) for _ in prompts), 0.5)

    def close(self) -> None:
        self.closed = True


def run_all(parties: dict[str, Party], made: SimpleNamespace, keys: Sequence[str], prompts: int = 3) -> Run:
    calls = [Call(made.system(key), (made.prompt(f"p{i}"),), 0) for i in range(prompts) for key in keys]
    run = Run()
    measure(parties, calls, run, new_tokens=7, total=len(calls), progress=lambda _text, _share: None)
    return run


def test_every_call_is_made_in_order(made: SimpleNamespace) -> None:
    own, peer = Scripted(), Scripted()
    run = run_all({"tandem": own, "peer": peer}, made, ["tandem/plain", "peer/a", "peer/b"])
    assert [s.call.system.key for s in run.samples] == 3 * ["tandem/plain", "peer/a", "peer/b"]
    assert peer.calls == 3 * [("a", 7), ("b", 7)]
    assert {s.tokens for s in run.samples} == {7}
    assert not run.failures


def test_peer_that_fails_is_closed_and_left_out(made: SimpleNamespace) -> None:
    own, peer = Scripted(), Scripted(fails_at=1)
    run = run_all({"tandem": own, "peer": peer}, made, ["tandem/plain", "peer/a"])
    assert [s.call.system.key for s in run.samples] == ["tandem/plain", "peer/a", "tandem/plain", "tandem/plain"]
    assert peer.closed
    assert len(peer.calls) == 2
    assert str(run.failures["peer"]) == "broken"


def test_own_failure_ends_the_run(made: SimpleNamespace) -> None:
    with pytest.raises(StageError, match="broken"):
        run_all({"tandem": Scripted(fails_at=1)}, made, ["tandem/plain"])


def test_party_that_is_not_there_is_passed_over(made: SimpleNamespace) -> None:
    assert len(run_all({"tandem": Scripted()}, made, ["tandem/plain", "peer/a"]).samples) == 3


def test_warm_up_asks_every_system_and_keeps_nothing(made: SimpleNamespace) -> None:
    peer, run = Scripted(), Run()
    warm_up({"peer": peer}, [made.system("peer/a"), made.system("peer/b")], [made.system("peer/a")], [made.prompt("p")], 3, run)
    assert [mode for mode, _ in peer.calls] == ["a", "b", "a"]
    assert run.samples == []


@pytest.mark.parametrize(("lengths", "seconds"), [([1], 1.0), ([1, 0], 1.0), ([1, 8], 1.0), ([1, 1], 0.0), ([1, 1], float("nan"))])
def test_answers_that_cannot_be_compared_are_refused(made: SimpleNamespace, lengths: list[int], seconds: float) -> None:
    call = Call(made.system("peer/a"), (made.prompt("p"), made.prompt("q")), 0)
    with pytest.raises(StageError, match="peer/a gave no answers that can be compared"):
        checked(Answers(tuple(tuple(range(n)) for n in lengths), seconds), call, 7)
    assert checked(Answers(((1,), (1, 2)), 1.0), call, 7).outputs == ((1,), (1, 2))
