"""Write the target as GGUF in float32, without a tokenizer since token ids are fed, and quantize it with llama.cpp's own quantizer."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gguf
import llama_cpp
import numpy as np
from numpy.typing import NDArray

FORMATS = {"q8_0": "LLAMA_FTYPE_MOSTLY_Q8_0", "q4_0": "LLAMA_FTYPE_MOSTLY_Q4_0"}
LAYER_TENSORS = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
OTHER_TENSORS = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}


def main(target: str, _draft: str, models: str) -> None:
    source, whole = Path(target), Path(models) / "target-f32.gguf"
    config = json.loads((source / "config.json").read_text(encoding="utf-8"))
    if config["model_type"] != "llama":
        raise SystemExit(f"{source} is a {config['model_type']}; this converter knows llama")
    write_gguf(source, config, whole)
    for name, file_type in FORMATS.items():
        params = llama_cpp.llama_model_quantize_default_params()
        params.ftype, params.nthread = getattr(llama_cpp, file_type), 2
        out = whole.with_name(f"target-{name}.gguf")
        if llama_cpp.llama_model_quantize(str(whole).encode(), str(out).encode(), params):
            raise SystemExit(f"{out} cannot be written")
    whole.unlink()


def write_gguf(source: Path, config: dict[str, Any], path: Path) -> None:
    """All tensors in float32."""
    writer = gguf.GGUFWriter(path, "llama")
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    head_dim = config.get("head_dim") or config["hidden_size"] // heads
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv_heads)
    writer.add_key_length(head_dim)
    writer.add_value_length(head_dim)
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_dimension_count(head_dim)
    writer.add_rope_freq_base(float(config["rope_parameters"]["rope_theta"]))
    writer.add_vocab_size(config["vocab_size"])
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_tokenizer_model("none")
    for name, tensor in read_safetensors(source / "model.safetensors"):
        count = {"attn_q": heads, "attn_k": kv_heads}.get(gguf_name(name).split(".")[-2])
        writer.add_tensor(gguf_name(name), tensor if count is None else interleaved(tensor, count))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def gguf_name(name: str) -> str:
    """llama.cpp's name of a tensor of Hugging Face's llama."""
    stem = name.removesuffix(".weight")
    if stem in OTHER_TENSORS:
        return f"{OTHER_TENSORS[stem]}.weight"
    _, _, layer, rest = stem.split(".", 3)
    return f"blk.{layer}.{LAYER_TENSORS[rest]}.weight"


def interleaved(tensor: NDArray[np.float32], heads: int) -> NDArray[np.float32]:
    """Rows of each head reordered: llama.cpp rotates neighbours, Hugging Face rotates halves."""
    rows, columns = tensor.shape
    return np.ascontiguousarray(tensor.reshape(heads, 2, rows // heads // 2, columns).swapaxes(1, 2).reshape(rows, columns))


def read_safetensors(path: Path) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """Every tensor of a file in bfloat16 or float32, as float32."""
    with path.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        header = json.loads(stream.read(length))
        for name, entry in header.items():
            if name == "__metadata__":
                continue
            begin, end = entry["data_offsets"]
            stream.seek(8 + length + begin)
            yield name, _as_float32(stream.read(end - begin), entry["dtype"]).reshape(entry["shape"])


def _as_float32(data: bytes, dtype: str) -> NDArray[np.float32]:
    if dtype == "F32":
        return np.frombuffer(data, np.float32)
    if dtype != "BF16":
        raise SystemExit(f"tensors in {dtype} are not read here")
    return (np.frombuffer(data, np.uint16).astype(np.uint32) << 16).view(np.float32)


if __name__ == "__main__":
    main(*sys.argv[1:])
