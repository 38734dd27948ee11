"""The output layer: its own tensor, or the input embedding once more."""

from collections.abc import Iterator, Sequence

from builder.checkpoint.geometry import Geometry
from builder.checkpoint.names import EMBEDDINGS, embedding_of, is_head
from builder.checkpoint.safetensors import Tensor, read_bytes
from builder.errors import Finding

SAMPLE_BYTES = 1 << 16
SAMPLES = 4


def check_head(geometry: Geometry, tensors: Sequence[Tensor], field: str) -> Iterator[Finding]:
    """Tied and absent is the embedding; untied and absent cannot work; tied and stored twice must be the same numbers."""
    embedding = embedding_of(tensors)
    head = next((t for t in tensors if is_head(t.name) and t.name.endswith(".weight")), None)
    if embedding is None:
        return
    if head is None and not geometry.tied and embedding.name.endswith(EMBEDDINGS[0]) and not any(is_head(t.name) for t in tensors):
        message = (
            "No output layer (lm_head.weight) is stored and config.json does not tie it to the input embedding (tie_word_embeddings): "
            "a converter would take the embedding in its place without a word."
        )
        fix = "fetch the model again, or set tie_word_embeddings to true in config.json if the model was trained so"
        yield Finding("CKPT-HEAD-MISSING", "error", message, field, "no lm_head.weight", "lm_head.weight", fix)
    if head is not None and geometry.tied and not _alike(head, embedding):
        message = (
            f"config.json ties the output layer to the input embedding, but {head.name} and {embedding.name} are stored with different "
            "contents: transformers and TensorRT-LLM would run two different models."
        )
        fix = "set tie_word_embeddings to false in config.json if the stored output layer is right, or remove it"
        yield Finding("CKPT-HEAD-DIFFERS", "error", message, field, "two different tensors", "equal tensors, or one", fix)


def _alike(left: Tensor, right: Tensor) -> bool:
    """By dtype, shape and samples of their bytes."""
    if (left.dtype, left.shape) != (right.dtype, right.shape):
        return False
    last = max(0, left.size_bytes - SAMPLE_BYTES)
    places = {last * number // (SAMPLES - 1) for number in range(SAMPLES)}
    return all(read_bytes(left, SAMPLE_BYTES, place) == read_bytes(right, SAMPLE_BYTES, place) for place in places)
