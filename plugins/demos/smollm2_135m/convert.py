"""Checkpoint folders in Hugging Face's layout: the target out of the GGUF file, the draft out of the shipped layers."""

import io
import json
import shutil
from contextlib import redirect_stderr
from pathlib import Path

LAYERS = Path(__file__).parent / "draft" / "layers.safetensors"
HEAD_IDS = "head_token_ids"
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "generation_config.json")


def write_target(gguf: Path, folder: Path) -> None:
    """Write SmolLM2-135M-Instruct in bfloat16 to an empty folder."""
    with redirect_stderr(io.StringIO()):
        _write_target(gguf, folder)


def _write_target(gguf: Path, folder: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, logging

    logging.set_verbosity_error()
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    loaded = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32)
    # transformers marks a model read from GGUF as quantized and refuses to save it, although its tensors are dense ones.
    config = {k: v for k, v in loaded.config.to_dict().items() if k not in ("quantization_config", "_name_or_path")}
    model = type(loaded)(type(loaded.config)(**config)).to(torch.bfloat16)
    model.load_state_dict({name: tensor.to(torch.bfloat16) for name, tensor in loaded.state_dict().items()}, strict=True)
    model.tie_weights()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def write_draft(target: Path, folder: Path) -> None:
    """Write the draft to an empty folder: the target's embedding (frozen, tied), the shipped layers, the target's tokenizer."""
    from safetensors import safe_open
    from safetensors.torch import load_file, save_file

    trained = load_file(LAYERS)
    head_ids = trained.pop(HEAD_IDS)
    with safe_open(target / "model.safetensors", "pt") as weights:
        embedding = weights.get_tensor("model.embed_tokens.weight")
    save_file({"model.embed_tokens.weight": embedding, **trained}, folder / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((target / "config.json").read_text(encoding="utf-8"))
    config["num_hidden_layers"] = len({name.split(".")[2] for name in trained if name.startswith("model.layers.")})
    (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    (folder / f"{HEAD_IDS}.json").write_text(json.dumps(head_ids.tolist()) + "\n", encoding="utf-8")
    for name in TOKENIZER_FILES:
        if (target / name).is_file():
            shutil.copyfile(target / name, folder / name)
