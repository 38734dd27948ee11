"""Running one prompt twice: by the target alone, and with speculation."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from builder.gates.prompts import Prompt
from builder.serving.client import Client
from builder.serving.generation import GenerateRequest, Generation


@dataclass(frozen=True)
class RunSettings:
    """How gates ask: greedy, `max_tokens` new tokens, each answer within `deadline_s`. None leaves the choice to the served model."""

    max_tokens: int
    deadline_s: float
    chat: bool | None
    num_draft_tokens: int | None
    lookup: bool | None


@dataclass(frozen=True)
class PairRun:
    """Both answers to one prompt."""

    prompt: Prompt
    target: Generation
    speculative: Generation


def run_pair(client: Client, prompt: Prompt, settings: RunSettings, *, target_first: bool = True) -> PairRun:
    """Both answers, one after the other. Raises what Client.generate raises."""
    base = GenerateRequest(prompt.text, settings.max_tokens, settings.deadline_s, chat=settings.chat)
    alone = replace(base, num_draft_tokens=0)
    speculative = replace(base, num_draft_tokens=settings.num_draft_tokens, lookup=settings.lookup)
    first, second = (alone, speculative) if target_first else (speculative, alone)
    answers = client.generate(first), client.generate(second)
    return PairRun(prompt, *(answers if target_first else answers[::-1]))


def by_kind(runs: Sequence[PairRun]) -> dict[str, list[PairRun]]:
    """Runs grouped by their prompt's kind, in order of appearance."""
    groups: dict[str, list[PairRun]] = {}
    for run in runs:
        groups.setdefault(run.prompt.kind, []).append(run)
    return groups
