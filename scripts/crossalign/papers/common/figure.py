"""The model of a figure: panels of curves, bars or histograms, and the data behind them as tidy records."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from crossalign.catalog.addresses import Run
from crossalign.papers.common.colours import Look
from crossalign.papers.common.context import Context
from crossalign.papers.common.table import plain
from crossalign.results.names import CONTROLS
from crossalign.results.published import Printed
from crossalign.results.reading import AS_MEASURED, Curve
from crossalign.results.values import Value, brief
from crossalign.results.verdict import Verdict

COLUMNS = (
    *("panel", "series", "control", "x", "y", "std", "n", "wanted"),
    *("printed", "reading_error", "difference", "verdict", "reason", "missing"),
)


@dataclass(frozen=True)
class Point:
    """One value of a series; `x` is a layer, a category or the left edge of a bin."""

    x: float | str
    value: Value
    printed: Printed | None = None
    verdict: Verdict = field(default_factory=Verdict)


@dataclass(frozen=True)
class Series:
    """One curve, or the bars of one colour. Without points it was not run.

    `controls` are the points of the same curve under a control, by its name, where the results have them.
    """

    label: str
    look: Look
    points: list[Point] = field(default_factory=list)
    missing: tuple[str, ...] = ()
    wanted: int = 0
    controls: dict[str, list[Point]] = field(default_factory=dict)

    @property
    def drawn(self) -> list[Point]:
        return [point for point in self.points if point.value.mean is not None]


@dataclass(frozen=True)
class Panel:
    """One pair of axes. `kind` is lines, bars or histogram; `inset` a short text in a corner.

    `title` names the panel in the data; `heading` stands above it where readers need other words.
    """

    title: str
    series: list[Series]
    kind: str = "lines"
    xlabel: str = "layer"
    ylabel: str = ""
    ylim: tuple[float, float] | None = None
    inset: str = ""
    heading: str = ""
    # Categories that are shown by another name than the data have.
    tick_labels: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Figure:
    """Panels in `columns` columns, each of `size` inches; item and title are filled in when it is made.

    `direct`: names at the ends of curves, not in a legend. `notes`: sentences at the foot. `control`: the control under
    which each curve is drawn a second time; empty for none.
    """

    item: str = ""
    title: str = ""
    panels: list[Panel] = field(default_factory=list)
    columns: int = 1
    size: tuple[float, float] = (3.3, 2.3)
    direct: bool = False
    share_y: bool = True
    notes: list[str] = field(default_factory=list)
    control: str = ""

    @property
    def missing(self) -> list[str]:
        """The runs that are not there."""
        every = (address for panel in self.panels for series in panel.series for address in series.missing)
        return brief(dict.fromkeys(every))

    def tidy(self) -> Iterator[dict[str, str]]:
        """One record per point, those of controls last; a series that was not run has one without a value."""
        for panel in self.panels:
            for series in panel.series:
                named = {"panel": panel.title, "series": series.label, "control": AS_MEASURED}
                if not series.points:
                    yield named | {"wanted": str(series.wanted or ""), "missing": " ".join(brief(series.missing))}
                for control, points in ({AS_MEASURED: series.points} | series.controls).items():
                    for point in points:
                        yield named | {"control": control} | record(point)


def record(point: Point) -> dict[str, str]:
    """The tidy columns of one point."""
    value, printed = point.value, point.printed
    known = printed is not None and printed.number is not None and value.mean is not None
    return {
        "x": point.x if isinstance(point.x, str) else plain(point.x),
        "y": plain(value.mean),
        "std": plain(value.std),
        "n": str(value.n) if value.wanted else "",
        "wanted": str(value.wanted) if value.wanted else "",
        "printed": printed.text if printed else "",
        "reading_error": plain(printed.error) if printed else "",
        "difference": plain(value.mean - printed.number) if known else "",
        "verdict": point.verdict.label,
        "reason": point.verdict.reason,
        "missing": " ".join(brief(value.missing)),
    }


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


def with_readings(context: Context, series: Series, runs: Iterable[Run], keys: dict[str, str]) -> Series:
    """The same curve beside the values read off the paper's figure; none of them in a world of its own."""
    judge = context.judge(runs=runs)
    points = []
    for point in series.points:
        read = context.printed.find(keys | {"layer": str(point.x)})
        # Artificial languages have no curve in the paper to be seen beside.
        shown = None if context.artificial else read
        points.append(Point(point.x, point.value, shown, judge.reading(shown, point.value)))
    return replace(series, points=points)
