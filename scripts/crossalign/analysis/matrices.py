"""The sentence vectors of one language at one layer: read from disk, centred, without their length.

How much of a similarity is the length of sentences?

Translations are long and short together, and the mean of a sentence's token vectors tells its length: of n position
vectors, for one. Two languages then look alike for that reason alone. Two controls, for any index s:

    strangers   s(X, Y) - s(X, PY): P gives each sentence of Y the vector of another one of the same length
    length      s(RX, SY): R and S take a smooth function of the sentences' own length out of every neuron

The smooth function is a linear combination of 1, l, l^2, l^3, 1/l and log l, fitted by least squares to each neuron and
to each language by itself.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from crossalign.runtime.errors import UserError

# A neuron that strays from its mean by less than this share of its size is constant: what is left is rounding.
CONSTANT = 1e-12


class Matrix:
    """Sentences x neurons in float64: `raw` as read, `values` minus the mean of each neuron, zero where it is constant.

    Refuses matrices that hold NaN or infinity.
    """

    def __init__(self, array: np.ndarray, name: str, device: torch.device | str = "cpu") -> None:
        if array.ndim != 2:
            raise UserError(f"{name}: an array of sentences x neurons is needed, this one has {array.ndim} dimensions")
        if array.dtype.kind != "f":
            raise UserError(f"{name}: floating-point numbers are needed, not {array.dtype}")
        if array.shape[0] < 2 or array.shape[1] < 1:
            shape = " x ".join(map(str, array.shape))
            raise UserError(f"{name}: at least two sentences and one neuron are needed, the array is {shape}")
        self.name = name
        self.sentences, self.neurons = array.shape
        # A copy: PyTorch warns of arrays that it must not write to.
        self.raw = torch.from_numpy(np.array(array)).to(device, torch.float64)
        bad = (~torch.isfinite(self.raw)).nonzero()
        if len(bad):
            sentence, neuron = bad[0].tolist()
            place = f"sentence {sentence + 1}, neuron {neuron}"
            raise UserError(f"{name}: {place} is {self.raw[sentence, neuron]}; every number must be finite")
        self.mean = self.raw.mean(0)
        self.values = varying(self.raw - self.mean, self.mean.abs())

    def without(self, functions: np.ndarray) -> Tensor:
        """What is left of the values when these orthonormal functions of the sentences are taken out."""
        basis = torch.from_numpy(functions).to(self.values)
        # A neuron that is a function of the length leaves the rounding of its former self.
        size = (self.mean**2 + (self.values**2).mean(0)).sqrt()
        return varying(self.values - basis @ (basis.T @ self.values), size)


def varying(values: Tensor, size: Tensor) -> Tensor:
    """The values, zero in neurons that do not vary: their rounding would be taken for information."""
    return values * (values.norm(dim=0) > len(values) ** 0.5 * CONSTANT * size)


def standardised(values: Tensor) -> Tensor:
    """Every neuron divided by its length; constant ones stay zero."""
    return torch.nan_to_num(values / values.norm(dim=0))


CONTROLS = ("strangers", "length")
# Strangers are drawn once and for all: the same lengths have the same strangers in every job.
SEED = 1
# A direction with less than this share of the largest one is a dependency of the functions: few different lengths.
RANK = 1e-10


def strangers(lengths: np.ndarray, seed: int = SEED) -> np.ndarray:
    """For each sentence the number of another one, of the same length or as near as can be; a permutation.

    In order of their lengths, equal ones shuffled, the sentences are cut into twos and threes, and in each of these
    everyone takes the place of the next. The cut is the one with the smallest sum of differences in length.
    """
    if len(lengths) < 2:
        raise UserError("strangers of the same length need at least two sentences")
    order = np.lexsort((np.random.default_rng(seed).random(len(lengths)), lengths))
    others = np.empty(len(order), dtype=np.int64)
    for group in _twos_and_threes(np.asarray(lengths)[order].tolist()):
        others[order[group]] = np.roll(order[group], 1)
    return others


def _twos_and_threes(ordered: list[int]) -> list[slice]:
    """Slices of two or three neighbours that cover all numbers, with the smallest sum of their spans.

    Larger groups would gain nothing: four neighbours are two and two.
    """
    # costs[k]: the least sum of spans for the first k numbers; sizes[k]: how many the last group has.
    costs, sizes = [0.0, float("inf")], [0, 0]
    for stop in range(2, len(ordered) + 1):
        starts = range(max(0, stop - 3), stop - 1)
        cost, size = min((costs[start] + ordered[stop - 1] - ordered[start], stop - start) for start in starts)
        costs.append(cost)
        sizes.append(size)
    found, stop = [], len(ordered)
    while stop:
        found.append(slice(stop - sizes[stop], stop))
        stop -= sizes[stop]
    return found


def functions_of(lengths: np.ndarray) -> np.ndarray:
    """Orthonormal columns that span the smooth functions of the length; as many as the different lengths allow."""
    lengths = np.asarray(lengths, dtype=np.float64)
    powers = np.stack([*(lengths**power for power in (0, 1, 2, 3, -1)), np.log(lengths)], 1)
    # Of the same size, and by singular values: with few different lengths the functions depend on each other.
    left, values, _ = np.linalg.svd(powers / np.abs(powers).max(0).clip(min=1e-300), full_matrices=False)
    return left[:, values > RANK * values[0]]


class Lengths:
    """What the controls need of one language, whatever the layer."""

    def __init__(self, lengths: np.ndarray) -> None:
        self.strangers = strangers(lengths)
        self.functions = functions_of(lengths)


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
