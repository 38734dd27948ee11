"""Lane of TensorRT-LLM's PyTorch flow: both models in one process, no engine build. Importing this imports nothing heavy."""

from plugins.engines.tensorrt_llm_pytorch.engine import TensorRtLlmPytorchEngine

ENGINE = TensorRtLlmPytorchEngine()
"""The object that the entry point `tandem.engines: tensorrt_llm_pytorch` names."""

__all__ = ["ENGINE", "TensorRtLlmPytorchEngine"]
