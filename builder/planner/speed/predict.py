"""A first guess of what drafting can win, before anything is built. Labelled a prediction wherever it is shown."""

from typing import Any

from builder.planner.memory import PoolMemory


def predict(target: PoolMemory, draft: PoolMemory | None) -> dict[str, Any]:
    """Cost of a draft token relative to a target pass, and the acceptance above which one draft token a round pays.

    Decoding at batch 1 is bound by reading weights, so the cost ratio is the ratio of weight bytes. With c that ratio and a the
    acceptance rate, one draft token a round turns 1 token per 1 unit of time into 1 + a tokens per 1 + c: it pays when a > c
    (Leviathan et al. 2023, theorem 3.8, for one draft token).
    """
    if draft is None:
        return {"provider": "weight bytes", "kind": "prediction", "draft_cost_ratio": None, "break_even_acceptance": None}
    ratio = draft.weights_bytes / target.weights_bytes
    return {
        "provider": "weight bytes",
        "kind": "prediction",
        "error_band": "not calibrated; the speed gate measures",
        "draft_cost_ratio": round(ratio, 3),
        "break_even_acceptance": round(ratio, 3),
    }
