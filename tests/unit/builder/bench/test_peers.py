"""Peers as they may behave: well, badly, not at all."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from builder.bench.peers import PeerPlace, PeerProcess, require_installed
from builder.errors import MissingError, StageError

MakePeer = Callable[..., PeerPlace]
Start = Callable[..., PeerProcess]
ANSWERS = "import sys\nfor line in sys.stdin:\n    print({answer!r}, flush=True)\n"


@pytest.fixture
def start(make_peer: MakePeer, tmp_path: Path) -> Iterator[Start]:
    """Starts a peer with this script; it is ended after the test."""
    with ExitStack() as stack:

        def run(*script: str, **options: Any) -> PeerProcess:
            peer = PeerProcess(make_peer("fake", *script), tmp_path / "log", {}, **options)
            stack.callback(peer.close)
            return peer

        yield run


def test_good_peer_answers_and_prints_of_libraries_do_not_matter(start: Start, tmp_path: Path) -> None:
    peer = start()
    assert peer.load({"end_ids": [2]}) == {"version": "fake 1", "end_ids": "[2]"}
    answers = peer.generate([[5, 6], [9]], new_tokens=3, mode="plain")
    assert answers.outputs == ((6, 7, 8), (9, 10, 11))
    assert 0 < answers.seconds < 10
    assert answers.work is None
    assert "a library that prints" in (tmp_path / "log").read_text()


def test_failure_inside_a_peer_is_told_and_the_peer_lives_on(start: Start) -> None:
    peer = start()
    with pytest.raises(StageError, match="fake ValueError: mode bad") as caught:
        peer.generate([[1]], new_tokens=1, mode="bad")
    assert caught.value.finding.code == "BENCH-PEER-FAILED"
    assert peer.generate([[1]], new_tokens=1, mode="plain").outputs == ((1,),)


def test_peer_that_dies_is_told_with_its_last_words(start: Start) -> None:
    peer = start("import sys\nsys.stdin.readline()\nsys.stderr.write('no more\\n')\nsys.exit(7)\n")
    with pytest.raises(StageError, match="fake ended with exit code 7") as caught:
        peer.load({})
    assert caught.value.last_lines == ("no more",)
    with pytest.raises(StageError, match="ended with exit code 7"):
        peer.generate([[1]], new_tokens=1, mode="plain")


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ("nonsense", "fake answered with no JSON: nonsense"),
        ("[1]", "fake answered with no object"),
        ('{"seconds": 1.0}', "fake answered without outputs"),
        ('{"outputs": [["a"]], "seconds": 1.0}', "fake answered with outputs that are no token ids"),
        ('{"outputs": [[1]], "seconds": "soon"}', "fake answered without seconds"),
        ('{"outputs": [[1]], "seconds": true}', "fake answered without seconds"),
    ],
)
def test_nonsense_is_refused(start: Start, answer: str, sentence: str) -> None:
    with pytest.raises(StageError, match=sentence) as caught:
        start(ANSWERS.format(answer=answer)).generate([[1]], new_tokens=1, mode="plain")
    assert caught.value.finding.code == "BENCH-PEER-ANSWER"


def test_peer_that_hangs_is_killed_at_its_deadline(start: Start) -> None:
    peer = start("import time\ntime.sleep(600)\n", call_deadline_s=0.2)
    with pytest.raises(StageError, match=r"fake did not answer within 0\.2 s"):
        peer.generate([[1]], new_tokens=1, mode="plain")
    with pytest.raises(StageError, match="ended with signal 9"):
        peer.generate([[1]], new_tokens=1, mode="plain")


def test_close_ends_a_peer_that_does_not_listen(make_peer: MakePeer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("builder.bench.peers.CLOSE_DEADLINE_S", 0.2)
    peer = PeerProcess(make_peer("deaf", "import time\ntime.sleep(600)\n"), tmp_path / "log", {})
    began = time.monotonic()
    peer.close()
    assert time.monotonic() - began < 30, "it was not waited for"
    peer.close()


def test_what_is_missing_is_named_with_the_way_out(make_peer: MakePeer, tmp_path: Path) -> None:
    source = {"target": "abc"}
    place = make_peer("fake", source=json.dumps(source))
    require_installed(place, source, "make bench-peers")
    with pytest.raises(MissingError, match="or from other checkpoints") as caught:
        require_installed(place, {"target": "other"}, "make bench-peers")
    assert caught.value.finding.fix == "make bench-peers"
    place.python.unlink()
    with pytest.raises(MissingError, match="its environment is not installed"):
        require_installed(place, source, "make bench-peers")
    with pytest.raises(MissingError, match=r"peer\.py is not there"):
        require_installed(PeerPlace("none", tmp_path / "none", tmp_path / "none"), source, "make bench-peers")
