"""Pure Python that served models share; only the standard library and numpy."""
