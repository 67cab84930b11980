"""Names at the ends of curves, instead of a legend."""

from typing import TYPE_CHECKING

from crossalign.papers.common.figure import Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def label_ends(axes: "Axes", panel: Panel) -> None:
    """The name of each curve at its end, moved apart where ends are close, with a thin line to the end."""
    ends = [(series.drawn[-1].value.mean, series) for series in panel.series if series.drawn]
    ends.sort(key=lambda end: end[0])
    low, high = axes.get_ylim()
    inches = axes.get_position().height * axes.figure.get_figheight()
    gap = (high - low) * 0.125 / inches
    places = spread([value for value, _ in ends], gap, low, high)
    last = max(point.x for series in panel.series for point in series.drawn)
    axes.set_xlim(axes.get_xlim()[0], last + 0.25)
    for (value, series), place in zip(ends, places, strict=True):
        axes.annotate(
            series.label,
            xy=(last, value),
            xycoords="data",
            xytext=(1.045, place),
            textcoords=axes.get_yaxis_transform(),
            va="center",
            fontsize=7,
            color=series.look.colour,
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": series.look.colour,
                "linewidth": 0.5,
                "shrinkA": 1,
                "shrinkB": 2,
                "relpos": (0, 0.5),
            },
        )
    axes.set_ylim(low, high)


def spread(values: list[float], gap: float, low: float, high: float) -> list[float]:
    """Places near the sorted `values`, at least `gap` apart, between `low` and `high` if that is possible."""
    groups: list[list[float]] = []  # sum of the values, how many
    for value in values:
        groups.append([value, 1])
        # Labels that touch become one block around their common centre.
        while len(groups) > 1 and top(groups[-2], gap) + gap > groups[-1][0] / groups[-1][1] - reach(groups[-1], gap):
            total, count = groups.pop()
            groups[-1] = [groups[-1][0] + total, groups[-1][1] + count]
    places = [
        total / count - reach([total, count], gap) + gap * step for total, count in groups for step in range(int(count))
    ]
    places = [min(place, high - gap * (len(places) - 1 - step)) for step, place in enumerate(places)]
    return [max(place, low + gap * step) for step, place in enumerate(places)]


def reach(group: list[float], gap: float) -> float:
    """From the centre of a block of labels to its last."""
    return gap * (group[1] - 1) / 2


def top(group: list[float], gap: float) -> float:
    return group[0] / group[1] + reach(group, gap)
