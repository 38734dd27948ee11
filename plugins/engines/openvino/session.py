"""Built engines run in this process, as the core's benchmark wants them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from builder.api import EngineAnswer, EngineCounters, EngineOptions, RefusedError, SpeculationMode, StageError
from plugins.engines.openvino.record import TOKENIZER_FOLDER
from plugins.engines.openvino.runtime.llm import Engine
from plugins.engines.openvino.runtime.request import NO_SPECULATION, Request, RequestError, Result, Speculation


class OpenVinoSession:
    """One loaded target, with its draft in the same process when there is one."""

    def __init__(self, engine: Engine, tokenizer: Any, *, has_draft: bool, max_draft_tokens: int) -> None:
        self._engine = engine
        self._tokenizer = tokenizer
        self._has_draft = has_draft
        self._max_draft_tokens = max_draft_tokens

    @classmethod
    def open(cls, target_dir: Path, draft_dir: Path | None, options: EngineOptions) -> "OpenVinoSession":
        """Compile both engines and read the target's tokenizer."""
        from transformers import AutoTokenizer

        engine = Engine.load(
            target_dir,
            draft_dir,
            max_cached_tokens=options.max_cached_tokens,
            threads=options.threads,
            reuse=options.reuse,
            tuned_for=options.tuned_for,
        )
        most = engine.record.max_draft_tokens if options.max_draft_tokens is None else options.max_draft_tokens
        tokenizer = AutoTokenizer.from_pretrained(target_dir / TOKENIZER_FOLDER)
        return cls(engine, tokenizer, has_draft=draft_dir is not None, max_draft_tokens=most)

    @property
    def end_ids(self) -> tuple[int, ...]:
        return self._engine.record.end_ids

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        return [self._encode(text) for text in texts]

    def _encode(self, text: str) -> list[int]:
        if not self._tokenizer.chat_template:
            return list(self._tokenizer.encode(text))
        message = [{"role": "user", "content": text}]
        whole = self._tokenizer.apply_chat_template(message, tokenize=False, add_generation_prompt=True)
        return list(self._tokenizer.encode(whole, add_special_tokens=False))

    def generate(self, prompts: Sequence[Sequence[int]], *, new_tokens: int, mode: SpeculationMode) -> list[EngineAnswer]:
        speculation = self._speculation(mode)
        requests = [Request(tuple(ids), new_tokens, end_ids=self.end_ids, speculation=speculation) for ids in prompts]
        return [_answer(result) for result in self._engine.generate(requests)]

    def _speculation(self, mode: SpeculationMode) -> Speculation:
        draft = mode in ("draft", "draft_lookup")
        if draft and not self._has_draft:
            raise RefusedError("ENGINE-NO-DRAFT", f"{mode} needs a draft engine", found="the target alone", needed="both engines")
        if mode == "plain":
            return NO_SPECULATION
        return Speculation(max_draft_tokens=self._max_draft_tokens, draft=draft, lookup=mode != "draft", adaptive=True)

    def counters(self) -> EngineCounters:
        counted = self._engine.counters()
        return EngineCounters(counted.passes, counted.infer_s, counted.step_s)

    def close(self) -> None:
        del self._engine


def _answer(result: Result | RequestError) -> EngineAnswer:
    if isinstance(result, RequestError):
        raise StageError("ENGINE-REQUEST", str(result), field=result.field, found=result.found, needed=result.needed)
    return EngineAnswer(
        result.output_ids,
        rounds=result.passes,
        drafted_tokens=result.drafted_tokens,
        accepted_tokens=result.accepted_tokens,
        lookup_drafted_tokens=result.lookup_drafted_tokens,
        lookup_accepted_tokens=result.lookup_accepted_tokens,
    )
