"""This engine as a party of the benchmark."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from builder.api import EngineAnswer, EngineCounters, EngineSession, SpeculationMode
from builder.bench.measure import Answers, EngineWork


@dataclass(frozen=True)
class OwnParty:
    """An open engine session, timed around `generate`."""

    session: EngineSession

    def generate(self, prompts: Sequence[Sequence[int]], *, new_tokens: int, mode: str) -> Answers:
        before = self.session.counters()
        began = time.perf_counter()
        answers = self.session.generate(prompts, new_tokens=new_tokens, mode=cast("SpeculationMode", mode))
        seconds = time.perf_counter() - began
        work = _work(before, self.session.counters(), answers)
        return Answers(tuple(a.output_ids for a in answers), seconds, work)

    def close(self) -> None:
        self.session.close()


def _work(before: EngineCounters, after: EngineCounters, answers: Sequence[EngineAnswer]) -> EngineWork:
    step_s, infer_s = after.step_s - before.step_s, after.infer_s - before.infer_s
    return EngineWork(
        passes=after.passes - before.passes,
        python_s=step_s - infer_s,
        step_s=step_s,
        rounds=sum(a.rounds for a in answers),
        drafted_tokens=sum(a.drafted_tokens for a in answers),
        accepted_tokens=sum(a.accepted_tokens for a in answers),
        lookup_drafted_tokens=sum(a.lookup_drafted_tokens for a in answers),
        lookup_accepted_tokens=sum(a.lookup_accepted_tokens for a in answers),
    )
