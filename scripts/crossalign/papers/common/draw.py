"""Draw a figure: one style for all, laid out in inches so that nothing overlaps."""

from textwrap import wrap

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from crossalign.papers.common.colours import BLACK, GREY
from crossalign.papers.common.figure import Figure, Panel, Series
from crossalign.results.names import CONTROLS

STYLE = {
    # Shipped with matplotlib, so that all machines draw the same.
    "font.family": "DejaVu Sans",
    "font.size": 7.5,
    # A dollar sign in a name is a dollar sign.
    "text.parse_math": False,
    "axes.titlesize": 8,
    "axes.titlepad": 4,
    "axes.labelsize": 7.5,
    "axes.labelpad": 2.5,
    "axes.edgecolor": "#555555",
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.6,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "lines.markersize": 3,
    "legend.fontsize": 7.5,
    "legend.frameon": False,
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
    "svg.hashsalt": "crossalign",
    "figure.dpi": 100,
    "savefig.dpi": 200,
}

# Inches around the panels.
LEFT, RIGHT, TOP, BELOW = 0.5, 0.12, 0.26, 0.37
# More on the left where numbers have a sign.
SIGN = 0.15
GAP_X, GAP_Y, LEGEND_ROW, LABELS, FOOT_ROW = 0.5, 0.5, 0.165, 0.92, 0.12
# A letter of the lines at the foot.
FOOT_LETTER = 0.055
# Lines beside a curve, in its colour. Both are dotted; only the distance of the dots tells them apart.
AS_READ = {"linestyle": (0, (1, 1.5)), "linewidth": 1.0}
CONTROLLED = {"linestyle": (0, (0.1, 4.0)), "linewidth": 1.2, "dash_capstyle": "round"}


def draw(figure: Figure) -> Canvas:
    """The whole figure."""
    with matplotlib.rc_context(STYLE):
        columns = min(figure.columns, len(figure.panels)) or 1
        rows = -(-len(figure.panels) // columns)
        keys = legend_keys(figure)
        share = figure.share_y and columns > 1
        gap = 0.22 if share else GAP_X
        right = LABELS if figure.direct else RIGHT
        margin = LEFT + (SIGN if below_zero(figure) else 0)
        width = margin + columns * figure.size[0] + (columns - 1) * gap + right
        per_row = legend_columns(list(keys), width)
        lines = foot_lines(figure, width)
        foot = FOOT_ROW * len(lines) + 0.05 if lines else 0.0
        below = BELOW + foot + LEGEND_ROW * -(-len(keys) // per_row) + (0.06 if keys else 0)
        height = TOP + rows * figure.size[1] + (rows - 1) * GAP_Y + below
        canvas = Canvas(figsize=(width, height))
        for place, panel in enumerate(figure.panels):
            row, column = divmod(place, columns)
            bottom = below + (rows - 1 - row) * (figure.size[1] + GAP_Y)
            left = margin + column * (figure.size[0] + gap)
            axes = canvas.add_axes((left / width, bottom / height, figure.size[0] / width, figure.size[1] / height))
            last = place + columns >= len(figure.panels)
            draw_panel(axes, panel, figure, labelled=not share or column == 0, bottom=last)
        if keys:
            canvas.legend(
                handles=list(keys.values()),
                labels=list(keys),
                loc="lower center",
                bbox_to_anchor=(0.5, (foot + 0.02) / height),
                ncols=per_row,
                columnspacing=1.4,
                handletextpad=0.5,
                borderaxespad=0,
                borderpad=0,
                handlelength=2.2,
            )
        for row, text in enumerate(reversed(lines)):
            canvas.text(0.5, (0.05 + FOOT_ROW * row) / height, text, ha="center", va="bottom", color=GREY, fontsize=6.5)
        return canvas


def below_zero(figure: Figure) -> bool:
    """Whether some axis has negative numbers."""
    points = (point.value.mean for panel in figure.panels for series in panel.series for point in series.drawn)
    return any(panel.ylim and panel.ylim[0] < 0 for panel in figure.panels) or any(mean < 0 for mean in points)


def foot_lines(figure: Figure, width: float) -> list[str]:
    """The notes of the figure, broken where they are too wide, and what is missing."""
    lines = [line for note in figure.notes for line in wrap(note, int((width - 0.1) / FOOT_LETTER))]
    return [*lines, missing_note(figure, width)] if figure.missing else lines


def missing_note(figure: Figure, width: float) -> str:
    """Which curves lack runs, or how many runs are lacking where the names do not fit."""
    names = [series.label for panel in figure.panels for series in panel.series if series.missing]
    text = f"Runs are missing: {', '.join(dict.fromkeys(names))}"
    histogram = any(panel.kind == "histogram" for panel in figure.panels)
    return f"Runs are missing: {len(figure.missing)} models" if histogram or FOOT_LETTER * len(text) > width else text


def legend_columns(labels: list[str], width: float) -> int:
    """As many columns as fit: an entry is as wide as the longest label and its handle."""
    if not labels:
        return 1
    entry = 0.55 + 0.07 * max(map(len, labels))
    fits = max(1, min(len(labels), int((width - 0.1) / entry)))
    # Rows of equal length: 7 entries in at most 4 columns stand as 4 + 3, 9 in at most 8 as 5 + 4.
    return -(-len(labels) // -(-len(labels) // fits))


def legend_keys(figure: Figure) -> dict[str, Line2D | Patch]:
    """One entry per label over all panels, where there is more than one, and one for each other kind of line."""
    keys: dict[str, Line2D | Patch] = {}
    every = [(panel.kind, series) for panel in figure.panels for series in panel.series]
    for kind, series in every:
        if series.label and series.label not in keys:
            keys[series.label] = handle(kind, series)
    others = {}
    if any(has_printed(series) for _, series in every):
        others["paper, as read"] = Line2D([], [], color=GREY, **AS_READ)
    if any(figure.control in series.controls for _, series in every):
        others[CONTROLS[figure.control]] = Line2D([], [], color=GREY, **CONTROLLED)
    if figure.direct:
        return others
    return keys | others if len(keys | others) > 1 else {}


def handle(kind: str, series: Series) -> Line2D | Patch:
    """The sign of a series in the legend."""
    look = series.look
    if kind != "lines":
        return Patch(facecolor=look.colour, alpha=0.55 if kind == "histogram" else 1.0)
    return Line2D(
        [], [], color=look.colour, linestyle=look.dash, marker=look.marker, linewidth=look.width, markersize=3.5
    )


def has_printed(series: Series) -> bool:
    return any(point.printed is not None for point in series.points)


def draw_panel(axes: Axes, panel: Panel, figure: Figure, labelled: bool, bottom: bool) -> None:
    """One pair of axes."""
    axes.set_title(panel.heading or panel.title, loc="left", color=BLACK)
    if labelled:
        axes.set_ylabel(panel.ylabel)
    if bottom:
        axes.set_xlabel(panel.xlabel)
    if panel.ylim:
        axes.set_ylim(*panel.ylim)
    there = any(series.drawn for series in panel.series)
    if not there:
        axes.text(0.5, 0.5, "not run", transform=axes.transAxes, ha="center", va="center", color=GREY, fontsize=9)
        axes.set_xticks([])
        axes.set_yticks([])
    elif panel.kind == "lines":
        draw_lines(axes, panel, figure.control)
        if figure.direct:
            label_ends(axes, panel)
    elif panel.kind == "bars":
        draw_bars(axes, panel)
    else:
        draw_histogram(axes, panel)
    if not labelled:
        axes.tick_params(labelleft=False)
    if panel.inset:
        axes.text(0.98, 0.95, panel.inset, transform=axes.transAxes, ha="right", va="top", fontsize=7, color=BLACK)


def draw_lines(axes: Axes, panel: Panel, control: str) -> None:
    """Curves with their spread as bands; the paper's own, where read off its figure, and those under `control`."""
    for series in panel.series:
        points = series.drawn
        xs, ys = [point.x for point in points], [point.value.mean for point in points]
        look = series.look
        crowded = len(xs) > 30
        axes.plot(
            xs, ys, color=look.colour, linestyle=look.dash, linewidth=look.width,
            marker=look.marker, markersize=2.0 if crowded else 3.0, markeredgewidth=0.8, zorder=3,
        )  # fmt: skip
        spread = [point.value.std or 0.0 for point in points]
        # Many bands would hide the curves.
        if any(spread) and len(panel.series) <= 8:
            low = [y - s for y, s in zip(ys, spread, strict=True)]
            high = [y + s for y, s in zip(ys, spread, strict=True)]
            axes.fill_between(xs, low, high, color=look.colour, alpha=0.16, linewidth=0, zorder=2)
        read = [(point.x, point.printed.number) for point in series.points if point.printed is not None]
        if read:
            axes.plot(*zip(*read, strict=True), color=look.colour, zorder=2.5, **AS_READ)
        if held := series.controls.get(control):
            ys = [point.value.mean for point in held]
            axes.plot([point.x for point in held], ys, color=look.colour, zorder=2.6, **CONTROLLED)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=7))
    axes.margins(x=0.03)


def draw_bars(axes: Axes, panel: Panel) -> None:
    """Groups of bars with their spread and, where there is room, their heights."""
    names = list(dict.fromkeys(point.x for series in panel.series for point in series.points))
    width = 0.8 / len(panel.series)
    inches = axes.get_position().width * axes.figure.get_figwidth()
    room = inches / (len(names) * len(panel.series)) > 0.27
    tallest = 0.0
    for place, series in enumerate(panel.series):
        for point in series.drawn:
            x = names.index(point.x) - 0.4 + width * (place + 0.5)
            height, error = point.value.mean, point.value.std or 0.0
            axes.bar(x, height, width * 0.92, color=series.look.colour, linewidth=0)
            if error:
                axes.errorbar(x, height, error, color=BLACK, elinewidth=0.7, capsize=1.5, capthick=0.7)
            tallest = max(tallest, height + error)
            if room:
                axes.annotate(
                    f"{height:.1f}", (x, height + error), (0, 2), textcoords="offset points", ha="center", fontsize=6
                )
    axes.set_xticks(range(len(names)), [panel.tick_labels.get(name, str(name)) for name in names])
    axes.tick_params(axis="x", length=0)
    axes.set_xlim(-0.6, len(names) - 0.4)
    axes.set_ylim(0, tallest * 1.12 or 1)


def draw_histogram(axes: Axes, panel: Panel) -> None:
    """Overlaid densities; each point is a bin that reaches to the next one's left edge."""
    for series in panel.series:
        points = series.drawn
        if len(points) < 2:
            continue
        edges = [point.x for point in points]
        edges.append(2 * edges[-1] - edges[-2])
        heights = [point.value.mean for point in points]
        axes.stairs(heights, edges, fill=True, color=series.look.colour, alpha=0.45, linewidth=0)
        axes.stairs(heights, edges, color=series.look.colour, linewidth=0.8)
    # Room above for the text in the corner.
    axes.set_ylim(0, axes.get_ylim()[1] * 1.22)
    axes.set_yticks([])
    axes.grid(False)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=4))
    axes.margins(x=0)


def label_ends(axes: Axes, panel: Panel) -> None:
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
