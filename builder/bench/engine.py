"""The whole benchmark of one built pair: open, warm up, measure, compare."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from builder.api import Engine, EngineOptions, EngineSession, Progress
from builder.bench.measure import Party, Run, measure, warm_up
from builder.bench.order import BenchPrompt, count_calls, run_order
from builder.bench.own import OwnParty
from builder.bench.peers import PeerPlace, PeerProcess, require_installed
from builder.bench.report import BenchReport, BenchSettings, make_report
from builder.bench.systems import CONCURRENT, OURS, PEERS, SINGLE, TUNED_FOR, with_draft
from builder.errors import MissingError, RefusedError, StageError, TandemError
from builder.gates.prompts import Prompt, spread_over_kinds
from builder.report.machine import machine_facts

INSTALL = "make bench-peers"


@dataclass(frozen=True)
class PairUnderTest:
    """A built pair: its folders and digests of its checkpoints by role, limits in tokens, and what a reader should know of it."""

    name: str
    engines: Mapping[str, Path]
    checkpoints: Mapping[str, Path]
    digests: Mapping[str, str]
    max_sequence_tokens: int
    max_draft_tokens: int
    facts: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_draft(self) -> bool:
        return "draft" in self.engines


@dataclass(frozen=True)
class PeersAt:
    """Where peers lie, their models for this pair, and where they log."""

    folder: Path
    models: Path
    logs: Path


@dataclass
class _Opened:
    parties: dict[str, Party] = field(default_factory=dict)
    absent: dict[str, TandemError] = field(default_factory=dict)
    facts: dict[str, Mapping[str, str]] = field(default_factory=dict)


def open_sessions(engine: Engine, pair: PairUnderTest, settings: BenchSettings) -> dict[str, EngineSession]:
    """This engine in this process, once for each party. Raises RefusedError ENGINE-NO-SESSION for a lane that only a server can run."""
    opener = getattr(engine, "open", None)
    if opener is None:
        message = f"the engine plug-in {engine.kind} cannot run an engine outside the server"
        raise RefusedError(
            "ENGINE-NO-SESSION", message, field="engine.kind", found=engine.kind, needed="a lane that can", fix="tandem validate"
        )
    common = EngineOptions(threads=settings.threads, max_draft_tokens=pair.max_draft_tokens, reuse=False)
    folders = pair.engines["target"], pair.engines.get("draft")
    return {party: opener(*folders, replace(common, tuned_for=tuned_for)) for party, tuned_for in TUNED_FOR.items()}


def bench_prompts(session: EngineSession, prompts: Sequence[Prompt], pair: PairUnderTest, settings: BenchSettings) -> list[BenchPrompt]:
    """The same number of prompts of each kind, encoded once. Raises RefusedError BENCH-PROMPT-LONG when one does not fit."""
    kinds = len({p.kind for p in prompts})
    chosen = spread_over_kinds(prompts, kinds * settings.prompts_per_kind)
    encoded = [BenchPrompt(p, tuple(ids)) for p, ids in zip(chosen, session.encode([p.text for p in chosen]), strict=True)]
    most = pair.max_sequence_tokens - settings.new_tokens
    for prompt in encoded:
        if len(prompt.ids) > most:
            message = f"the prompt {prompt.prompt.id} and its answer do not fit the engine's sequences"
            found, needed = f"{len(prompt.ids)} tokens", f"at most {most}"
            raise RefusedError("BENCH-PROMPT-LONG", message, found=found, needed=needed, fix="a shorter prompt, or fewer --new-tokens")
    return encoded


def run_bench(
    sessions: Mapping[str, EngineSession],
    prompts: Sequence[BenchPrompt],
    pair: PairUnderTest,
    peers: PeersAt,
    settings: BenchSettings,
    progress: Progress,
    *,
    command: str,
) -> BenchReport:
    """Everything measured in one run, all parties alive. Raises StageError when this engine fails; peers may."""
    single, concurrent = (with_draft(systems, has_draft=pair.has_draft) for systems in (SINGLE, CONCURRENT))
    size = {"repeats": settings.repeats, "concurrency": settings.concurrency}
    run = Run()
    with _parties(sessions, pair, peers, settings, progress) as opened:
        progress("warming up", None)
        warm_up(opened.parties, single, concurrent, prompts, settings.concurrency, run)
        calls = run_order(single, concurrent, prompts, **size)
        total = count_calls(single, concurrent, len(prompts), **size)
        measure(opened.parties, calls, run, new_tokens=settings.new_tokens, total=total, progress=progress)
    return make_report(
        run,
        opened.absent,
        name=pair.name,
        settings=settings,
        single=single,
        concurrent=concurrent,
        machine=machine_facts(),
        facts={OURS: pair.facts, **opened.facts},
        command=command,
    )


@contextmanager
def _parties(
    sessions: Mapping[str, EngineSession], pair: PairUnderTest, peers: PeersAt, settings: BenchSettings, progress: Progress
) -> Iterator[_Opened]:
    """This engine and every peer that can be had; peers are gone afterwards."""
    opened = _Opened({party: OwnParty(session) for party, session in sessions.items()})
    with ExitStack() as stack:
        for name in PEERS:
            progress(f"starting {name}", None)
            place = PeerPlace(name, peers.folder / name, peers.models / name)
            try:
                require_installed(place, pair.digests, INSTALL)
                peer = PeerProcess(place, peers.logs / f"bench-{name}.log", _environment(settings.threads))
                stack.callback(peer.close)
                opened.facts[name] = peer.load(_load_settings(sessions[OURS], pair, place, settings))
                opened.parties[name] = peer
            except (MissingError, StageError) as error:
                opened.absent[name] = error
        yield opened


def _environment(threads: int) -> dict[str, str]:
    return {"OMP_NUM_THREADS": str(threads), "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1", "OPENVINO_TELEMETRY": "0"}


def _load_settings(session: EngineSession, pair: PairUnderTest, place: PeerPlace, settings: BenchSettings) -> dict[str, Any]:
    return {
        **{role: str(path) for role, path in pair.checkpoints.items()},
        "models": str(place.models),
        "threads": settings.threads,
        "end_ids": list(session.end_ids),
        "max_tokens": pair.max_sequence_tokens,
        "batch": settings.concurrency,
    }
