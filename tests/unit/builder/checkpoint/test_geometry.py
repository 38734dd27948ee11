"""Sizes in the words of every family: what its `config.json` says on the hub, and what the family's own code makes of it."""

import pytest

from builder.checkpoint.geometry import SizeError, read_geometry

LLAMA = {"vocab_size": 96, "num_hidden_layers": 3, "num_attention_heads": 8, "hidden_size": 64, "max_position_embeddings": 128}
GPT2 = {"vocab_size": 96, "n_layer": 3, "n_head": 8, "n_embd": 64, "n_positions": 128}
FALCON = LLAMA | {"num_kv_heads": 8, "multi_query": True}
MPT = {"vocab_size": 96, "n_layers": 3, "n_heads": 8, "d_model": 64, "max_seq_len": 128}


@pytest.mark.parametrize(
    ("config", "kv_heads", "head_dim"),
    [
        (LLAMA, 8, 8),
        (LLAMA | {"num_key_value_heads": 2, "head_dim": 32}, 2, 32),
        (LLAMA | {"num_key_value_heads": None, "head_dim": None}, 8, 8),
        ({"model_type": "gemma3", "text_config": LLAMA | {"num_key_value_heads": 2}, "vocab_size": 7}, 2, 256),
        ({"model_type": "gemma3", "text_config": LLAMA | {"head_dim": 32}, "vocab_size": 7}, 4, 32),
        ({"model_type": "mistral", **LLAMA}, 8, 8),
        ({"model_type": "qwen3", **LLAMA}, 32, 128),
        ({"model_type": "mistral", **LLAMA, "num_key_value_heads": None, "head_dim": None}, 8, 8),
        (FALCON | {"model_type": "falcon", "multi_query": False}, 8, 8),
        (LLAMA | {"model_type": "falcon"}, 1, 8),
        (LLAMA | {"head_size": 24}, 8, 24),
        (GPT2, 8, 8),
        (GPT2 | {"model_type": "gpt_bigcode", "multi_query": True}, 1, 8),
        (GPT2 | {"model_type": "gpt_bigcode", "multi_query": False}, 8, 8),
        ({"vocab_size": 96, "num_layers": 3, "num_heads": 8, "hidden_size": 64, "max_position_embeddings": 128}, 8, 8),
        (FALCON, 1, 8),
        (FALCON | {"num_kv_heads": 4, "new_decoder_architecture": True}, 4, 8),
        (MPT, 8, 8),
        (MPT | {"model_type": "dbrx", "attn_config": {"kv_n_heads": 2}}, 2, 8),
        ({"vocab_size": 96, "n_layer": 3, "n_head": 8, "n_embed": 64, "seq_length": 128, "model_type": "bloom"}, 8, 8),
        (LLAMA | {"model_type": "jetmoe", "num_key_value_heads": 4, "kv_channels": 16}, 4, 16),
    ],
    ids=str,
)
def test_sizes_whatever_they_are_called(config: dict[str, object], kv_heads: int, head_dim: int) -> None:
    sizes = read_geometry(config)
    assert (sizes.vocab_size, sizes.layers, sizes.heads, sizes.hidden_size, sizes.max_positions) == (96, 3, 8, 64, 128)
    assert (sizes.kv_heads, sizes.head_dim) == (kv_heads, head_dim)


def test_latent_attention_and_experts() -> None:
    latent = {"kv_lora_rank": 16, "qk_rope_head_dim": 4, "qk_nope_head_dim": 8, "n_routed_experts": 6, "num_experts_per_tok": 2}
    sizes = read_geometry(LLAMA | latent | {"moe_intermediate_size": 24, "intermediate_size": 128})
    assert (sizes.kv_lora_rank, sizes.rope_head_dim, sizes.head_dim) == (16, 4, 12)
    assert (sizes.experts, sizes.experts_per_token, sizes.expert_intermediate_size, sizes.intermediate_size) == (6, 2, 24, 128)


@pytest.mark.parametrize(
    ("config", "tied"),
    [
        (LLAMA, None),
        (LLAMA | {"model_type": "llama"}, False),
        (LLAMA | {"model_type": "gemma"}, True),
        (LLAMA | {"model_type": "gemma", "tie_word_embeddings": False}, False),
        ({"model_type": "mistral3", "tie_word_embeddings": True, "text_config": LLAMA | {"tie_word_embeddings": False}}, True),
        ({"model_type": "gemma3", "text_config": LLAMA}, True),
    ],
    ids=str,
)
def test_tied_as_the_file_says_else_as_the_family_does(config: dict[str, object], tied: bool | None) -> None:
    assert read_geometry(config).tied is tied


def test_inner_width_of_families_that_name_none() -> None:
    assert read_geometry(GPT2 | {"n_inner": None}).intermediate_size == 256
    assert read_geometry(MPT | {"expansion_ratio": 2}).intermediate_size == 128


@pytest.mark.parametrize("wrong", [0, -1, "many", 1.5, True, None])
def test_size_that_is_no_count_is_an_error_that_names_its_spellings(wrong: object) -> None:
    with pytest.raises(SizeError) as caught:
        read_geometry(LLAMA | {"num_hidden_layers": wrong})
    assert caught.value.names == ("num_hidden_layers", "n_layer", "num_layers", "n_layers")
    assert caught.value.found.startswith(repr(wrong))
