"""The Triton backend `tensorrtllm` on a CPU: the tensor contract of the C++ backend over the OpenVINO runtime."""
