"""The report of a run: one model, written for machines (JSON), CI (JUnit) and people (Markdown)."""
