"""Tensors in safetensors files: the weights of a model folder, the audit of what it holds, and writing.

A folder must have every weight that its model wants, and none that nobody uses: a tensor left over means that
config.json and the weights describe two models. Both backends ask `audit`.

One thing no audit can see: the number of heads. Query, key and value have the same shapes for any number that divides
the hidden size, so only a model with a tensor per head (NormFormer's scales, a head size of its own) gives it away.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load, save
from torch import Tensor

from crossalign.runtime.errors import UserError
from crossalign.runtime.files import read_json, write_atomic

# Files of at most so many bytes are read at once: opening one for each tensor takes longer than reading it.
_SMALL = 32 << 20
# Names that a message lists before it only counts.
_LISTED = 3
_CPU = torch.device("cpu")
# What the library puts before the names of our own encoder's tensors.
PREFIXES = ("bert.", "roberta_prelayernorm.", "roberta.", "model.")
# Formats of weights that run code when they are read.
_PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")
# Parts of published models that a base model does not need: heads of pretraining and of tasks, tables and masks that
# are computed. Names are without the family's prefix.
_UNNEEDED = re.compile(
    r"cls\.|lm_head\.|pooler\.|classifier\.|score\.|qa_outputs\.|seq_relationship\.|generator_\w+\.|head\."
    r"|(discriminator|mask|lm|sop)_\w*(predictions|head|classifier)\.|predictions\."
    r"|vocab_(transform|layer_norm|projector)\.|decoder\.(weight|bias)$|h\.\d+\.attn\.(masked_)?bias$"
    r"|embed_positions\.weights$|(.+\.)?(position_ids|token_type_ids|rotary_emb\.inv_freq|_float_tensor)$"
)
_FLOATS = {"F64", "F32", "F16", "BF16"}
_INTEGERS = {"I64", "I32", "U8", "BOOL"}


def read_config(folder: str | Path) -> dict[str, Any]:
    """The config.json of a model folder, unless the model asks for what is never done."""
    path = Path(folder) / "config.json"
    if (raw := read_json(path)) is None:
        raise UserError(f"{path} is missing: {folder} is not a model folder")
    if not isinstance(raw.get("model_type"), str):
        raise UserError(f"{path} names no model_type, so nobody knows how to compute this model; write it in")
    if "quantization_config" in raw:
        raise UserError(f"{path}: the weights are quantised; only whole weights (fp32, fp16, bf16) are read")
    if "auto_map" in raw and not library_knows(raw["model_type"]):
        raise UserError(
            f"{path} asks for code of its own (auto_map), which is never run, and the library has no model of type "
            f"'{raw['model_type']}'"
        )
    return raw


def library_knows(model_type: str) -> bool:
    """Whether the library has code for a type of model."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    return model_type in CONFIG_MAPPING_NAMES


def plain_name(name: str, prefixes: Sequence[str] = PREFIXES) -> str:
    """A tensor's name without prefix, and with the names that LayerNorm's parameters have had since 2020."""
    for prefix in prefixes:
        name = name.removeprefix(prefix)
    return name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")


class Shards:
    """The tensors of a folder of safetensors files, by their name without the prefix of the family."""

    def __init__(self, folder: str | Path, prefixes: Sequence[str] = PREFIXES) -> None:
        self.folder = Path(folder)
        self.places: dict[str, tuple[Path, str]] = {}
        self.shapes: dict[str, tuple[int, ...]] = {}
        self._small: dict[Path, dict[str, Tensor]] = {}
        for path in self._files():
            try:
                with safe_open(path, "pt") as file:
                    for key in file.keys():  # noqa: SIM118
                        self._add(plain_name(key, prefixes), path, key, file.get_slice(key))
            except (SafetensorError, OSError) as error:
                raise UserError(f"{path} cannot be read: {error}; fetch it again") from None

    def _add(self, name: str, path: Path, key: str, part: Any) -> None:
        if name in self.places:
            file, other = self.places[name]
            raise UserError(f"{path}: {key} is there twice, the other time as {other} in {file.name}; delete one")
        kind = part.get_dtype()
        if kind not in _FLOATS and not (kind in _INTEGERS and _UNNEEDED.match(name)):
            raise UserError(f"{path}: {key} is of type {kind}; quantised weights are not read, only fp32, fp16, bf16")
        self.places[name] = (path, key)
        self.shapes[name] = tuple(part.get_shape())

    def _files(self) -> list[Path]:
        index, single = self.folder / "model.safetensors.index.json", self.folder / "model.safetensors"
        if index.exists():
            try:
                names = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise UserError(f"{index} is no index of weights ({error}); fetch it again") from None
            return sorted(self.folder / name for name in names)
        if single.exists():
            return [single]
        pickles = sorted(path.name for form in _PICKLES for path in self.folder.glob(form))
        why = f"; {pickles[0]} is a pickle, which may run code when it is read" if pickles else ""
        raise UserError(f"{self.folder} has no model.safetensors (other weight formats are not read){why}")

    def read(self, name: str, device: torch.device = _CPU, dtype: torch.dtype = torch.float32) -> Tensor:
        """One tensor, straight to the device and in the precision where it is used."""
        path, key = self.places[name]
        if path not in self._small:
            self._small[path] = load(path.read_bytes()) if path.stat().st_size <= _SMALL else {}
        if key in self._small[path]:
            tensor = self._small[path].pop(key).to(device, dtype, copy=True)
        else:
            # Closed again: the pages of an open file would count as this program's memory.
            with safe_open(path, "pt", device=str(device)) as file:
                tensor = file.get_tensor(key).to(dtype)
        check_finite(self.folder, name, tensor)
        return tensor


def write_tensors(path: str | Path, tensors: Mapping[str, Tensor], metadata: dict[str, str] | None = None) -> None:
    """Write a file of tensors, complete or not at all."""
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    with write_atomic(path, "wb") as stream:
        stream.write(save(tensors, metadata=metadata or {"format": "pt"}))


def check_finite(folder: str | Path, name: str, tensor: Tensor) -> None:
    """Refuse a tensor with NaN or infinity."""
    # A sum meets them all, and takes a twentieth of the time of asking every number. A sum of numbers may overflow.
    if not math.isfinite(tensor.sum()) and not bool(torch.isfinite(tensor).all()):
        raise UserError(f"{folder}: {name} has numbers that are not finite; the weights are damaged, fetch them again")


def audit(
    folder: str | Path,
    missing: Iterable[str],
    unused: Iterable[str],
    wrong: Mapping[str, tuple[Sequence[int], Sequence[int]]],
    sequence_to_sequence: bool = False,
) -> None:
    """Refuse weights that do not fit config.json: tensors that are missing, that nobody uses, or of a wrong shape.

    `wrong` has the shape in the file and the shape that is wanted. Heads and computed tables may be left over, and of
    an encoder-decoder model the decoder.
    """
    unused = [name for name in unused if not _UNNEEDED.match(name)]
    if sequence_to_sequence:
        unused = [name for name in unused if not name.startswith("decoder.")]
    shapes = [
        f"{name} has shape {tuple(have)}, config.json wants {tuple(want)}" for name, (have, want) in wrong.items()
    ]
    faults = [_listed(sorted(shapes), "; ")] if shapes else []
    faults += [f"missing are {_listed(names)}" for names in [sorted(missing)] if names]
    faults += [f"nothing uses {_listed(names)}" for names in [sorted(unused)] if names]
    if faults:
        raise UserError(f"{folder}: the weights do not fit config.json: {'; '.join(faults)}")


def _listed(names: Sequence[str], comma: str = ", ") -> str:
    rest = len(names) - _LISTED
    return comma.join(names[:_LISTED]) + (f" and {rest} more" if rest > 0 else "")
