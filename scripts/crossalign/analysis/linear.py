"""CKA and ANC of one matrix with many others, from second moments."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np

from crossalign.analysis.backends import Array, Backend
from crossalign.analysis.matrices import Matrix, Moments, Products, accumulate

CKA = ("cka", "cka-uncentred")
ANC = ("anc", "anc-signed")


@dataclass
class Pair:
    """Of two matrices: value by index, and the correlation of each neuron where ANC was asked for."""

    values: dict[str, float] = field(default_factory=dict)
    neurons: np.ndarray | None = None


@dataclass
class Linear:
    """Of the first matrix with each of the others; the moments serve further indexes."""

    pairs: list[Pair]
    moments: list[Moments]
    products: list[Products]


def linear(first: Matrix, rest: Sequence[Matrix], wanted: Collection[str], full: bool = False) -> Linear:
    """Those of `wanted` that are CKA or ANC; with `full` the moments are whole whatever is wanted."""
    backend = first.backend
    moments, products = accumulate(first, rest, full or not set(CKA).isdisjoint(wanted))
    pairs = [Pair() for _ in rest]
    if not set(ANC).isdisjoint(wanted):
        for pair, moment, product in zip(pairs, moments[1:], products, strict=True):
            pair.neurons = backend.host(_neuron_correlations(moments[0], moment, product, backend))
            known = np.nan_to_num(pair.neurons)
            # One constant neuron counts as zero; when all are constant there is nothing to say.
            lost = float("nan") if np.isnan(pair.neurons).all() else 0.0
            pair.values |= {"anc": float(np.abs(known).mean()) + lost, "anc-signed": float(known.mean()) + lost}
    if "cka" in wanted:
        defined = [bool(moment.varies.any()) for moment in moments]
        norms = [_norm(moment.gram, backend) for moment in moments]
        for place, (pair, product) in enumerate(zip(pairs, products, strict=True), 1):
            usable = defined[0] and defined[place]
            pair.values["cka"] = (
                _ratio(_norm(product.cross, backend), norms[0], norms[place]) if usable else float("nan")
            )
    if "cka-uncentred" in wanted:
        norms = [_norm(_raised(moment.gram, moment, moment, backend), backend) for moment in moments]
        for place, (pair, product) in enumerate(zip(pairs, products, strict=True), 1):
            cross = _raised(product.cross, moments[0], moments[place], backend)
            pair.values["cka-uncentred"] = _ratio(_norm(cross, backend), norms[0], norms[place])
    return Linear(pairs, moments, products)


def _neuron_correlations(left: Moments, right: Moments, product: Products, backend: Backend) -> Array:
    xp = backend.xp
    lengths = xp.sqrt(left.squares) * xp.sqrt(right.squares)
    known = left.varies & right.varies
    values = product.diagonal / xp.where(known, lengths, xp.ones_like(lengths))
    return xp.where(known, xp.clip(values, -1.0, 1.0), xp.full_like(values, float("nan")))


def _raised(centred: Array, left: Moments, right: Moments, backend: Backend) -> Array:
    """Products without centring. Adding the means to centred products loses nothing; the way back would."""
    return centred + left.sentences * backend.xp.outer(left.mean, right.mean)


def _norm(matrix: Array, backend: Backend) -> float:
    return float(backend.xp.linalg.norm(matrix))


def _ratio(cross: float, left: float, right: float) -> float:
    # Divided one after the other: the squares of numbers far from one would overflow or vanish.
    return (cross / left) * (cross / right) if left > 0.0 and right > 0.0 else float("nan")
