"""Sample training text for the demo draft from its target, many sequences at once.

    python recipes/smollm2_draft/generate_text.py STATEFUL_IR.xml TARGET_DIR OUT.jsonl --minutes 20

STATEFUL_IR is the `model.xml` of a built CPU engine. Each line of OUT: {"prompt": ids, "answer": ids, "temperature": t}. Beside it,
OUT.hidden holds one float16 row per answer token, in the same order: the target's final hidden state that predicted the token. The
target's logits are the embedding matrix times that row, so that training needs no pass of the target.
"""

import argparse
import json
import random
import time
from collections import deque
from pathlib import Path

import numpy as np
import openvino as ov
import torch
from openvino import opset13 as op
from openvino._offline_transformations import paged_attention_transformation
from prompts import training_prompt
from transformers import AutoTokenizer

BLOCK_TOKENS = 32
BLOCKS_PER_SEQUENCE = 14
TEMPERATURES = (0.0, 0.5, 0.8, 0.8)


def load(ir: Path, sequences: int, threads: int) -> ov.InferRequest:
    model = ov.Core().read_model(ir)
    paged_attention_transformation(model)
    options = {"KV_CACHE_PRECISION": "u8", "INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32"}
    head = model.output("logits").get_node().input_value(0).get_node()
    while head.get_type_name() != "MatMul":
        head = head.input_value(0).get_node()
    hidden = op.result(head.input_value(0))
    hidden.output(0).get_tensor().set_names({"hidden"})
    model.add_results([hidden])
    compiled = ov.Core().compile_model(model, "CPU", options)
    request = compiled.create_infer_request()
    for port in compiled.inputs:
        if "cache" in port.any_name:
            rest = [d.get_length() for d in list(port.partial_shape)[1:]]
            request.set_tensor(port.any_name, ov.Tensor(port.element_type, ov.Shape([sequences * BLOCKS_PER_SEQUENCE, *rest])))
    return request


def forward(request: ov.InferRequest, batch: list[dict]) -> tuple[np.ndarray, np.ndarray]:
    """Logits [sequences, vocab] and hidden states [sequences, width] of each sequence's last fed token."""
    ids, positions, past, begins, table, table_begins = [], [], [], [0], [], [0]
    for s in batch:
        length = s["cached"] + len(s["feed"])
        ids += s["feed"]
        positions += range(s["cached"], length)
        past.append(s["cached"])
        begins.append(len(ids))
        table += s["blocks"][: -(-length // BLOCK_TOKENS)]
        table_begins.append(len(table))
        s["cached"] = length
    longest = max(s["cached"] for s in batch)
    for name, value, kind in (
        ("input_ids", ids, np.int64),
        ("position_ids", positions, np.int64),
        ("past_lens", past, np.int32),
        ("subsequence_begins", begins, np.int32),
        ("block_indices", table, np.int32),
        ("block_indices_begins", table_begins, np.int32),
        ("max_context_len", longest, np.int32),
    ):
        request.set_tensor(name, ov.Tensor(np.array(value, dtype=kind)))
    request.infer()
    last = np.array(begins[1:]) - 1
    return request.get_tensor("logits").data[:, 0][last], request.get_tensor("hidden").data.reshape(len(ids), -1)[last]


def sample(logits: np.ndarray, temperatures: torch.Tensor) -> list[int]:
    scores = torch.from_numpy(logits)
    greedy = scores.argmax(-1)
    cumulated = (scores / temperatures.clamp_min(0.1)[:, None]).softmax(-1).cumsum(-1)
    drawn = torch.searchsorted(cumulated, torch.rand(len(scores), 1) * cumulated[:, -1:]).clamp_max(scores.shape[1] - 1)[:, 0]
    return torch.where(temperatures > 0, drawn, greedy).tolist()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ir", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--sequences", type=int, default=64)
    parser.add_argument("--new-tokens", type=int, default=160)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--invented", type=float, default=0.8, help="share of texts in prompts that are invented, not the target's own")
    parser.add_argument("--seed", type=int, default=11)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    rng = random.Random(args.seed)
    tokenizer = AutoTokenizer.from_pretrained(args.target)
    request = load(args.ir, args.sequences, args.threads)
    passages: deque[str] = deque(maxlen=4000)

    def start(slot: int) -> dict:
        while True:
            text = training_prompt(rng, passages, args.invented)
            chat = tokenizer.apply_chat_template([{"role": "user", "content": text}], tokenize=False, add_generation_prompt=True)
            prompt = tokenizer(chat, add_special_tokens=False)["input_ids"]
            if len(prompt) < BLOCKS_PER_SEQUENCE * BLOCK_TOKENS - args.new_tokens - 8:
                break
        blocks = list(range(slot * BLOCKS_PER_SEQUENCE, (slot + 1) * BLOCKS_PER_SEQUENCE))
        return {"prompt": prompt, "answer": [], "hidden": [], "cached": 0, "feed": prompt, "blocks": blocks, "t": rng.choice(TEMPERATURES)}

    batch = [start(slot) for slot in range(args.sequences)]
    began, written, next_report = time.monotonic(), 0, 50_000
    with args.out.open("w") as out, args.out.with_suffix(".hidden").open("wb") as states:
        while time.monotonic() - began < args.minutes * 60:
            temperatures = torch.tensor([s["t"] for s in batch])
            logits, hidden = forward(request, batch)
            for slot, token in enumerate(sample(logits, temperatures)):
                s = batch[slot]
                s["answer"].append(token)
                s["hidden"].append(hidden[slot].astype(np.float16))
                s["feed"] = [token]
                if token == tokenizer.eos_token_id or len(s["answer"]) >= args.new_tokens:
                    out.write(json.dumps({"prompt": s["prompt"], "answer": s["answer"], "temperature": s["t"]}) + "\n")
                    states.write(np.stack(s["hidden"]).tobytes())
                    written += len(s["answer"])
                    if s["t"] > 0 and 60 <= len(s["prompt"]) + len(s["answer"]) < 200 and token == tokenizer.eos_token_id:
                        text = tokenizer.decode(s["answer"], skip_special_tokens=True).strip()
                        if 150 < len(text) < 500:
                            passages.append(text)
                    batch[slot] = start(slot)
            if written > next_report:
                next_report += 50_000
                print(f"{written} tokens, {written / (time.monotonic() - began):.0f} tok/s, {len(passages)} passages", flush=True)


if __name__ == "__main__":
    main()
