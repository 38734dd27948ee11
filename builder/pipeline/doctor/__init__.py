"""What is here, what each lane lacks, and the command that mends it; nothing heavy is imported. `tandem doctor` shows it."""

from builder.pipeline.doctor.check import Check
from builder.pipeline.doctor.examine import Examination, examine
from builder.pipeline.doctor.lanes import Lane

__all__ = ["Check", "Examination", "Lane", "examine"]
