"""Sentence embeddings on disk: one array of layers x sentences x neurons per language, read without loading it.

Beside it lie the lengths of the sentences.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from crossalign.runtime.errors import UserError


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
        there = sorted(file.stem for file in folder.glob("*.npy") if not file.stem.endswith(".lengths"))
        raise UserError(f"{path}: no embeddings of '{lang}'; languages there: {', '.join(there) or 'none'}") from None
    except (ValueError, EOFError, OSError) as error:
        raise UserError(f"{path}: not a complete .npy array: {error}") from None
    if array.ndim != 3 or array.dtype.kind != "f" or 0 in array.shape:
        shape = " x ".join(map(str, array.shape))
        raise UserError(
            f"{path}: layers x sentences x neurons of floating-point numbers expected, found {array.dtype} {shape}"
        )
    return array


def read_lengths(folder: Path, languages: list[str], sentences: int) -> dict[str, np.ndarray]:
    """The number of tokens of each sentence, from `<folder>/<language>.lengths.npy`."""
    return {lang: _lengths(folder / f"{lang}.lengths.npy", sentences) for lang in languages}


def _lengths(path: Path, sentences: int) -> np.ndarray:
    try:
        lengths = np.load(path, allow_pickle=False)
    except FileNotFoundError:
        raise UserError(f"{path}: no lengths of sentences; embed them again, or compare with --control none") from None
    except (ValueError, EOFError, OSError) as error:
        raise UserError(f"{path}: not a complete .npy array: {error}") from None
    if lengths.shape != (sentences,) or lengths.dtype.kind not in "iu" or lengths.min() < 1:
        shape = " x ".join(map(str, lengths.shape))
        raise UserError(
            f"{path}: one whole number above zero for each of {sentences} sentences expected, found {lengths.dtype} "
            f"{shape}"
        )
    return lengths
