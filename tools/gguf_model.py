"""Make a model folder in the published layout (config.json, safetensors, tokenizer.json) from a GGUF file of Gemma 3.

Quantised weights become bf16. The tokenizer is built from the file's own pieces and scores. Several pieces of a split
file are joined in the order given. Tested on Gemma 3 270M (Q4_K_M), token by token against sentencepiece; other sizes
of Gemma 3 have the same parts, other families are refused. Needs the package gguf.

Example:
    python tools/gguf_model.py gemma-3-270m-q4_k_m.gguf --out results/models/gemma-3-270m
"""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

from crossalign.runtime.errors import UserError, run_main
from crossalign.runtime.files import write_json

# The library's names of GGUF's tensors, outside and inside the layers.
OUTSIDE = {"token_embd": "embed_tokens", "output_norm": "norm"}
INSIDE = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "attn_norm": "input_layernorm",
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
# What the format leaves to the family: every sixth layer sees all tokens, the others turn by a smaller base.
PATTERN, LOCAL_THETA = 6, 10_000.0
# Kinds of pieces, as sentencepiece numbers them.
UNKNOWN, CONTROL, USER_DEFINED, BYTE = 2, 3, 4, 6


def parse_args() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="+", help="the GGUF file, or its pieces in order")
    parser.add_argument("--out", type=Path, required=True, help="the model folder")
    return parser.parse_args()


class Gguf:
    """The values and tensors of one file."""

    def __init__(self, path: Path) -> None:
        try:
            from gguf import GGUFReader
        except ImportError:
            raise UserError("the package gguf is not installed: pip install gguf") from None
        try:
            self.reader = GGUFReader(path)
        except (ValueError, OSError, IndexError) as error:
            raise UserError(f"{path} is not a whole GGUF file: {error}") from None
        self.path = path
        if (family := self.value("general.architecture")) != "gemma3":
            raise UserError(f"{path} holds a model of the family '{family}'; only 'gemma3' can be converted")

    def value(self, key: str) -> Any:
        """The value of a key, or of a key of the family where it begins with a dot."""
        key = f"gemma3{key}" if key.startswith(".") else key
        if key not in self.reader.fields:
            raise UserError(f"{self.path} has no '{key}'")
        return self.reader.fields[key].contents()


def config_of(gguf: Gguf) -> dict[str, Any]:
    """The model's config.json."""
    from transformers import Gemma3TextConfig

    layers, size = gguf.value(".block_count"), gguf.value(".attention.key_length")
    kinds = ["sliding_attention" if (layer + 1) % PATTERN else "full_attention" for layer in range(layers)]
    config = Gemma3TextConfig(
        vocab_size=len(gguf.value("tokenizer.ggml.tokens")),
        hidden_size=gguf.value(".embedding_length"),
        intermediate_size=gguf.value(".feed_forward_length"),
        num_hidden_layers=layers,
        num_attention_heads=gguf.value(".attention.head_count"),
        num_key_value_heads=gguf.value(".attention.head_count_kv"),
        head_dim=size,
        query_pre_attn_scalar=size,
        max_position_embeddings=gguf.value(".context_length"),
        rms_norm_eps=round(gguf.value(".attention.layer_norm_rms_epsilon"), 12),
        sliding_window=gguf.value(".attention.sliding_window"),
        layer_types=kinds,
        rope_parameters={
            "full_attention": {"rope_type": "default", "rope_theta": gguf.value(".rope.freq_base")},
            "sliding_attention": {"rope_type": "default", "rope_theta": LOCAL_THETA},
        },
        **{f"{name}_token_id": gguf.value(f"tokenizer.ggml.{long}_token_id") for name, long in SPECIAL.items()},
    )
    config.architectures, config.dtype = ["Gemma3ForCausalLM"], "bfloat16"
    return config.to_diff_dict()


SPECIAL = {"pad": "padding", "bos": "bos", "eos": "eos"}


def weights_of(gguf: Gguf) -> dict[str, Any]:
    """The tensors by the library's names. GGUF has added 1 to the weights of norms, which the library adds itself."""
    import torch
    from gguf.quants import dequantize

    tensors = {}
    for tensor in gguf.reader.tensors:
        part, kind = tensor.name.rsplit(".", 1)
        layer, inside = part.removeprefix("blk.").split(".") if part.startswith("blk.") else ("", part)
        name = (INSIDE if layer else OUTSIDE).get(inside)
        if name is None or kind != "weight":
            raise UserError(f"{gguf.path}: the tensor '{tensor.name}' has no place in Gemma 3")
        values = torch.tensor(dequantize(tensor.data, tensor.tensor_type))
        full = f"model.layers.{layer}.{name}.weight" if layer else f"model.{name}.weight"
        tensors[full] = (values - 1 if name.endswith("norm") else values).bfloat16()
    return tensors


def tokenizer_of(tokens: list[str], scores: list[float], kinds: list[int], special: dict[str, int]) -> Any:
    """Sentencepiece's BPE as a fast tokenizer: of two neighbours those join first whose piece scores highest.

    A piece may have been made of several pairs of pieces: all are merges, in the order of the piece's score.
    """
    from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, processors

    # GGUF writes runs of spaces, pieces that users defined, with spaces instead of sentencepiece's mark.
    tokens = [t.replace(" ", "▁") if kind == USER_DEFINED else t for t, kind in zip(tokens, kinds, strict=True)]
    number = {token: index for index, token in enumerate(tokens)}
    plain = [index for index, kind in enumerate(kinds) if kind not in (UNKNOWN, CONTROL, USER_DEFINED, BYTE)]
    joinable = {tokens[index] for index in plain}
    merges = []
    for index in sorted(plain, key=lambda index: -scores[index]):
        piece = tokens[index]
        pairs = [(piece[:cut], piece[cut:]) for cut in range(1, len(piece))]
        merges += sorted((p for p in pairs if joinable.issuperset(p)), key=lambda p: (number[p[0]], number[p[1]]))
    unknown = tokens[special["unknown"]]
    tokenizer = Tokenizer(models.BPE(number, merges, unk_token=unknown, fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    bos = tokens[special["bos"]]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{bos} $A", pair=f"{bos} $A {bos} $B", special_tokens=[(bos, special["bos"])]
    )
    controls = [token for token, kind in zip(tokens, kinds, strict=True) if kind in (UNKNOWN, CONTROL)]
    tokenizer.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in controls])
    # Found in the normalised text, where a space is a mark.
    users = [token for token, kind in zip(tokens, kinds, strict=True) if kind == USER_DEFINED]
    tokenizer.add_tokens([AddedToken(token, normalized=True) for token in users])
    return tokenizer


def convert(path: Path, out: Path) -> None:
    """Write the folder."""
    from safetensors.torch import save_file

    gguf = Gguf(path)
    config, tensors = config_of(gguf), weights_of(gguf)
    metadata = [gguf.value(f"tokenizer.ggml.{key}") for key in ("tokens", "scores", "token_type")]
    special = {long: gguf.value(f"tokenizer.ggml.{long}_token_id") for long in (*SPECIAL.values(), "unknown")}
    tokenizer = tokenizer_of(*metadata, special)
    out.mkdir(parents=True, exist_ok=True)
    save_file(tensors, out / "model.safetensors", metadata={"format": "pt"})
    tokenizer.save(str(out / "tokenizer.json"), pretty=False)
    names = {name: metadata[0][special[long]] for name, long in {**SPECIAL, "unk": "unknown"}.items()}
    settings = {f"{name}_token": token for name, token in names.items()}
    write_json(
        out / "tokenizer_config.json",
        settings | {"add_bos_token": True, "tokenizer_class": "PreTrainedTokenizerFast"},
        sort_keys=True,
    )
    write_json(out / "config.json", config, sort_keys=True)
    count = sum(tensor.numel() for tensor in tensors.values())
    print(f"{out}: {len(tensors)} tensors, {count / 1e6:.0f} million parameters, {len(metadata[0])} pieces")


def main() -> None:
    """Join, convert."""
    args = parse_args()
    if missing := [str(path) for path in args.files if not path.is_file()]:
        raise UserError(f"{', '.join(missing)}: no such file")
    if len(args.files) == 1:
        return convert(args.files[0], args.out)
    with tempfile.NamedTemporaryFile(suffix=".gguf") as whole:
        for piece in args.files:
            with piece.open("rb") as stream:
                shutil.copyfileobj(stream, whole)
        whole.flush()
        convert(Path(whole.name), args.out)


if __name__ == "__main__":
    run_main(main)
