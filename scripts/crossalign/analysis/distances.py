"""Distances between the vectors of words that translate each other and of words that do not (`adjust`, section 9).

A set of pairs is an array of pairs x 2 x neurons. Histograms have bins of a power-of-two width that begin at zero, so
histograms of several models can be brought to common bins by adding counts, without the vectors and without
interpolation.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from crossalign.runtime.errors import UserError
from crossalign.runtime.files import write_atomic, write_json

KINDS = ("related", "unrelated")
# Fine bins per panel: at least so many up to the largest distance, at most twice as many.
FINE = 1024
# Rows at a time: the float64 differences of so many pairs are some megabytes.
ROWS = 4096


@dataclass(frozen=True)
class Panel:
    """One model and language: counts of each kind in bins of one width from zero on, and the numbers beside them."""

    width: float
    counts: dict[str, np.ndarray]
    summary: dict[str, float]

    def mean(self, kind: str) -> float:
        """The mean distance of the pairs of a kind, to the width of a bin."""
        counts = self.counts[kind]
        return float(((np.arange(len(counts)) + 0.5) * self.width) @ counts / counts.sum())

    def error(self, kind: str) -> float:
        """The standard error of that mean over the pairs."""
        counts = self.counts[kind]
        squares = ((np.arange(len(counts)) + 0.5) * self.width - self.mean(kind)) ** 2
        return float(np.sqrt(squares @ counts)) / float(counts.sum())

    def separation_error(self) -> float:
        """The standard error of the area under the ROC curve (Hanley and McNeil 1982)."""
        area, (first, second) = self.summary["auc"], (float(self.counts[kind].sum()) for kind in KINDS)
        one, both = area / (2 - area), 2 * area**2 / (1 + area)
        rest = (first - 1) * (one - area**2) + (second - 1) * (both - area**2)
        return math.sqrt((area * (1 - area) + rest) / (first * second))


def measure(related: np.ndarray, unrelated: np.ndarray, names: Sequence[str] = KINDS) -> Panel:
    """Distances, their histogram, and how well they separate the two kinds.

    Summary: `auc`, the chance that a related pair is closer than an unrelated one (ties count half; 0.5 is no
    separation, 1 perfect); `top10` and `top100`, the share of the squared distance, summed over pairs, that the 10
    and 100 dimensions with the largest share carry, mean of the two kinds; `pairs`, the number of related pairs.
    """
    distances, shares = [], []
    for array, name in zip((related, unrelated), names, strict=True):
        found, by_dimension = _distances(array, name)
        distances.append(found)
        shares.append(by_dimension)
    if related.shape[2] != unrelated.shape[2]:
        raise UserError(f"{names[1]}: {unrelated.shape[2]} neurons, but {names[0]} has {related.shape[2]}")
    largest = max(float(found.max()) for found in distances)
    # All distances zero: any width will do.
    width = 2.0 ** math.floor(math.log2(largest / FINE)) if largest > 0 else 1.0
    bins = int(largest / width) + 1
    counts = [np.bincount((found / width).astype(np.int64), minlength=bins) for found in distances]
    summary = {
        "auc": area_under_roc(*distances),
        "top10": float(np.mean([top_share(share, 10) for share in shares])),
        "top100": float(np.mean([top_share(share, 100) for share in shares])),
        "pairs": len(distances[0]),
    }
    return Panel(width, dict(zip(KINDS, counts, strict=True)), summary)


def _distances(pairs: np.ndarray, name: str) -> tuple[np.ndarray, np.ndarray]:
    """The L2 distance of each pair, and each dimension's sum of squared differences."""
    if pairs.ndim != 3 or pairs.shape[1] != 2 or pairs.dtype.kind != "f" or 0 in pairs.shape:
        shape = " x ".join(map(str, pairs.shape))
        raise UserError(f"{name}: pairs x 2 x neurons of floating-point numbers expected, found {pairs.dtype} {shape}")
    distances = np.empty(len(pairs))
    shares = np.zeros(pairs.shape[2])
    for start in range(0, len(pairs), ROWS):
        block = np.asarray(pairs[start : start + ROWS], dtype=np.float64)
        squares = (block[:, 0] - block[:, 1]) ** 2
        distances[start : start + ROWS] = np.sqrt(squares.sum(axis=1))
        shares += squares.sum(axis=0)
    if not np.isfinite(distances).all():
        bad = int(np.flatnonzero(~np.isfinite(distances))[0])
        raise UserError(f"{name}: pair {bad + 1} has a number that is not finite")
    return distances, shares


def area_under_roc(related: np.ndarray, unrelated: np.ndarray) -> float:
    """The chance that a value of the first sample is smaller than one of the second, ties counted half."""
    ordered = np.sort(unrelated)
    larger = len(ordered) - np.searchsorted(ordered, related, side="right")
    not_smaller = len(ordered) - np.searchsorted(ordered, related, side="left")
    # Integers: the sum of halves is exact.
    return int((larger + not_smaller).sum()) / (2 * len(related) * len(unrelated))


def top_share(shares: np.ndarray, count: int) -> float:
    """What the `count` largest add to the whole; 0 where the whole is zero."""
    total = float(shares.sum())
    return float(np.sort(shares)[::-1][:count].sum()) / total if total > 0 else 0.0


def common_bins(panels: Sequence[Panel], bins: int = 100) -> tuple[np.ndarray, list[dict[str, np.ndarray]]]:
    """Edges shared by several panels, from zero past their largest distance, and each panel's counts between them."""
    if not panels:
        raise UserError("common bins of no histogram at all")
    fine = max(panel.width for panel in panels)
    coarse = [
        {kind: _merge(counts, round(fine / panel.width)) for kind, counts in panel.counts.items()} for panel in panels
    ]
    longest = max(len(counts) for panel in coarse for counts in panel.values())
    step = -(-longest // bins)
    edges = fine * step * np.arange(bins + 1)
    merged = [{kind: _merge(counts, step, bins) for kind, counts in panel.items()} for panel in coarse]
    return edges, merged


def _merge(counts: np.ndarray, step: int, bins: int | None = None) -> np.ndarray:
    """Every `step` bins become one; as many as needed, or `bins`."""
    bins = -(-len(counts) // step) if bins is None else bins
    padded = np.zeros(bins * step, dtype=np.int64)
    padded[: len(counts)] = counts
    return padded.reshape(bins, step).sum(axis=1)


def write_panel(panel: Panel, table: str | Path, summary: str | Path) -> None:
    """A CSV file (kind,left,right,count; empty bins left out) and a JSON file of the summary."""
    with write_atomic(table) as stream:
        rows = csv.writer(stream, lineterminator="\n")
        rows.writerow(("kind", "left", "right", "count"))
        for kind, counts in panel.counts.items():
            for place in np.flatnonzero(counts):
                # Powers of two print exactly, so reading gives the same bins back.
                left, right = (repr(float(panel.width * (place + k))) for k in (0, 1))
                rows.writerow((kind, left, right, int(counts[place])))
    rounded = {key: value if isinstance(value, int) else round(value, 6) for key, value in panel.summary.items()}
    write_json(summary, rounded)


def read_panel(table: str | Path, summary: str | Path) -> Panel:
    """What `write_panel` wrote."""
    places: dict[str, list[tuple[int, int]]] = {kind: [] for kind in KINDS}
    width = None
    try:
        with Path(table).open(encoding="utf-8", newline="") as stream:
            for row in csv.DictReader(stream):
                left, right = float(row["left"]), float(row["right"])
                width = right - left
                places[row["kind"]].append((round(left / width), int(row["count"])))
        numbers = json.loads(Path(summary).read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{error.filename}: cannot read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, ZeroDivisionError) as error:
        raise UserError(f"{table}, {summary}: no histogram of distances ({error}); measure it again") from None
    if width is None:
        raise UserError(f"{table}: the histogram is empty; measure it again")
    bins = 1 + max(place for found in places.values() for place, _ in found)
    counts = {kind: np.zeros(bins, dtype=np.int64) for kind in KINDS}
    for kind, found in places.items():
        for place, count in found:
            counts[kind][place] = count
    return Panel(width, counts, numbers)
