"""Acceptance of a built draft on the gate prompts: share of the target's greedy tokens that are the draft's most likely ones.

    python recipes/smollm2_draft/evaluate.py build/smollm2-135m-cpu/engines

The prompts of configs/gates/prompts.jsonl share neither subjects nor authors with the training text.
"""

import sys
from pathlib import Path

import numpy as np
from transformers import AutoTokenizer

from builder.gates.prompts import load_prompts
from plugins.engines.openvino.runtime.llm import Engine, Request

NEW_TOKENS = 128


def hits(target: Engine, draft: Engine, prompt: list[int]) -> np.ndarray:
    """For each token of the target's greedy answer, whether the draft would have proposed it."""
    answer = target.generate([Request(tuple(prompt), NEW_TOKENS, end_ids=target.record.end_ids)])[0].output_ids
    logits = draft.generate([Request((*prompt, *answer), 1, want_context_logits=True)])[0].context_logits
    return logits[len(prompt) - 1 : -1].argmax(-1) == np.array(answer)


def main() -> None:
    engines = Path(sys.argv[1])
    target, draft = Engine.load(engines / "target"), Engine.load(engines / "draft")
    tokenizer = AutoTokenizer.from_pretrained(engines / "target" / "tokenizer")
    kinds: dict[str, list[np.ndarray]] = {}
    for prompt in load_prompts():
        chat = tokenizer.apply_chat_template([{"role": "user", "content": prompt.text}], tokenize=False, add_generation_prompt=True)
        kinds.setdefault(prompt.kind, []).append(hits(target, draft, tokenizer(chat, add_special_tokens=False)["input_ids"]))
    for kind, found in kinds.items():
        print(f"{kind:<10} {np.concatenate(found).mean():.3f}")
    print(f"{'all':<10} {np.concatenate([h for found in kinds.values() for h in found]).mean():.3f}")


if __name__ == "__main__":
    main()
