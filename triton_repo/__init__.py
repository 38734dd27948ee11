"""Sources of the served models: importable and testable without Triton, copied into each model repository."""
