"""The served model preprocessing: text to token ids."""
