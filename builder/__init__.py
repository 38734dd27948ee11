"""Tandem's core: from a pair file to a packaged, proven Triton deployment."""

__version__ = "0.1.0"
