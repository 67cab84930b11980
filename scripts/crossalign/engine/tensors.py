"""The tensors of a model folder, read one by one, each straight to the device and in the precision where it is used."""

from __future__ import annotations

import json
import math
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load
from torch import Tensor

from crossalign.runtime.errors import UserError

# Bytes of a tensor that pass through the host at a time.
_PIECE = 256 << 20
_PREFIXES = ("bert.", "roberta_prelayernorm.", "roberta.", "model.")
_CPU = torch.device("cpu")


class Shards:
    """The tensors of a folder of safetensors files, by their name without the prefix of the family."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.places: dict[str, tuple[Path, str]] = {}
        # What is left of small files, which are read at once: opening one for each tensor takes longer than reading it.
        self._waiting: dict[Path, dict[str, Tensor]] = {}
        for path in self._files():
            try:
                with safe_open(path, "pt") as file:
                    self.places.update((plain_name(name), (path, name)) for name in file.keys())  # noqa: SIM118
            except (SafetensorError, OSError) as error:
                raise UserError(f"{path} cannot be read: {error}; fetch it again") from None

    def _files(self) -> list[Path]:
        index = self.folder / "model.safetensors.index.json"
        if index.exists():
            try:
                names = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
            except (ValueError, KeyError, AttributeError) as error:
                raise UserError(f"{index} is no index of weights ({error}); fetch it again") from None
            return sorted(self.folder / name for name in names)
        if (self.folder / "model.safetensors").exists():
            return [self.folder / "model.safetensors"]
        raise UserError(f"{self.folder} has no model.safetensors (other weight formats are not read)")

    def has(self, name: str) -> bool:
        """Whether there is such a tensor."""
        return name in self.places

    def read(self, name: str, device: torch.device = _CPU, dtype: torch.dtype = torch.float32) -> Tensor:
        """One tensor, on its device.

        The file is closed after each piece: its pages would count as this program's memory as long as it is open.
        """
        if name not in self.places:
            raise UserError(f"{self.folder}: the weights have no tensor '{name}'")
        path, key = self.places[name]
        if path not in self._waiting:
            self._waiting[path] = load(path.read_bytes()) if path.stat().st_size <= _PIECE // 8 else {}
        if key in self._waiting[path]:
            return self._waiting[path].pop(key).to(device, dtype, copy=True)
        with safe_open(path, "pt", device=str(device)) as file:
            part = file.get_slice(key)
            shape = part.get_shape()
            same = device.type == "cpu" and part[:1].dtype == dtype
            rows = max(1, _PIECE // max(1, 4 * math.prod(shape[1:])))
            if same or not shape or shape[0] <= rows:
                return file.get_tensor(key).to(dtype)
        whole = torch.empty(shape, dtype=dtype, device=device)
        for start in range(0, shape[0], rows):
            with safe_open(path, "pt", device=str(device)) as file:
                whole[start : start + rows] = file.get_slice(key)[start : start + rows]
        return whole


def plain_name(name: str) -> str:
    """A tensor's name without prefix, and with the names that LayerNorm's parameters have had since 2020."""
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    return name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")
