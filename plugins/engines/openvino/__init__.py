"""CPU engine lane: OpenVINO's paged attention under block tables of our own. Importing this imports nothing heavy."""

from plugins.engines.openvino.engine import OpenVinoEngine

ENGINE = OpenVinoEngine()
"""The object that the entry point `tandem.engines: openvino` names."""

__all__ = ["ENGINE", "OpenVinoEngine"]
