"""CKA and ANC of one matrix with many others, from second moments, and their values in the resamples of a bootstrap."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np

from crossalign.analysis import bootstrap
from crossalign.analysis.backends import Array, Backend
from crossalign.analysis.bootstrap import Resamples
from crossalign.analysis.matrices import Matrix
from crossalign.analysis.moments import Moments, Products, accumulate

CKA = ("cka", "cka-uncentred")
ANC = ("anc", "anc-signed")


@dataclass
class Pair:
    """Of two matrices: value by index, its values in the resamples, and the correlation of each neuron for ANC."""

    values: dict[str, float] = field(default_factory=dict)
    draws: dict[str, np.ndarray] = field(default_factory=dict)
    neurons: np.ndarray | None = None


@dataclass
class Linear:
    """Of the first matrix with each of the others; the moments serve further indexes."""

    pairs: list[Pair]
    moments: list[Moments]
    products: list[Products]


def linear(
    first: Matrix,
    rest: Sequence[Matrix],
    wanted: Collection[str],
    resamples: Resamples | None = None,
    full: bool = False,
) -> Linear:
    """Those of `wanted` that are CKA or ANC; with `full` the moments are whole whatever is wanted."""
    neuronwise = not set(ANC).isdisjoint(wanted)
    # Overlaps cost as much as the moments: only CKA, and only the centred one, is resampled by them.
    parts = resamples.parts if resamples and ("cka" in wanted or neuronwise) else 0
    full = full or not set(CKA).isdisjoint(wanted)
    moments, products = accumulate(first, rest, full, parts if "cka" in wanted else 0, parts if neuronwise else 0)
    found = Linear([Pair() for _ in rest], moments, products)
    if neuronwise:
        _anc(found, first.backend, resamples)
    if "cka" in wanted:
        _cka(found, first.backend, resamples)
    if "cka-uncentred" in wanted:
        _uncentred(found, first.backend)
    return found


def _anc(found: Linear, backend: Backend, resamples: Resamples | None) -> None:
    left, *rights = found.moments
    if resamples:
        weights = backend.load(resamples.weights)
        length = bootstrap.lengths(left, weights, backend)
    for pair, right, product in zip(found.pairs, rights, found.products, strict=True):
        pair.neurons = backend.host(_neuron_correlations(left, right, product, backend))
        if np.isnan(pair.neurons).all():
            pair.values |= {"anc": float("nan"), "anc-signed": float("nan")}
            continue
        known = np.nan_to_num(pair.neurons)
        pair.values |= {"anc": float(np.abs(known).mean()), "anc-signed": float(known.mean())}
        if resamples:
            other = bootstrap.lengths(right, weights, backend)
            pair.draws |= bootstrap.anc(product, length, other, weights, backend)


def _cka(found: Linear, backend: Backend, resamples: Resamples | None) -> None:
    defined = [bool(moment.varies.any()) for moment in found.moments]
    norms = [_norm(moment.gram, backend) for moment in found.moments]
    own, mixed = (resamples.norms(one, backend) if resamples else None for one in (found.moments, found.products))
    for place, (pair, product) in enumerate(zip(found.pairs, found.products, strict=True), 1):
        if not (defined[0] and defined[place]):
            pair.values["cka"] = float("nan")
            continue
        pair.values["cka"] = _ratio(_norm(product.cross, backend), norms[0], norms[place])
        if resamples:
            pair.draws["cka"] = bootstrap.cka(mixed[place - 1], own[0], own[place])


def _uncentred(found: Linear, backend: Backend) -> None:
    norms = [_norm(_raised(moment.gram, moment, moment, backend), backend) for moment in found.moments]
    for place, (pair, product) in enumerate(zip(found.pairs, found.products, strict=True), 1):
        cross = _raised(product.cross, found.moments[0], found.moments[place], backend)
        pair.values["cka-uncentred"] = _ratio(_norm(cross, backend), norms[0], norms[place])


def _neuron_correlations(left: Moments, right: Moments, product: Products, backend: Backend) -> Array:
    xp = backend.xp
    lengths = xp.sqrt(left.squares) * xp.sqrt(right.squares)
    known = left.varies & right.varies
    values = product.diagonal / xp.where(known, lengths, xp.ones_like(lengths))
    return xp.where(known, xp.clip(values, -1.0, 1.0), xp.full_like(values, float("nan")))


def _raised(centred: Array, left: Moments, right: Moments, backend: Backend) -> Array:
    """Products without centring. Adding the means to centred products loses nothing; the way back would."""
    return centred + left.matrix.sentences * backend.xp.outer(left.matrix.mean, right.matrix.mean)


def _norm(matrix: Array, backend: Backend) -> float:
    return float(backend.xp.linalg.norm(matrix))


def _ratio(cross: float, left: float, right: float) -> float:
    # Divided one after the other: the squares of numbers far from one would overflow or vanish.
    return (cross / left) * (cross / right) if left > 0.0 and right > 0.0 else float("nan")
