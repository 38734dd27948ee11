"""Engine lane of TensorRT-LLM: what one closed range of releases can build and serve. Importing this imports nothing heavy."""

from plugins.engines.tensorrt_llm.engine import TensorRtLlmEngine

ENGINE = TensorRtLlmEngine()
"""The object that the entry point `tandem.engines: tensorrt_llm` names."""

__all__ = ["ENGINE", "TensorRtLlmEngine"]
