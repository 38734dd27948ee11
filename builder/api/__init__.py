"""What plug-ins may import from the core: protocols, value types, errors. Version 2.

An engine plug-in is an object with the methods of `Engine`, named by an entry point of the group `tandem.engines`. It is imported only
when a pair file asks for it, and must import its heavy packages only inside the methods that need them.
"""

from builder.api.demo import Demo
from builder.api.engine import (
    API_VERSION,
    PLAN_ONLY,
    BuildNeeds,
    Deployment,
    Engine,
    EngineMemory,
    EngineRequest,
    Progress,
    Role,
    ServerNeeds,
)
from builder.api.model import ModelFacts, ModelShape, StoredFormat
from builder.api.session import EngineAnswer, EngineCounters, EngineOptions, EngineSession, SpeculationMode
from builder.errors import ExitCode, Finding, FindingsError, MissingError, RefusedError, Severity, StageError, TandemError
from builder.hardware.chips import Chip

__all__ = [
    "API_VERSION",
    "BuildNeeds",
    "Chip",
    "Demo",
    "Deployment",
    "Engine",
    "EngineAnswer",
    "EngineCounters",
    "EngineMemory",
    "EngineOptions",
    "EngineRequest",
    "EngineSession",
    "ExitCode",
    "Finding",
    "FindingsError",
    "MissingError",
    "PLAN_ONLY",
    "ModelFacts",
    "ModelShape",
    "Progress",
    "RefusedError",
    "Role",
    "ServerNeeds",
    "Severity",
    "SpeculationMode",
    "StageError",
    "StoredFormat",
    "TandemError",
]
