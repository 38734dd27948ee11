"""Packaging: engines, tokenizer and served models to one Triton model repository."""
