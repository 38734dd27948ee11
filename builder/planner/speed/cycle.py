"""Rates of a deployment, without drafts and with them: time of a request's prompt, and of the passes that make its answer."""

from collections.abc import Iterable
from dataclasses import dataclass

from builder.planner.speed.acceptance import acceptance_of, expected_length
from builder.planner.speed.constants import Overheads
from builder.planner.speed.model import Steps, StepTime
from builder.spec.model import WorkloadSpec

PROMPT_PASS_TOKENS = 8192
"""Most tokens of one pass."""

BATCH_PER_PROMPT_IN_A_PASS = 16
"""Prompts are read one by one at small loads, as the measured runs up to batch 16 show, and in full passes at saturation."""


@dataclass(frozen=True)
class Cycle:
    """k drafts and one verification, on `steps` with `overheads`, for requests of `workload`.

        T_cycle = T_verify + k (T_draft + od) + oc          S = T0 E / T_cycle

    and with the prompts' time: in flight, passes over prompts take turns with decode steps, so `batch` answers of n tokens take
    n T0 + batch P seconds without drafts, and n T_cycle / E + batch (P + P_draft) with them.
    """

    steps: Steps
    overheads: Overheads
    workload: WorkloadSpec
    prompt_pass_tokens: int = PROMPT_PASS_TOKENS

    @property
    def context_tokens(self) -> int:
        """Of a sequence half-way through its answer."""
        return self.workload.input_tokens + self.workload.output_tokens // 2

    def target_s(self, batch: int) -> float:
        return self.verify_s(batch, 0)

    def verify_s(self, batch: int, draft_tokens: int) -> float:
        """Verification of every sequence, in as many passes as its tokens need."""
        passes = -(-batch * (draft_tokens + 1) // self.prompt_pass_tokens)
        return passes * self.steps.target.decode_s(-(-batch // passes), self.context_tokens, draft_tokens + 1)

    def draft_s(self, batch: int) -> float:
        """One draft step's kernels; nothing where drafts are looked up."""
        return self.steps.draft.decode_s(batch, self.context_tokens) if self.steps.draft else 0.0

    def cycle_s(self, batch: int, draft_tokens: int) -> float:
        """Never shorter than its verification, whatever the overheads are."""
        overheads_s = draft_tokens * self.overheads.draft_step_s + self.overheads.cycle_s
        return max(self.verify_s(batch, draft_tokens), self.kernels_s(batch, draft_tokens) + overheads_s)

    def kernels_s(self, batch: int, draft_tokens: int) -> float:
        """Drafts and their verification."""
        return self.verify_s(batch, draft_tokens) + draft_tokens * self.draft_s(batch)

    def plain_tokens_per_s(self, batch: int) -> float:
        answer = self.workload.output_tokens
        return batch * answer / (answer * self.target_s(batch) + batch * self.prompt_s(batch, 0, drafts=False))

    def speculative_tokens_per_s(self, batch: int, draft_tokens: int, acceptance: float) -> float:
        answer = self.workload.output_tokens
        cycles = answer / expected_length(acceptance, draft_tokens)
        return batch * answer / (cycles * self.cycle_s(batch, draft_tokens) + batch * self.prompt_s(batch, draft_tokens, drafts=True))

    def speedup(self, batch: int, draft_tokens: int, acceptance: float) -> float:
        return self.speculative_tokens_per_s(batch, draft_tokens, acceptance) / self.plain_tokens_per_s(batch)

    def best_draft_tokens(self, batch: int, acceptance: float, choices: Iterable[int]) -> int:
        """The draft length with the highest rate; of equal ones the shortest."""
        return max(sorted(choices), key=lambda k: self.speculative_tokens_per_s(batch, k, acceptance))

    def break_even_acceptance(self, batch: int, draft_tokens: int) -> float | None:
        """The acceptance above which drafting wins: E must be T_cycle / T0, with T0 less the draft's share of the prompt."""
        prompts_s = self.prompt_s(batch, draft_tokens, drafts=True) - self.prompt_s(batch, 0, drafts=False)
        extra_s = batch * prompts_s / self.workload.output_tokens
        gained_s = self.target_s(batch) - extra_s
        return acceptance_of(self.cycle_s(batch, draft_tokens) / gained_s, draft_tokens) if gained_s > 0 else None

    def prompt_room(self, batch: int, draft_tokens: int) -> int:
        """Tokens that a pass has left for prompts while `batch` sequences are verified; 0 or less: none."""
        return self.prompt_pass_tokens - batch * (draft_tokens + 1)

    def prompt_s(self, batch: int, draft_tokens: int, *, drafts: bool) -> float:
        """A prompt's share of passes over prompts, each of what verification leaves; with nothing left they wait for a whole one.

        A prompt comes in when an answer ends, and answers that began in one pass tend to end together.
        """
        tokens, room = self.workload.input_tokens, self.prompt_room(batch, draft_tokens)
        room = room if room > 0 else self.prompt_pass_tokens
        together = max(1, min(batch // BATCH_PER_PROMPT_IN_A_PASS, room // tokens))
        models = [self.steps.target] + ([self.steps.draft] if drafts and self.steps.draft else [])
        return sum(_prompt_s(model, together, tokens, room) for model in models) / together


def _prompt_s(model: StepTime, together: int, tokens: int, room: int) -> float:
    """One pass, or as many as the room asks for; in pieces it cannot be faster than in one."""
    whole_s = model.prefill_s(together, tokens)
    return whole_s if tokens <= room else max(whole_s, -(-tokens // room) * model.prefill_s(1, room))
