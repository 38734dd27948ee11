"""Shared memory that the Triton server needs."""

from builder.api import Engine
from builder.spec import PairSpec

BYTES_PER_PYTHON_MODEL = 64 * 2**20
"""What Triton's Python backend takes of /dev/shm for a model unless told otherwise (triton-inference-server/server issues 3678, 3036)."""
ORCHESTRATED_PYTHON_MODELS = ("preprocessing", "postprocessing", "tensorrt_llm_bls")


def shared_memory_bytes(spec: PairSpec, engine: Engine) -> int:
    """For every served model in Python: ours, and the engines' own where the lane brings a Python-based backend; one in all where one
    process serves the pair."""
    if spec.serve.topology == "single":
        return BYTES_PER_PYTHON_MODEL
    engines = (2 if spec.has_draft_model else 1) if engine.server_needs().backends else 0
    return (len(ORCHESTRATED_PYTHON_MODELS) + engines) * BYTES_PER_PYTHON_MODEL
