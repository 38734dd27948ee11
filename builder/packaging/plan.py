"""What packaging is told: a typed plan."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True)
class PackagePlan:
    """Everything the model repository says. Counts are tokens or sequences, folders absolute and final.

    `installed_at` is where the repository will lie when it is served, if that is not the folder it is written to. `end_ids` None: those of
    the target's record. `vocab_size` (the target's), `tokens_per_block`, the two `kv_cache` (TensorRT-LLM's `kv_cache_quant_algo`, "" for
    none) are what the plan expects of the engines; None: whatever their records say. `sources` is the folder of the package `triton_repo`,
    None: the installed one.
    """

    target_engine_dir: Path
    tokenizer_dir: Path
    max_batch_size: int
    num_draft_tokens: int
    target_pool_tokens: int
    draft_engine_dir: Path | None = None
    draft_pool_tokens: int = 0
    lookup: bool = True
    adaptive: bool = True
    reuse: bool = True
    add_special_tokens: bool = True
    max_concurrent_requests: int = 32
    max_input_tokens: int | None = None
    max_queue_delay_us: int = 0
    host_offload_bytes: int = 0
    logits_data_type: Literal["FP32", "FP16"] = "FP32"
    vocab_size: int | None = None
    tokens_per_block: int | None = None
    target_kv_cache: str | None = None
    draft_kv_cache: str | None = None
    end_ids: tuple[int, ...] | None = None
    installed_at: Path | None = None
    sources: Path | None = None

    @property
    def installed_tokenizer(self) -> Path:
        """Where the served models find the tokenizer. Needs `installed_at`."""
        assert self.installed_at is not None
        return self.installed_at / "preprocessing" / "1" / "tokenizer"
