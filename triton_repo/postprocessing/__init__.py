"""The served model postprocessing: token ids to text."""
