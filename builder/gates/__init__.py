"""The gates: lossless, accuracy, speed, acceptance; each measured on the served repository, and judged with its numbers."""
