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


def main() -> None:
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
    args = parser.parse_args()
    history: list[dict] = []
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    rng = random.Random(args.seed)

    target = AutoModelForCausalLM.from_pretrained(args.target, dtype=torch.bfloat16).eval()
    draft = make_draft(target, [int(i) for i in args.layers.split(",")])
    if args.start_from:
        draft.load_state_dict({k: v.float() for k, v in load_file(args.start_from).items() if k.startswith("model.")}, strict=False)
        history = json.loads(args.start_from.with_suffix(".json").read_text())["history"]
    head = target.lm_head.weight.detach().clone()
    del target
    samples = [s for text in args.text for s in read_samples(text, head.shape[1])]
    greedy = [s for s in samples if s.greedy]
    held_out = greedy[-HELD_OUT:]
    kept_out = {id(s) for s in held_out}
    training = [s for s in samples if id(s) not in kept_out]
    head_ids = frequent_ids(samples, args.head_ids, [0, 1, 2])
    kept_head = head[head_ids.long()]
    size = sum(len(s.ids) - s.begin for s in training)
    print(f"{len(training)} samples, {size} answer tokens, head of {len(head_ids)} ids", flush=True)

    trained = [p for p in draft.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=args.learning_rate, betas=(0.9, 0.98), weight_decay=0.01)
    began, last_report, step, tokens = time.monotonic(), 0.0, 0, 0
    epoch: list[list[Sample]] = []
    draft.train()
    while True:
        passed = (time.monotonic() - began) / (args.minutes * 60 + 1e-9)
        if passed >= 1:
            break
        if not epoch:
            epoch = batches(training, args.tokens, rng)
        batch = epoch.pop()
        for group in optimizer.param_groups:
            group["lr"] = args.learning_rate * min(1, (step + 1) / 50) * (0.02 + 0.98 * (0.5 + 0.5 * math.cos(math.pi * passed)))
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = loss_of(draft, batch, kept_head, args.argmax_share)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        step += 1
        tokens += sum(len(s.ids) - s.begin for s in batch)
        if time.monotonic() - last_report > 240:
            last_report = time.monotonic()
            history.append(
                {
                    "minutes": round((last_report - began) / 60, 1),
                    "tokens": tokens,
                    "acceptance": acceptance(draft, held_out, kept_head, head_ids),
                }
            )
            print(f"step {step} loss {loss.item():.3f} {history[-1]}", flush=True)
            save(draft, head_ids, args.out, {"seed": args.seed, "layers": args.layers, "answer_tokens": size, "history": history})
    history.append({"minutes": args.minutes, "tokens": tokens, "acceptance": acceptance(draft, held_out, kept_head, head_ids)})
    print(history[-1], flush=True)
    save(draft, head_ids, args.out, {"seed": args.seed, "layers": args.layers, "answer_tokens": size, "history": history})


if __name__ == "__main__":
    main()
