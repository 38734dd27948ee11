"""Outputs: only what was asked for, with the contract's types and shapes."""

import numpy as np

from triton_repo.tensorrt_llm_bls.answer import Figures, Times, figures, piece
from triton_repo.tensorrt_llm_bls.loop import Totals

VALUES = Figures(Totals(3, 8, 6, 2, 1, 0.001, 0.02), Times(1, 2, 3, 4), 10, 9, {"kv_cache_reused_blocks": 5})


def test_piece_holds_text_and_ids():
    arrays = piece("ä", [4, 5], 3, frozenset({"text_output", "output_ids", "batch_index"}))
    assert arrays["text_output"].tolist() == [["ä".encode()]]
    assert arrays["output_ids"].tolist() == [[4, 5]]
    assert arrays["batch_index"].tolist() == [[3]]
    assert piece("", [], 0, frozenset({"output_ids"}))["output_ids"].shape == (1, 0)


def test_figures_are_sums_of_both_sources():
    wanted = frozenset(
        {"acceptance_rate", "total_draft_tokens", "total_lookup_tokens", "target_time_us", "first_token_time_ns", "kv_cache_reused_blocks"}
    )
    arrays = figures(VALUES, wanted)
    assert {name: array.tolist() for name, array in arrays.items()} == {
        "acceptance_rate": [[0.75]],
        "total_draft_tokens": [[8]],
        "total_lookup_tokens": [[2]],
        "target_time_us": [[20000]],
        "first_token_time_ns": [[3]],
        "kv_cache_reused_blocks": [[5]],
    }
    assert arrays["total_draft_tokens"].dtype == np.int32
    assert arrays["target_time_us"].dtype == np.int64
    assert arrays["acceptance_rate"].dtype == np.float32


def test_nothing_asked_nothing_made():
    assert figures(VALUES, frozenset()) == {}
    assert piece("a", [1], 0, frozenset()) == {}
