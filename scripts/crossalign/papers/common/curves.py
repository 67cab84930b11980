"""Curves over layers, from similarities."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from crossalign.catalog.addresses import Run
from crossalign.papers.common.colours import Look
from crossalign.papers.common.context import Context
from crossalign.papers.common.figure import Point, Series
from crossalign.results.names import CONTROLS
from crossalign.results.published import Published
from crossalign.results.reading import AS_MEASURED, Curve


def curve(
    context: Context, label: str, look: Look, runs: Iterable[Run], corpus: str, pairs: Sequence[str], index: str
) -> Series:
    """A similarity by layer, mean over the runs (and over the pairs, where there are several), with its controls."""
    runs = list(runs)
    found = {name: context.results.curve(runs, corpus, pairs, index, name) for name in CONTROLS}
    plain = found.pop(AS_MEASURED)
    controls = {name: points_of(one) for name, one in found.items() if one.points}
    return Series(label, look, points_of(plain), plain.missing, plain.wanted, controls)


def points_of(curve: Curve) -> list[Point]:
    return [Point(layer, value) for layer, value in curve.points.items()]


def with_readings(
    context: Context, paper: str, series: Series, runs: Iterable[Run], printed: Published, keys: dict[str, str]
) -> Series:
    """The same curve beside the values read off the paper's figure; none of them in a world of its own."""
    judge = context.judge(paper, runs=runs)
    points = []
    for point in series.points:
        read = printed.find(keys | {"layer": str(point.x)})
        # Artificial languages have no curve in the paper to be seen beside.
        shown = None if context.artificial else read
        points.append(Point(point.x, point.value, shown, judge.reading(shown, point.value)))
    return replace(series, points=points)
