"""Demo pairs that need no download but packages: one folder per demo."""
