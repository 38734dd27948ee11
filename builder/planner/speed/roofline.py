"""Step times from a chip's published rates alone: always available, and a bound for the other providers."""

from dataclasses import dataclass
from functools import cached_property

from builder.planner.speed.constants import Roofline, error_band, roofline_of
from builder.planner.speed.model import ModelOnChips

SIXTEEN_BIT_BYTES = 2


@dataclass(frozen=True)
class RooflineStepTime:
    """Products take the longer of reading the weights and computing; attention the same with the cache; each layer adds its start.

        T = W / (B eb) | 2 P m / (g F ef)  +  b c KV / (B eb) | 4 L Hq d m c / (g F16 ef)  +  L (tl + 2 ta) + th

    with m tokens in b sequences of context c on g devices (Williams et al. 2009 for the roofline). W are the bytes of the weights that m
    tokens touch: of a mixture of experts only those that are expected to be chosen. The embedding is not read, unless it is the output
    layer too. x | y is (x^p + y^p)^(1/p): near their crossing, reading and computing do not hide each other wholly.
    """

    model: ModelOnChips

    @property
    def provider(self) -> str:
        return "roofline"

    @property
    def error_band(self) -> float:
        return error_band("roofline", self.model.weights)

    def decode_s(self, batch: int, context_tokens: int, query_tokens: int = 1) -> float:
        """Seconds; see StepTime."""
        tokens = batch * query_tokens
        return (
            self._products_s(tokens, tokens) + self._attention_s(batch * context_tokens, tokens * context_tokens) + self._around_s(tokens)
        )

    def prefill_s(self, batch: int, tokens: int) -> float:
        """Seconds; each token attends to the ones before it, the output layer works on the last ones alone."""
        total = batch * tokens
        return self._products_s(total, batch) + self._attention_s(0, total * tokens // 2) + self._around_s(total)

    @cached_property
    def _constants(self) -> Roofline:
        return roofline_of(self.model.chip.family)

    @cached_property
    def _bytes_per_s(self) -> float:
        return self.model.chip.bandwidth_bytes_per_s * self._constants.bandwidth_share

    def _ops_per_s(self, weights: str) -> float:
        """Of all devices of a stage together."""
        rates = self.model.chip.peak_ops_per_s
        formats = self._constants.products.get(weights, self._constants.products["none"])
        rate = next((rates[name] for name in formats if name in rates), max(rates.values()))
        return rate * self._constants.rate_share * self.model.tensor_parallel

    def _products_s(self, tokens: int, output_tokens: int) -> float:
        shape = self.model.facts.shape
        head = shape.vocab_size * shape.hidden_size
        active = shape.active_parameters or shape.parameters
        operations = 2 * ((active - head) * tokens + head * output_tokens)
        reading_s = self.model.pipeline_parallel * self._streamed_bytes(tokens) / self._bytes_per_s
        return self._overlapped(reading_s, operations / self._ops_per_s(self.model.weights))

    def _streamed_bytes(self, tokens: int) -> float:
        """Bytes of one device's weights that a pass over `tokens` reads."""
        shape = self.model.facts.shape
        stored = self.model.weights_bytes - self._lookup_bytes
        read = shape.parameters - self._embedding
        idle = read - shape.active_parameters
        if not 0 < shape.experts_per_token < shape.experts or idle <= 0:
            return stored
        unchosen = 1 - shape.experts_per_token / shape.experts
        return stored * (1 - idle * unchosen ** (tokens - 1) / read)

    @property
    def _embedding(self) -> int:
        """Numbers of an embedding that is not the output layer too."""
        shape = self.model.facts.shape
        return 0 if shape.tied_head else shape.embedding_parameters

    @property
    def _lookup_bytes(self) -> float:
        devices, known = self.model.tensor_parallel * self.model.pipeline_parallel, self.model.lookup_bytes
        return self._embedding * SIXTEEN_BIT_BYTES / devices if known is None else known

    def _attention_s(self, cached_tokens: int, pairs: int) -> float:
        """`pairs` of a query and a cached token."""
        shape, stages = self.model.facts.shape, self.model.pipeline_parallel
        reading_s = stages * cached_tokens * self.model.kv_bytes_per_token / self._bytes_per_s
        operations = 4 * shape.layers * shape.heads * shape.head_dim * pairs
        return self._overlapped(reading_s, operations / self._ops_per_s("none"))

    def _overlapped(self, reading_s: float, computing_s: float) -> float:
        longer, shorter, power = max(reading_s, computing_s), min(reading_s, computing_s), self._constants.overlap_power
        return longer * (1 + (shorter / longer) ** power) ** (1 / power) if longer else 0.0

    def _around_s(self, tokens: int) -> float:
        shape, constants = self.model.facts.shape, self._constants
        layer_s = constants.layer_s + (2 * self._all_reduce_s(tokens) if self.model.tensor_parallel > 1 else 0)
        return shape.layers * layer_s + (self.model.pipeline_parallel - 1) * constants.stage_s + constants.step_s

    def _all_reduce_s(self, tokens: int) -> float:
        """A ring sends 2 (g - 1) / g of the 16-bit activations over each link."""
        devices, link = self.model.tensor_parallel, self.model.chip.link_bytes_per_s
        sent = 2 * (devices - 1) / devices * tokens * self.model.facts.shape.hidden_size * SIXTEEN_BIT_BYTES
        return self._constants.all_reduce_s + (sent / link if link else 0)
