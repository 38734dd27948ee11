"""Public models on chips, as the plan would describe them, and the measurements to hold predictions against."""

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from builder.api import ModelFacts, ModelShape
from builder.checkpoint.geometry import read_geometry
from builder.checkpoint.shape import shape_of
from builder.hardware.chips import find_chip
from builder.planner.speed import ModelOnChips

DATA = Path(__file__).parents[4] / "data"
WEIGHT_BYTES = {"none": 2.0, "fp8": 1.0, "nvfp4": 9 / 16, "int8": 1.0, "int4": 0.5}
KV_BYTES = {"fp32": 4.0, "bf16": 2.0, "fp8": 1.0, "int8": 1.0, "nvfp4": 9 / 16}
PUBLISHED = {
    "8B": "meta-llama/Llama-3.1-8B-Instruct",
    "70B": "meta-llama/Llama-3.3-70B-Instruct",
    "405B": "meta-llama/Llama-3.1-405B-Instruct",
}
TARGETS = {"llama70b": "meta-llama/Llama-3.3-70B-Instruct", "qwen": "Qwen/Qwen3-32B"}
DRAFTS = {"meta-llama/Llama-3.2-1B": "meta-llama/Llama-3.2-1B-Instruct"}


def facts_of(name: str) -> ModelFacts:
    """A model of tests/data/models."""
    folder = DATA / "models" / name
    config = json.loads((folder / "config.json").read_text())
    return ModelFacts(folder, config, shape_of(read_geometry(config), ()))


def on_chips(
    name: str, chip: str, *, weights: str = "fp8", kv_cache: str = "fp8", tensor_parallel: int = 1, role: str = "target"
) -> ModelOnChips:
    """The model with 16-bit embedding and output layer, its bytes shared out over the chips."""
    facts = facts_of(name)
    kv_bytes = facts.shape.kv_numbers_per_token * KV_BYTES[kv_cache] / min(tensor_parallel, facts.shape.kv_heads)
    weights_bytes = model_bytes(facts.shape, weights) / tensor_parallel
    return ModelOnChips(role, facts, weights, kv_cache, int(weights_bytes), int(kv_bytes), find_chip(chip), tensor_parallel)


def model_bytes(shape: ModelShape, weights: str) -> float:
    ends = shape.vocab_size * shape.hidden_size * (1 if shape.tied_head else 2)
    return (shape.parameters - ends) * WEIGHT_BYTES[weights] + 2.0 * ends


@dataclass(frozen=True)
class Published:
    """One row of the published throughput tables."""

    model: ModelOnChips
    input_tokens: int
    output_tokens: int
    tokens_per_s: float


def published_rows() -> Iterator[Published]:
    for row in _rows("trtllm-published-throughput.csv"):
        model = on_chips(PUBLISHED[row["model"]], row["system"], weights=row["precision"], tensor_parallel=int(row["tensor_parallel"]))
        yield Published(model, int(row["input_tokens"]), int(row["output_tokens"]), float(row["tokens_per_s"]))


@dataclass(frozen=True)
class Cell:
    """One measured run with drafts, and the speed-up over the run without at the same load."""

    pair: tuple[str, str]
    draft_tokens: int
    batch: int
    length: float
    tokens_per_s: float
    plain_tokens_per_s: float

    @property
    def speedup(self) -> float:
        return self.tokens_per_s / self.plain_tokens_per_s


def measured_cells() -> list[Cell]:
    rows = list(_rows("draft-target-h100-vllm.csv"))
    plain = {(r["analysis"], r["concurrency"]): float(r["output_token_throughput"]) for r in rows if r["sd_method"] == "None"}
    return [
        Cell(
            (r["analysis"], r["draft_model"]),
            int(r["num_spec_toks"]),
            int(r["concurrency"]),
            float(r["acceptance_length"]),
            float(r["output_token_throughput"]),
            plain[r["analysis"], r["concurrency"]],
        )
        for r in rows
        if r["sd_method"] == "draft_model"
    ]


def pair_on_chips(pair: tuple[str, str]) -> tuple[ModelOnChips, ModelOnChips]:
    """Target and draft of the measured runs: BF16 on H100, the 70B target over two of them."""
    analysis, draft = pair
    ways = 2 if analysis == "llama70b" else 1
    target = on_chips(TARGETS[analysis], "h100_sxm", weights="none", kv_cache="bf16", tensor_parallel=ways)
    drafted = on_chips(DRAFTS.get(draft, draft), "h100_sxm", weights="none", kv_cache="bf16", tensor_parallel=ways, role="draft")
    return target, drafted


def _rows(name: str) -> Iterator[dict[str, str]]:
    lines = (line for line in (DATA / name).read_text().splitlines() if not line.startswith("#"))
    return iter(csv.DictReader(lines))
