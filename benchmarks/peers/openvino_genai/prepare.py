"""Export both checkpoints with optimum-intel: int8 weights, stateful, with GenAI's tokenizer models."""

import sys
from pathlib import Path

import openvino as ov
from openvino_tokenizers import convert_tokenizer
from optimum.intel import OVModelForCausalLM, OVWeightQuantizationConfig
from transformers import AutoTokenizer


def export(checkpoint: Path, folder: Path) -> None:
    """Write one model folder."""
    quantization = OVWeightQuantizationConfig(bits=8, sym=False)
    model = OVModelForCausalLM.from_pretrained(checkpoint, export=True, compile=False, quantization_config=quantization)
    model.save_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    tokenizer.save_pretrained(folder)
    for name, converted in zip(("tokenizer", "detokenizer"), convert_tokenizer(tokenizer, with_detokenizer=True), strict=True):
        ov.save_model(converted, folder / f"openvino_{name}.xml")


def main(target: str, draft: str, models: str) -> None:
    export(Path(target), Path(models) / "target")
    if draft:
        export(Path(draft), Path(models) / "draft")
    (Path(models) / "origin.txt").write_text("exported with optimum-intel, int8 asymmetric per channel\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
