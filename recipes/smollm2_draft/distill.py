"""Train the demo draft: a few layers, the target's own embedding and head, the target's outputs as teacher.

    python recipes/smollm2_draft/distill.py TARGET_DIR OUT.safetensors TEXT.jsonl [TEXT.jsonl ...] --minutes 60

TEXT.jsonl and TEXT.hidden come from generate_text.py. Layers start as copies of the target's layers 0, 1, 27 and 28 (the last one
only works on the full residual stream: starting from it gives a far higher first loss). The loss is the cross entropy to the target's
distribution plus a share of the cross entropy to its most likely token, over the token ids that answers use most: the only ones that the
draft's head keeps. OUT holds the trained layers and the final norm in bfloat16, and those ids; OUT.json the acceptance measured on
held-out greedy answers.
"""

import argparse
import json
import math
import random
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch.nn import functional
from transformers import AutoModelForCausalLM

HELD_OUT = 60
REPORT_S = 240


@dataclass(frozen=True)
class Sample:
    """One answer: all token ids, where the answer begins, and the teacher's hidden state for each answer token."""

    ids: list[int]
    begin: int
    hidden: np.ndarray
    greedy: bool


def read_samples(text: Path, width: int) -> list[Sample]:
    states = np.memmap(text.with_suffix(".hidden"), dtype=np.float16, mode="r")
    rows = states[: len(states) // width * width].reshape(-1, width)
    samples, row = [], 0
    for line in text.read_text().splitlines():
        try:
            record = json.loads(line)
        except json.JSONDecodeError:
            break
        end = row + len(record["answer"])
        if end > len(rows):
            break
        ids = record["prompt"] + record["answer"]
        samples.append(Sample(ids, len(record["prompt"]), rows[row:end], record["temperature"] == 0))
        row = end
    return samples


def make_draft(target: torch.nn.Module, layers: list[int]) -> torch.nn.Module:
    config = type(target.config)(**{**target.config.to_dict(), "num_hidden_layers": len(layers)})
    draft = type(target)(config).float()
    weights = {k: v.float() for k, v in target.state_dict().items() if ".layers." not in k}
    for new, old in enumerate(layers):
        prefix = f"model.layers.{old}."
        weights |= {k.replace(prefix, f"model.layers.{new}."): v.float() for k, v in target.state_dict().items() if k.startswith(prefix)}
    draft.load_state_dict(weights, strict=True)
    draft.tie_weights()
    draft.model.embed_tokens.weight.requires_grad_(False)
    return draft


def batches(samples: list[Sample], tokens: int, rng: random.Random) -> list[list[Sample]]:
    """Batches of samples of like length, about `tokens` tokens each, in random order: one epoch."""
    ordered = sorted(samples, key=lambda s: len(s.ids) + rng.random() * 24)
    result, batch, longest = [], [], 0
    for s in ordered:
        longest = max(longest, len(s.ids))
        batch.append(s)
        if longest * len(batch) >= tokens:
            result.append(batch)
            batch, longest = [], 0
    if batch:
        result.append(batch)
    rng.shuffle(result)
    return result


def draft_states(draft: torch.nn.Module, batch: list[Sample]) -> torch.Tensor:
    """The draft's final hidden state for each answer token [tokens, width]; right padding needs no mask under causal attention."""
    longest = max(len(s.ids) for s in batch)
    ids = torch.zeros(len(batch), longest, dtype=torch.long)
    for i, s in enumerate(batch):
        ids[i, : len(s.ids)] = torch.tensor(s.ids)
    states = draft.model(ids, use_cache=False)[0]
    return torch.cat([states[i, s.begin - 1 : len(s.ids) - 1] for i, s in enumerate(batch)])


def loss_of(draft: torch.nn.Module, batch: list[Sample], head: torch.Tensor, argmax_share: float) -> torch.Tensor:
    student = (draft_states(draft, batch) @ head.t()).float().log_softmax(-1)
    with torch.no_grad():
        teacher = torch.from_numpy(np.concatenate([s.hidden for s in batch])).to(head.dtype) @ head.t()
        probabilities = teacher.float().softmax(-1)
        best = probabilities.argmax(-1)
    soft = -(probabilities * student).sum(-1).mean()
    return soft + argmax_share * functional.nll_loss(student, best)


@torch.inference_mode()
def acceptance(draft: torch.nn.Module, samples: list[Sample], head: torch.Tensor, head_ids: torch.Tensor) -> float:
    """Share of greedy answer tokens that the draft's most likely token hits."""
    draft.eval()
    hits = total = 0
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for start in range(0, len(samples), 8):
            batch = samples[start : start + 8]
            best = head_ids[(draft_states(draft, batch) @ head.t()).argmax(-1)]
            wanted = torch.cat([torch.tensor(s.ids[s.begin :]) for s in batch])
            hits += int((best == wanted).sum())
            total += len(wanted)
    draft.train()
    return hits / total


def frequent_ids(samples: list[Sample], count: int, always: list[int]) -> torch.Tensor:
    """The token ids that answers use most, ascending: the rows of the head that the draft needs."""
    occurrences = np.bincount(np.concatenate([s.ids[s.begin :] for s in samples]))
    ranked = [i for i in np.argsort(-occurrences, kind="stable")[:count].tolist() if occurrences[i]]
    return torch.tensor(sorted({*ranked, *always}), dtype=torch.int32)


def save(draft: torch.nn.Module, head_ids: torch.Tensor, out: Path, report: dict) -> None:
    trained = {k: v.to(torch.bfloat16).contiguous() for k, v in draft.state_dict().items() if ".layers." in k or k == "model.norm.weight"}
    trained["head_token_ids"] = head_ids
    temporary = out.with_suffix(".partial")
    save_file(trained, temporary, metadata={"format": "pt", "report": json.dumps(report, sort_keys=True)})
    temporary.replace(out)
    out.with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n")


@dataclass(frozen=True)
class Data:
    """Samples to train on, answers to measure on, and the rows of the head that the draft keeps."""

    training: list[Sample]
    held_out: list[Sample]
    head: torch.Tensor
    head_ids: torch.Tensor

    @property
    def answer_tokens(self) -> int:
        return sum(len(s.ids) - s.begin for s in self.training)


def prepare(texts: list[Path], head: torch.Tensor, kept_ids: int) -> Data:
    """Read the texts; the last greedy answers are held out, with every sample that has one of their prompts."""
    samples = [s for text in texts for s in read_samples(text, head.shape[1])]
    held_out = [s for s in samples if s.greedy][-HELD_OUT:]
    prompts = {tuple(s.ids[: s.begin]) for s in held_out}
    training = [s for s in samples if tuple(s.ids[: s.begin]) not in prompts]
    head_ids = frequent_ids(samples, kept_ids, [0, 1, 2])
    return Data(training, held_out, head[head_ids.long()], head_ids)


def train(draft: torch.nn.Module, data: Data, args: argparse.Namespace, history: list[dict]) -> None:
    """Train for `args.minutes`, with a learning rate that falls along a cosine; measure and save every few minutes and at the end."""
    weights = [p for p in draft.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(weights, lr=args.learning_rate, betas=(0.9, 0.98), weight_decay=0.01)
    rng = random.Random(args.seed)
    began, last_report_s, step, tokens = time.monotonic(), 0.0, 0, 0
    epoch: list[list[Sample]] = []

    def report() -> None:
        rate = acceptance(draft, data.held_out, data.head, data.head_ids)
        history.append({"minutes": round((time.monotonic() - began) / 60, 1), "tokens": tokens, "acceptance": round(rate, 4)})
        print(f"step {step} {history[-1]}", flush=True)
        about = {"seed": args.seed, "layers": args.layers, "answer_tokens": data.answer_tokens, "history": history}
        save(draft, data.head_ids, args.out, about)

    draft.train()
    while (passed := (time.monotonic() - began) / (args.minutes * 60 + 1e-9)) < 1:
        epoch = epoch or batches(data.training, args.tokens, rng)
        batch = epoch.pop()
        for group in optimizer.param_groups:
            group["lr"] = args.learning_rate * min(1, (step + 1) / 50) * (0.02 + 0.98 * (0.5 + 0.5 * math.cos(math.pi * passed)))
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = loss_of(draft, batch, data.head, args.argmax_share)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        step += 1
        tokens += sum(len(s.ids) - s.begin for s in batch)
        if time.monotonic() - last_report_s > REPORT_S:
            report()
            last_report_s = time.monotonic()
    report()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("text", type=Path, nargs="+")
    parser.add_argument("--layers", default="0,1,27,28")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--tokens", type=int, default=1536, help="tokens in a step")
    parser.add_argument("--learning-rate", type=float, default=1.2e-3)
    parser.add_argument("--argmax-share", type=float, default=0.3)
    parser.add_argument("--head-ids", type=int, default=8192, help="most frequent token ids that the draft's head keeps")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--start-from", type=Path, help="continue from the layers of an earlier run")
    return parser.parse_args()


def main() -> None:
    args = arguments()
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    target = AutoModelForCausalLM.from_pretrained(args.target, dtype=torch.bfloat16).eval()
    draft = make_draft(target, [int(i) for i in args.layers.split(",")])
    history: list[dict] = []
    if args.start_from:
        draft.load_state_dict({k: v.float() for k, v in load_file(args.start_from).items() if k.startswith("model.")}, strict=False)
        history = json.loads(args.start_from.with_suffix(".json").read_text())["history"]
    data = prepare(args.text, target.lm_head.weight.detach().clone(), args.head_ids)
    del target
    print(f"{len(data.training)} samples, {data.answer_tokens} answer tokens, head of {len(data.head_ids)} ids", flush=True)
    train(draft, data, args, history)


if __name__ == "__main__":
    main()
