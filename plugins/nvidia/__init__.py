"""What both lanes of TensorRT-LLM share: releases and capabilities as data, rules, memory."""
