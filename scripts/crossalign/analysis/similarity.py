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

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from crossalign.analysis import bootstrap, canonical, pairwise
from crossalign.analysis.bootstrap import Resamples, diagonals, overlaps
from crossalign.analysis.indexes import ANC, CCA, CONTROLLED, ECCO, INDEXES, VARIANCE
from crossalign.analysis.matrices import Lengths, Matrix, standardised
from crossalign.runtime.errors import UserError

NAN = float("nan")


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
    device: torch.device | str = "cpu",
    names: Sequence[str] = (),
    lengths: Sequence[Lengths] = (),
) -> list[Similarity]:
    """Compare the reference with each other matrix. `names` (the reference's first) say in errors which is meant.

    With `lengths` of the sentences (the reference's first), cka and anc under each control come along.
    """
    options = options or Options()
    names = names or ("X", *("Y" if len(others) == 1 else f"Y{place + 1}" for place in range(len(others))))
    everyone = [Matrix(array, name, device) for array, name in zip((reference, *others), names, strict=True)]
    first, *rest = everyone
    for matrix in rest:
        _check_shapes(first, matrix, options)
    wanted = set(options.indexes)
    resamples = bootstrap.resamples(first.sentences) if options.resample else None
    centred = [matrix.values for matrix in everyone]
    found = _linear(centred, wanted, resamples)
    if lengths and (controlled := wanted.intersection(CONTROLLED)):
        _controlled(everyone, lengths, controlled, resamples, found)
    if "cka-uncentred" in wanted:
        _set(found, "cka-uncentred", _cka([matrix.raw for matrix in everyone], None))
    if "cka-standardised" in wanted:
        _set(found, "cka-standardised", _cka([standardised(values) for values in centred], None))
    if wanted.intersection(VARIANCE):
        _variance(centred, found)
    if wanted.intersection(CCA).difference(ECCO):
        _canonical(centred, wanted, options.svcca_directions, found)
    if wanted.intersection(ECCO):
        left, *rights = map(canonical.EccoSide, everyone)
        for pair, matrix, right in zip(found, rest, rights, strict=True):
            pair.values |= canonical.ecco(left, right)
            pair.saturated |= max(first.neurons, matrix.neurons) >= first.sentences
    if "cka-rbf" in wanted:
        kernel = pairwise.rbf_kernel(first.values)
        for pair, matrix in zip(found, rest, strict=True):
            pair.values["cka-rbf"] = pairwise.rbf_cka(kernel, pairwise.rbf_kernel(matrix.values))
    for name in ("matching", "matching-standardised"):
        if name in wanted:
            left, *rights = (matrix.raw if name == "matching" else standardised(matrix.values) for matrix in everyone)
            for pair, right in zip(found, rights, strict=True):
                hits = pairwise.matching(left, right).cpu().numpy()
                pair.values[name] = int(hits.sum()) / len(hits)
                if resamples:
                    pair.draws["none", name] = resamples.means(hits)
    for pair in found:
        pair.values = {name: pair.values[name] for name in INDEXES if name in wanted}
    return found


def similarity(index: str, x: np.ndarray, y: np.ndarray, **settings) -> float:
    """One index of two matrices; `settings` are those of `Options`."""
    return compare(x, [y], Options((index,), **settings))[0].values[index]


def _check_shapes(first: Matrix, matrix: Matrix, options: Options) -> None:
    if matrix.sentences != first.sentences:
        raise UserError(
            f"{matrix.name}: {matrix.sentences} sentences, but {first.name} has {first.sentences}; "
            "row n of both must be the same sentence"
        )
    alike = [name for name in options.indexes if name in (*ANC, *VARIANCE, "matching", "matching-standardised")]
    if alike and matrix.neurons != first.neurons:
        raise UserError(
            f"{matrix.name}: {matrix.neurons} neurons, but {first.name} has {first.neurons}; "
            f"{alike[0]} needs the same number"
        )


def _set(found: list[Similarity], name: str, values: list[tuple[float, np.ndarray | None]]) -> None:
    for pair, (value, drawn) in zip(found, values, strict=True):
        pair.values[name] = value
        if drawn is not None:
            pair.draws["none", name] = drawn


def _linear(everyone: list[Tensor], wanted: set[str], resamples: Resamples | None) -> list[Similarity]:
    """The indexes that are resampled by second moments, CKA and ANC, of centred matrices."""
    found = [Similarity() for _ in everyone[1:]]
    if "cka" in wanted:
        _set(found, "cka", _cka(everyone, resamples))
    if wanted.intersection(ANC):
        for pair, other in zip(found, everyone[1:], strict=True):
            _anc(everyone[0], other, resamples, pair)
            pair.draws = {key: drawn for key, drawn in pair.draws.items() if key[1] in wanted}
    return found


def _controlled(
    everyone: list[Matrix], lengths: Sequence[Lengths], wanted: set[str], resamples: Resamples | None,
    found: list[Similarity],
) -> None:  # fmt: skip
    """The controls of `length` for every pair. A sentence is drawn with its translation and its stranger."""
    first, *rest = (matrix.values for matrix in everyone)
    changed = [values[torch.from_numpy(own.strangers)] for values, own in zip(rest, lengths[1:], strict=True)]
    bare = [matrix.without(own.functions) for matrix, own in zip(everyone, lengths, strict=True)]
    sides = _linear([first, *changed], wanted, resamples), _linear(bare, wanted, resamples)
    for pair, stranger, left in zip(found, *sides, strict=True):
        pair.controlled["strangers"] = {name: pair.values[name] - stranger.values[name] for name in wanted}
        pair.controlled["length"] = {name: left.values[name] for name in wanted}
        for (_, name), drawn in stranger.draws.items():
            pair.draws["strangers", name] = pair.draws["none", name] - drawn
        pair.draws |= {("length", name): drawn for (_, name), drawn in left.draws.items()}


def _cka(everyone: list[Tensor], resamples: Resamples | None) -> list[tuple[float, np.ndarray | None]]:
    """CKA of the first matrix with each other, and its draws; these, without the copies, may be a little below zero."""
    parts = resamples.parts if resamples else 1
    own = [overlaps(values, values, parts) for values in everyone]
    found: list[tuple[float, np.ndarray | None]] = []
    for values, right in zip(everyone[1:], own[1:], strict=True):
        mixed = overlaps(everyone[0], values, parts)
        # Divided one after the other: the product of two squared norms may leave the range of numbers.
        value = float(mixed.sum() / own[0].sum().sqrt() / right.sum().sqrt())
        drawn = None
        if resamples and not np.isnan(value):
            norms = [resamples.norms(each) for each in (mixed, own[0], right)]
            drawn = norms[0] / np.sqrt(norms[1]) / np.sqrt(norms[2])
        found.append((value, drawn))
    return found


def _anc(left: Tensor, right: Tensor, resamples: Resamples | None, pair: Similarity) -> None:
    """Correlations of neurons; a constant one has none and counts as 0."""
    parts = resamples.parts if resamples else 1
    mixed, *own = (diagonals(*both, parts) for both in ((left, right), (left, left), (right, right)))
    lengths = own[0].sum(0).sqrt() * own[1].sum(0).sqrt()
    neurons = (mixed.sum(0) / lengths).clamp(-1.0, 1.0)
    pair.neurons = neurons.cpu().numpy()
    if bool(neurons.isnan().all()):
        pair.values |= {"anc": NAN, "anc-signed": NAN}
        return
    known = neurons.nan_to_num()
    pair.values |= {"anc": float(known.abs().mean()), "anc-signed": float(known.mean())}
    if resamples:
        weights = torch.from_numpy(resamples.weights).to(left)
        drawn = ((weights @ mixed) / (weights @ own[0]).sqrt() / (weights @ own[1]).sqrt()).nan_to_num(0.0, 0.0, 0.0)
        pair.draws["none", "anc"] = drawn.abs().mean(1).cpu().numpy()
        pair.draws["none", "anc-signed"] = drawn.mean(1).cpu().numpy()


def _variance(everyone: list[Tensor], found: list[Similarity]) -> None:
    first, *others = ((values**2).sum(0) / (values**2).sum() for values in everyone)
    for pair, other in zip(found, others, strict=True):
        held = ((first + other) / 2).sort(descending=True).values
        pair.values |= {name: float(held[: int(name.rpartition("-")[2])].sum()) for name in VARIANCE}


def _canonical(everyone: list[Tensor], wanted: set[str], most: int, found: list[Similarity]) -> None:
    bases = [canonical.basis(values) for values in everyone]
    tops = [canonical.leading(values, most) for values in everyone] if "svcca" in wanted else []
    for place, pair in enumerate(found, 1):
        pair.saturated = max(bases[0].shape[1], bases[place].shape[1]) >= len(bases[0]) - 1
        rho, variates = canonical.correlations(bases[0], bases[place])
        pair.values |= {"cca": float(rho.mean()), "cca-squared": float((rho**2).mean())}
        pair.values["pwcca"] = canonical.projection_weighted(rho, variates, everyone[0])
        if tops:
            pair.values["svcca"] = float(canonical.correlations(tops[0], tops[place])[0].mean())
