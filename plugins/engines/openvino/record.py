"""The engine's own record, `config.json`, in the shape of TensorRT-LLM's so that packaging reads every lane's engines alike."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plugins.engines.openvino.kv_cache import PRECISIONS, bytes_per_token

FILE_NAME = "config.json"
MODEL_FILE = "model.xml"
TOKENIZER_FOLDER = "tokenizer"
TUNED_FOR = ("decoding", "long_context")
"""Attention row by row, for decode steps and many sequences at once; or over several rows of a sequence at once, for long prompts and for
verification behind many tokens. The first is the default."""
TOKENS_PER_BLOCK = 32
"""Block size of OpenVINO's paged attention on CPU; not configurable there."""
KV_POOL_LIMIT_BYTES = 4 << 30
"""Largest cache that an engine takes by itself; `max_tokens_in_paged_kv_cache` of the served model overrides it."""

_WEIGHT_ALGORITHMS = {"none": None, "int8": "W8A16", "int4": "W4A16"}


@dataclass(frozen=True)
class EngineRecord:
    """What one engine is and may be asked. `kv_cache` is OpenVINO's word, a key of `PRECISIONS`.

    `exact`: logits do not depend on how tokens are grouped into passes, so speculative greedy output equals plain greedy output.
    `tuned_for`: one of `TUNED_FOR`. `fixed_shapes`: whether models of fixed width are compiled for exactly so many rows.
    """

    role: str
    architecture: str
    model_type: str
    vocab_size: int
    hidden_size: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    max_position_tokens: int
    weights: str
    kv_cache: str
    max_batch_size: int
    max_input_tokens: int
    max_sequence_tokens: int
    max_batched_tokens: int
    max_draft_tokens: int
    exact: bool = True
    tuned_for: str = TUNED_FOR[0]
    fixed_shapes: bool = True
    tokens_per_block: int = TOKENS_PER_BLOCK
    end_ids: tuple[int, ...] = ()
    tokenizer_sha256: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def kv_bytes_per_token(self) -> int:
        """Bytes that one token takes in the cache, keys and values of all layers."""
        return bytes_per_token(self.kv_cache, self.layers, self.kv_heads, self.head_dim)

    @property
    def max_cached_tokens(self) -> int:
        """Size of the cache unless told otherwise, in tokens, a multiple of the block.

        max_batch_size * max_sequence_tokens, at most what fits in `KV_POOL_LIMIT_BYTES`, at least one sequence of full length.
        """
        wanted = self.max_batch_size * self.max_sequence_tokens
        bounded = max(min(wanted, KV_POOL_LIMIT_BYTES // self.kv_bytes_per_token), self.max_sequence_tokens)
        return -(-bounded // self.tokens_per_block) * self.tokens_per_block

    def as_json(self) -> dict[str, Any]:
        """The content of `config.json`."""
        return {
            "version": f"openvino-{self.versions.get('openvino', 'unknown')}",
            "pretrained_config": self._pretrained_config(),
            "build_config": self._build_config(),
            "tandem": self._tandem(),
        }

    def _pretrained_config(self) -> dict[str, Any]:
        return {
            "architecture": self.architecture,
            "model_type": self.model_type,
            "dtype": "float32",
            "vocab_size": self.vocab_size,
            "hidden_size": self.hidden_size,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads,
            "head_size": self.head_dim,
            "max_position_embeddings": self.max_position_tokens,
            "quantization": {
                "quant_algo": _WEIGHT_ALGORITHMS[self.weights],
                "kv_cache_quant_algo": PRECISIONS[self.kv_cache].quant_algo,
            },
            "mapping": {"world_size": 1, "tp_size": 1, "pp_size": 1},
        }

    def _build_config(self) -> dict[str, Any]:
        return {
            "max_batch_size": self.max_batch_size,
            "max_beam_width": 1,
            "max_input_len": self.max_input_tokens,
            "max_seq_len": self.max_sequence_tokens,
            "max_num_tokens": self.max_batched_tokens,
            "max_draft_len": self.max_draft_tokens,
            "speculative_decoding_mode": "draft_tokens_external" if self.role == "target" and self.max_draft_tokens else "none",
            "gather_context_logits": True,
            "gather_generation_logits": True,
            "plugin_config": {
                "paged_kv_cache": True,
                "tokens_per_block": self.tokens_per_block,
                "use_paged_context_fmha": True,
                "remove_input_padding": True,
            },
        }

    def _tandem(self) -> dict[str, Any]:
        return {
            "kind": "openvino",
            "role": self.role,
            "weights": self.weights,
            "kv_cache": self.kv_cache,
            "exact": self.exact,
            "tuned_for": self.tuned_for,
            "fixed_shapes": self.fixed_shapes,
            "end_ids": list(self.end_ids),
            "kv_bytes_per_token": self.kv_bytes_per_token,
            "max_cached_tokens": self.max_cached_tokens,
            "tokenizer_sha256": self.tokenizer_sha256,
            "versions": dict(self.versions),
            "options": dict(self.options),
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "EngineRecord":
        """Inverse of `as_json`. Raises KeyError for a record that is not an engine's of this kind."""
        model, build, own = content["pretrained_config"], content["build_config"], content["tandem"]
        return cls(
            role=own["role"],
            architecture=model["architecture"],
            model_type=model["model_type"],
            vocab_size=model["vocab_size"],
            hidden_size=model["hidden_size"],
            layers=model["num_hidden_layers"],
            heads=model["num_attention_heads"],
            kv_heads=model["num_key_value_heads"],
            head_dim=model["head_size"],
            max_position_tokens=model["max_position_embeddings"],
            weights=own["weights"],
            kv_cache=own["kv_cache"],
            max_batch_size=build["max_batch_size"],
            max_input_tokens=build["max_input_len"],
            max_sequence_tokens=build["max_seq_len"],
            max_batched_tokens=build["max_num_tokens"],
            max_draft_tokens=build["max_draft_len"],
            exact=own["exact"],
            tuned_for=own["tuned_for"],
            fixed_shapes=own["fixed_shapes"],
            tokens_per_block=build["plugin_config"]["tokens_per_block"],
            end_ids=tuple(own["end_ids"]),
            tokenizer_sha256=own["tokenizer_sha256"],
            versions=own["versions"],
            options=own["options"],
        )

    def write(self, engine_dir: Path) -> None:
        (engine_dir / FILE_NAME).write_text(json.dumps(self.as_json(), indent=2, sort_keys=True) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, engine_dir: Path) -> "EngineRecord":
        return cls.from_json(json.loads((engine_dir / FILE_NAME).read_text(encoding="utf-8")))
