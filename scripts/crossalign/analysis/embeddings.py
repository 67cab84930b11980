"""Sentence embeddings on disk: one array of layers x sentences x neurons per language, read without loading it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from crossalign.errors import UserError


def open_embeddings(folder: Path, languages: list[str]) -> dict[str, np.ndarray]:
    """Memory-mapped arrays of `<folder>/<language>.npy`, of equal layers and sentences."""
    arrays = {lang: _open(folder, lang) for lang in languages}
    first, *others = arrays
    for lang in others:
        ours, theirs = arrays[lang].shape, arrays[first].shape
        for what, place in (("layers", 0), ("sentences", 1)):
            if ours[place] != theirs[place]:
                raise UserError(
                    f"{folder / lang}.npy: {ours[place]} {what}, but {first}.npy has {theirs[place]}; "
                    "embed both with the same model and the same sentences"
                )
    return arrays


def _open(folder: Path, lang: str) -> np.ndarray:
    path = folder / f"{lang}.npy"
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        there = ", ".join(sorted(file.stem for file in folder.glob("*.npy"))) or "none"
        raise UserError(f"{path}: no embeddings of '{lang}'; languages there: {there}") from None
    except (ValueError, EOFError, OSError) as error:
        raise UserError(f"{path}: not a complete .npy array: {error}") from None
    if array.ndim != 3 or array.dtype.kind != "f" or 0 in array.shape:
        shape = " x ".join(map(str, array.shape))
        raise UserError(
            f"{path}: layers x sentences x neurons of floating-point numbers expected, found {array.dtype} {shape}"
        )
    return array
