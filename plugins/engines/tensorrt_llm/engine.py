"""The engine plug-in: judges and sizes pairs of TensorRT engines. This release plans the lane and does not build it."""

from collections.abc import Sequence

from builder.api import Deployment, EngineRequest, Finding
from plugins.engines.tensorrt_llm.check import KIND, check, check_deployment
from plugins.nvidia.plan_only import PlanOnlyEngine


class TensorRtLlmEngine(PlanOnlyEngine):
    """`engine.kind: tensorrt_llm`."""

    kind = KIND
    adapts_draft_length = True

    def check(self, request: EngineRequest) -> Sequence[Finding]:
        return check(request)

    def check_deployment(self, deployment: Deployment) -> Sequence[Finding]:
        return [self.plan_only(), *check_deployment(deployment)]
