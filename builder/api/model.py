"""A checkpoint as a lane sees it: sizes that decide memory and time, and how its numbers are stored."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class ModelShape:
    """Sizes of a decoder-only model, in numbers, not bytes.

    `parameters` counts every weight once; `embedding_parameters` the input embedding, of which a token reads one row; `active_parameters`
    what one token multiplies with: all but the input embedding (the output layer always counts, also when it is the same tensor) and the
    experts it is not sent to. `kv_lora_rank` above 0 means multi-head latent attention: one latent row of `kv_lora_rank + rope_head_dim`
    numbers is cached in place of keys and values.
    """

    parameters: int
    layers: int
    kv_heads: int
    head_dim: int
    heads: int = 0
    hidden_size: int = 0
    intermediate_size: int = 0
    vocab_size: int = 0
    max_positions: int = 0
    embedding_parameters: int = 0
    active_parameters: int = 0
    tied_head: bool = False
    experts: int = 0
    experts_per_token: int = 0
    kv_lora_rank: int = 0
    rope_head_dim: int = 0

    @property
    def kv_numbers_per_token(self) -> int:
        """Numbers that one token adds to the cache of all layers: keys and values, or the latent row of MLA."""
        if self.kv_lora_rank:
            return self.layers * (self.kv_lora_rank + self.rope_head_dim)
        return 2 * self.layers * self.kv_heads * self.head_dim


@dataclass(frozen=True)
class StoredFormat:
    """How a checkpoint stores its weights, and what it says of its cache.

    `kind` is huggingface, modelopt, tensorrt_llm, tensorrt_llm_engine or gguf; `weights` and `kv_cache` are TensorRT-LLM's words
    (`quant_algo` and `kv_cache_quant_algo`), "" for none. `kv_scales` is the state of the stored cache scales: "" when none are due,
    else good, absent, all_one, zero, nan.
    """

    kind: str = "huggingface"
    weights: str = ""
    kv_cache: str = ""
    kv_scales: str = ""
    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    release: str = ""
    details: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ModelFacts:
    """One checkpoint of a pair: where it is, its configuration file's content, sizes and storage."""

    path: Path
    config: Mapping[str, object]
    shape: ModelShape
    stored: StoredFormat = StoredFormat()
