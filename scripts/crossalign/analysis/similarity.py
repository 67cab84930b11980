"""Similarity of representations: CKA, ANC, the CCA family and sentence matching.

X and Y are sentences x neurons, row i of both the same sentence. All arithmetic is float64. With the lengths of the
sentences, cka and anc come a second and a third time with the length controlled for (`matrices`).

    cka             linear CKA, centred: |X^T Y|^2 / (|X^T X| |Y^T Y|), Frobenius norms (Kornblith et al. 2019)
    cka-uncentred   the same formula as `align-predict` prints it, without centring
    cka-rbf         CKA with a Gaussian kernel, as the public code of `align-predict` has it
    cka-standardised  cka after every neuron is divided by its standard deviation, so that none counts for more
    anc             mean over neurons of |corr(x_i, y_i)| (equation 4 of `anc`)
    anc-signed      the same without the absolute value
    cca             mean canonical correlation
    cca-squared     mean squared canonical correlation (equation 1 of `anc`)
    cca-ecco        mean of the leading canonical correlations, up to 98 % of their sum (ecco, the library that the
                    authors of `anc` call; the module `canonical` says exactly what it does)
    svcca           mean canonical correlation of the 20 leading directions, or of another number; as in ecco
    pwcca           canonical correlations weighted by what they account for in X (Morcos et al. 2018)
    pwcca-ecco      the same with ecco's weights: directions of the whitened neurons are applied to the neurons as they
                    are, with the means added
    matching        share of sentences of X whose translation has the highest cosine in Y
    matching-standardised  the same after every neuron is centred and divided by its standard deviation, language by
                    language, so that no large neuron decides the cosine
    variance-k      share of the variance, mean of X and Y, that the k neurons with the largest share hold

Degenerate input:
    NaN, infinity, fewer than two sentences, different numbers of sentences: an error.
    Different numbers of neurons: an error for anc, anc-signed, both matchings and variance-k; fine for the others.
    A constant neuron has no correlation and counts as 0 in ANC; the CCA family leaves it out.
    All neurons constant: NaN, except for cka-uncentred (defined unless a matrix is zero) and both matchings.
    Dependent neurons, or fewer sentences than neurons: the CCA family counts as many directions as the rank has.
    When a rank reaches the number of sentences minus one, cca, cca-squared and pwcca are 1 whatever the
    sentences say (`saturated` tells). ecco refuses fewer sentences than neurons; its variants are near 1 here.
    Equal sentences: they tie in matching (a tie counts as found) and are left out of the median of cka-rbf.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np

from crossalign.analysis import bootstrap, canonical, pairwise
from crossalign.analysis.backends import Array, Backend, NumpyBackend
from crossalign.analysis.bootstrap import Resamples
from crossalign.analysis.indexes import ANC, CCA, CKA, CONTROLLED, ECCO, INDEXES, STANDARDISED, VARIANCE
from crossalign.analysis.matrices import Lengths, Matrix, Reordered, Standardised, WithoutLength
from crossalign.analysis.moments import Moments, Products, accumulate
from crossalign.runtime.errors import UserError


@dataclass(frozen=True)
class Options:
    """Which indexes; how many directions SVCCA keeps; whether to resample."""

    indexes: Sequence[str] = INDEXES
    svcca_directions: int = 20
    resample: bool = False

    def __post_init__(self) -> None:
        for name in self.indexes:
            if name not in INDEXES:
                raise UserError(f"index '{name}' is not one of {', '.join(INDEXES)}")
        if self.svcca_directions < 1:
            raise UserError(f"SVCCA with {self.svcca_directions} directions: at least 1 is needed")


@dataclass
class Similarity:
    """Of one pair: value by index; the same by control; the correlation of each neuron; whether CCA must be 1.

    `draws` are the values in the resamples, by control (`none` for those without) and index.
    """

    values: dict[str, float] = field(default_factory=dict)
    controlled: dict[str, dict[str, float]] = field(default_factory=dict)
    draws: dict[tuple[str, str], np.ndarray] = field(default_factory=dict)
    neurons: np.ndarray | None = None
    saturated: bool = False


def compare(
    reference: np.ndarray,
    others: Sequence[np.ndarray],
    options: Options | None = None,
    backend: Backend | None = None,
    names: Sequence[str] = (),
    lengths: Sequence[Lengths] = (),
) -> list[Similarity]:
    """Compare the reference with each other matrix. `names` (the reference's first) say in errors which is meant.

    With `lengths` of the sentences (the reference's first), cka and anc under each control come along.
    """
    options = options or Options()
    backend = backend or NumpyBackend()
    names = names or ("X", *("Y" if len(others) == 1 else f"Y{place + 1}" for place in range(len(others))))
    first, *rest = (Matrix(array, backend, name) for array, name in zip((reference, *others), names, strict=True))
    _check_shapes(first, rest, options)
    found = [Similarity() for _ in rest]
    wanted = set(options.indexes)
    resamples = bootstrap.resamples(first.sentences) if options.resample else None
    if wanted.intersection((*CKA, *STANDARDISED, *ANC, *CCA, *VARIANCE)):
        found, moments, products = linear(first, rest, wanted, resamples, full=bool(wanted.intersection(CCA)))
        if wanted.intersection(CCA).difference(ECCO):
            _canonical([first, *rest], moments, products, options, found)
        if wanted.intersection(ECCO):
            values = canonical.ecco(moments, products, backend)
            for pair, matrix, both in zip(found, rest, values, strict=True):
                pair.values |= both
                pair.saturated |= max(first.neurons, matrix.neurons) >= first.sentences
    if lengths and wanted.intersection(CONTROLLED):
        _controlled(first, rest, lengths, wanted.intersection(CONTROLLED), resamples, found)
    if "cka-rbf" in wanted:
        for pair, value in zip(found, pairwise.rbf_cka(first, rest), strict=True):
            pair.values["cka-rbf"] = value
    for name in ("matching", "matching-standardised"):
        if name in wanted:
            whole = [first, *rest] if name == "matching" else [Standardised(each) for each in (first, *rest)]
            for matrix in whole:
                _ = matrix.mean  # looks for NaN
            for pair, hits in zip(found, pairwise.matching(whole[0], whole[1:]), strict=True):
                pair.values[name] = int(hits.sum()) / len(hits)
                if resamples:
                    pair.draws["none", name] = resamples.means(hits)
    for pair in found:
        pair.values = {name: pair.values[name] for name in INDEXES if name in wanted}
    return found


def _check_shapes(first: Matrix, rest: Sequence[Matrix], options: Options) -> None:
    for matrix in rest:
        if matrix.sentences != first.sentences:
            raise UserError(
                f"{matrix.name}: {matrix.sentences} sentences, but {first.name} has {first.sentences}; "
                "row n of both must be the same sentence"
            )
        neuronwise = [name for name in options.indexes if name in (*ANC, *VARIANCE)]
        if neuronwise and matrix.neurons != first.neurons:
            raise UserError(
                f"{matrix.name}: {matrix.neurons} neurons, but {first.name} has {first.neurons}; "
                f"{neuronwise[0]} compares neuron by neuron"
            )


def _controlled(
    first: Matrix,
    rest: Sequence[Matrix],
    lengths: Sequence[Lengths],
    wanted: set[str],
    resamples: bootstrap.Resamples | None,
    found: list[Similarity],
) -> None:
    """The controls of `length` for every pair. A sentence is drawn with its translation and its stranger."""
    changed = [Reordered(matrix, own.strangers) for matrix, own in zip(rest, lengths[1:], strict=True)]
    for pair, stranger in zip(found, linear(first, changed, wanted, resamples)[0], strict=True):
        pair.controlled["strangers"] = {name: pair.values[name] - stranger.values[name] for name in wanted}
        for (_, name), drawn in stranger.draws.items():
            pair.draws["strangers", name] = pair.draws["none", name] - drawn
    bare = [WithoutLength(matrix, own.functions) for matrix, own in zip([first, *rest], lengths, strict=True)]
    for pair, left in zip(found, linear(bare[0], bare[1:], wanted, resamples)[0], strict=True):
        pair.controlled["length"] = {name: left.values[name] for name in wanted}
        pair.draws |= {("length", name): drawn for (_, name), drawn in left.draws.items()}


def _canonical(
    matrices: Sequence[Matrix],
    moments: Sequence[Moments],
    products: Sequence[Products],
    options: Options,
    found: list[Similarity],
) -> None:
    wanted = set(options.indexes)
    backend = matrices[0].backend
    bases, crosses = canonical.cross_bases(matrices, moments, products)
    usable = [place for place, cross in enumerate(crosses) if min(cross.shape)]
    for pair, base in zip(found, bases[1:], strict=True):
        pair.values |= dict.fromkeys(CCA, float("nan"))
        pair.saturated = max(bases[0].rank, base.rank) >= matrices[0].sentences - 1
    for place in usable:
        found[place].values["cca-squared"] = float((crosses[place] ** 2).sum()) / min(crosses[place].shape)
    if usable and wanted.intersection(("cca", "pwcca")):
        coordinates = bases[0].whitener.T @ moments[0].gram
        pairs = canonical.correlations([crosses[place] for place in usable], backend)
        for place, (rho, directions) in zip(usable, pairs, strict=True):
            found[place].values["cca"] = float(rho.mean())
            found[place].values["pwcca"] = canonical.projection_weighted(rho, directions, coordinates, backend)
    if usable and "svcca" in wanted:
        chosen = [0, *(place + 1 for place in usable)]
        sides = [moments[place] for place in chosen], [bases[place] for place in chosen]
        spaces = canonical.leading(*sides, backend, options.svcca_directions)
        small = [spaces[0].T @ crosses[place] @ space for place, space in zip(usable, spaces[1:], strict=True)]
        for place, (rho, _) in zip(usable, canonical.correlations(small, backend), strict=True):
            found[place].values["svcca"] = float(rho.mean())


def similarity(index: str, x: np.ndarray, y: np.ndarray, **settings) -> float:
    """One index of two matrices; `settings` are those of `Options`."""
    return compare(x, [y], Options((index,), **settings))[0].values[index]


def linear(
    first: Matrix, rest: Sequence[Matrix], wanted: Collection[str], resamples: Resamples | None, full: bool = False
) -> tuple[list[Similarity], list[Moments], list[Products]]:
    """Those of `wanted` that are CKA, ANC or shares of variance, from second moments, which serve further indexes.

    With `full` the moments are whole whatever is wanted.
    """
    neuronwise = not set(ANC).isdisjoint(wanted)
    # Overlaps cost as much as the moments: only CKA, and only the centred one, is resampled by them.
    parts = resamples.parts if resamples and ("cka" in wanted or neuronwise) else 0
    full = full or not {*CKA, *STANDARDISED}.isdisjoint(wanted)
    moments, products = accumulate(first, rest, full, parts if "cka" in wanted else 0, parts if neuronwise else 0)
    pairs = [Similarity() for _ in rest]
    if neuronwise:
        _anc(pairs, moments, products, first.backend, resamples)
    if "cka" in wanted:
        _cka(pairs, moments, products, first.backend, resamples)
    if "cka-uncentred" in wanted:
        _uncentred(pairs, moments, products, first.backend)
    if "cka-standardised" in wanted:
        _standardised(pairs, moments, products, first.backend)
    if shares := [name for name in VARIANCE if name in wanted]:
        _variance(pairs, moments, shares, first.backend)
    for pair in pairs:
        pair.draws = {key: drawn for key, drawn in pair.draws.items() if key[1] in wanted}
    return pairs, moments, products


def _anc(
    pairs: list[Similarity],
    moments: list[Moments],
    products: list[Products],
    backend: Backend,
    resamples: Resamples | None,
) -> None:
    left, *rights = moments
    if resamples:
        weights = backend.load(resamples.weights)
        length = bootstrap.lengths(left, weights, backend)
    for pair, right, product in zip(pairs, rights, products, strict=True):
        pair.neurons = backend.host(_neuron_correlations(left, right, product, backend))
        if np.isnan(pair.neurons).all():
            pair.values |= {"anc": float("nan"), "anc-signed": float("nan")}
            continue
        known = np.nan_to_num(pair.neurons)
        pair.values |= {"anc": float(np.abs(known).mean()), "anc-signed": float(known.mean())}
        if resamples:
            other = bootstrap.lengths(right, weights, backend)
            drawn = bootstrap.anc(product, length, other, weights, backend)
            pair.draws |= {("none", name): values for name, values in drawn.items()}


def _cka(
    pairs: list[Similarity],
    moments: list[Moments],
    products: list[Products],
    backend: Backend,
    resamples: Resamples | None,
) -> None:
    defined = [bool(moment.varies.any()) for moment in moments]
    norms = [_norm(moment.gram, backend) for moment in moments]
    own, mixed = (resamples.norms(one, backend) if resamples else None for one in (moments, products))
    for place, (pair, product) in enumerate(zip(pairs, products, strict=True), 1):
        if not (defined[0] and defined[place]):
            pair.values["cka"] = float("nan")
            continue
        pair.values["cka"] = _ratio(_norm(product.cross, backend), norms[0], norms[place])
        if resamples:
            pair.draws["none", "cka"] = bootstrap.cka(mixed[place - 1], own[0], own[place])


def _uncentred(pairs: list[Similarity], moments: list[Moments], products: list[Products], backend: Backend) -> None:
    norms = [_norm(_raised(moment.gram, moment, moment, backend), backend) for moment in moments]
    for place, (pair, product) in enumerate(zip(pairs, products, strict=True), 1):
        cross = _raised(product.cross, moments[0], moments[place], backend)
        pair.values["cka-uncentred"] = _ratio(_norm(cross, backend), norms[0], norms[place])


def _standardised(pairs: list[Similarity], moments: list[Moments], products: list[Products], backend: Backend) -> None:
    xp = backend.xp
    # Divided by infinity, a constant neuron drops out.
    lengths = [
        xp.sqrt(xp.where(each.varies, each.squares, xp.full_like(each.squares, float("inf")))) for each in moments
    ]
    norms = [_norm(each.gram / xp.outer(own, own), backend) for each, own in zip(moments, lengths, strict=True)]
    for place, (pair, product) in enumerate(zip(pairs, products, strict=True), 1):
        cross = _norm(product.cross / xp.outer(lengths[0], lengths[place]), backend)
        pair.values["cka-standardised"] = _ratio(cross, norms[0], norms[place])


def _variance(pairs: list[Similarity], moments: list[Moments], shares: list[str], backend: Backend) -> None:
    squares = [backend.host(each.squares * each.varies) for each in moments]
    first, *others = (each / each.sum() if each.any() else each * float("nan") for each in squares)
    for pair, other in zip(pairs, others, strict=True):
        held = np.sort(-(first + other) / 2)
        pair.values |= {name: -float(held[: int(name.rpartition("-")[2])].sum()) for name in shares}


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
