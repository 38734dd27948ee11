"""Step times that a test can check by hand, and a cache folder of its own."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from builder.spec import PairSpec


@dataclass(frozen=True)
class LinearStepTime:
    """A pass takes `step_s`, `token_s` a token, `context_s` a cached token; a prompt `token_s` a token."""

    step_s: float = 0.020
    token_s: float = 0.0
    context_s: float = 0.0
    provider: str = "roofline"
    error_band: float = 0.3

    def decode_s(self, batch: int, context_tokens: int, query_tokens: int = 1) -> float:
        return self.step_s + self.token_s * batch * query_tokens + self.context_s * batch * context_tokens

    def prefill_s(self, batch: int, tokens: int) -> float:
        return self.token_s * batch * tokens


@pytest.fixture(autouse=True)
def cache_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Step times of a test are kept in its own folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def spec_of(**sections: object) -> PairSpec:
    """A pair file's content with the given sections changed."""
    data: dict[str, object] = {
        "name": "pair",
        "engine": {"kind": "tensorrt_llm", "release": "1.2.0"},
        "hardware": {"chip": "h200_sxm"},
        "target": {"checkpoint": "target", "weights": "fp8", "kv_cache": "fp8"},
        "draft": {"checkpoint": "draft", "weights": "fp8", "kv_cache": "fp8"},
        "limits": {"max_batch_size": 16, "max_sequence_tokens": 4096, "max_batched_tokens": 8192},
        "planning": {"step_times": "roofline"},
    }
    for name, values in sections.items():
        old = data.get(name)
        data[name] = {**old, **values} if isinstance(old, dict) and isinstance(values, dict) else values
    return PairSpec.model_validate(data)
