"""Make a model folder in the published layout (config.json, safetensors, tokenizer.json) from a GGUF file.

The library reads weights and configuration; quantised weights become bf16. Gemma 3's tokenizer is built here from the
file's own pieces and scores, token by token that of sentencepiece: the library makes a Unigram one of them. Several
pieces of a split file are joined in the order given. Tested on Gemma 3 270M (Q4_K_M) and in the shape of Qwen 2.5.
Needs the package gguf.

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

# Kinds of pieces, as sentencepiece numbers them.
UNKNOWN, CONTROL, USER_DEFINED, BYTE = 2, 3, 4, 6


def parse_args() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="+", help="the GGUF file, or its pieces in order")
    parser.add_argument("--out", type=Path, required=True, help="the model folder")
    return parser.parse_args()


def read_model(path: Path) -> Any:
    """The model of a file, as the library reads it."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    place = {"pretrained_model_name_or_path": path.parent, "gguf_file": path.name}
    try:
        config = AutoConfig.from_pretrained(**place)
        # The file has a float of 32 bits.
        config.rms_norm_eps = round(config.rms_norm_eps, 12)
        if config.model_type == "gemma3_text":
            config.query_pre_attn_scalar = config.head_dim
        model, told = AutoModelForCausalLM.from_pretrained(
            **place, config=config, dtype=torch.bfloat16, output_loading_info=True, use_safetensors=True
        )
    except ImportError:
        raise UserError("the package gguf is not installed: pip install gguf") from None
    except (ValueError, OSError, IndexError, KeyError, AttributeError) as error:
        raise UserError(f"{path} is no whole GGUF file of a model that the library knows: {error}") from None
    if lacking := sorted(told["missing_keys"]):
        raise UserError(f"{path} has no {', '.join(lacking[:3])}")
    return model


def gemma_tokenizer(path: Path) -> Any:
    """The tokenizer that the pieces of a file of Gemma 3 make."""
    from gguf import GGUFReader

    fields = GGUFReader(path).fields
    pieces = [fields[f"tokenizer.ggml.{key}"].contents() for key in ("tokens", "scores", "token_type")]
    return tokenizer_of(*pieces, *(fields[f"tokenizer.ggml.{name}_token_id"].contents() for name in ("unknown", "bos")))


def tokenizer_of(tokens: list[str], scores: list[float], kinds: list[int], unknown: int, first: int) -> Any:
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
    tokenizer = Tokenizer(models.BPE(number, merges, unk_token=tokens[unknown], fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    bos = tokens[first]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{bos} $A", pair=f"{bos} $A {bos} $B", special_tokens=[(bos, first)]
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
    from transformers import AutoTokenizer
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    model = read_model(path)
    if model.config.model_type == "gemma3_text":
        tokenizer = gemma_tokenizer(path)
    else:
        tokenizer = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name).backend_tokenizer
    out.mkdir(parents=True, exist_ok=True)
    # The library does not write what it has read from such a file.
    tensors = {name: parameter.data for name, parameter in model.named_parameters()}
    save_file(tensors, out / "model.safetensors", metadata={"format": "pt"})
    config = model.config.to_diff_dict() | {"architectures": [type(model).__name__], "dtype": "bfloat16"}
    config.pop("quantization_config", None)
    write_json(out / "config.json", config, sort_keys=True)
    tokenizer.save(str(out / "tokenizer.json"), pretty=False)
    count = f"{model.num_parameters() / 1e6:.0f} million parameters, {tokenizer.get_vocab_size()} pieces"
    print(f"{out}: {model.config.model_type}, {count}")


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
