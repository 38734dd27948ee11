"""transformers in bfloat16: `generate`, plain and with its prompt lookup."""

from typing import Any

import torch
from protocol import Ids, serve
from transformers import AutoModelForCausalLM, __version__
from transformers.utils.logging import set_verbosity_error


class TransformersPeer:
    def load(self, settings: dict[str, Any]) -> dict[str, str]:
        set_verbosity_error()
        torch.set_num_threads(settings["threads"])
        self.end_ids = settings["end_ids"]
        self.model = AutoModelForCausalLM.from_pretrained(settings["target"], dtype=torch.bfloat16).eval()
        attention = self.model.config._attn_implementation  # noqa: SLF001 - the only place that says it
        return {"version": f"transformers {__version__}, torch {torch.__version__}", "precision": "bf16", "attention": attention}

    def generate(self, prompts: list[Ids], new_tokens: int, mode: str) -> list[Ids]:
        lookup = {} if mode == "plain" else {"prompt_lookup_num_tokens": int(mode.removeprefix("lookup_"))}
        return [self._answer(ids, new_tokens, lookup) for ids in prompts]

    def _answer(self, ids: Ids, new_tokens: int, lookup: dict[str, int]) -> Ids:
        inputs = torch.tensor([ids])
        with torch.inference_mode():
            out = self.model.generate(
                inputs,
                attention_mask=torch.ones_like(inputs),
                max_new_tokens=new_tokens,
                do_sample=False,
                eos_token_id=self.end_ids or None,
                pad_token_id=self.end_ids[0] if self.end_ids else 0,
                **lookup,
            )
        return list(out[0, len(ids) :].tolist())


if __name__ == "__main__":
    serve(TransformersPeer())
