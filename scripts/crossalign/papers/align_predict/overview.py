"""The first paper's main finding as one picture: its table 1 of a run beside what was printed.

Which layers matter in the language of training, and which in all others: the change of the score when a pair of layers
begins at random. Read from the table's CSV, so a picture can be drawn of any run that has the table.
"""

import csv
from pathlib import Path

from matplotlib import rc_context
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from crossalign.papers.common.colours import BLUE, GREY, VERMILLION
from crossalign.papers.common.draw import STYLE

PANELS = {"parsing": "Parsing, LAS", "pos": "POS, accuracy", "ner": "NER, F1"}
PAIRS = ("1-2", "3-4", "5-6", "7-8", "9-10", "11-12")
TARGETS = {"en": ("tested in English", BLUE, "o"), "X": ("tested in other languages", VERMILLION, "s")}
PAPER = (0, (1, 1.5))


def changes(table: Path) -> dict[tuple[str, str, str], tuple[float, float, float]]:
    """By task, target and layers: mean, spread over seeds and what was printed; English is the source."""
    with table.open(encoding="utf-8", newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if row["source"] == "en" and row["kind"] == "delta"]
    return {
        (row["task"], row["target"], row["layers"]): (float(row["mean"]), float(row["std"] or 0), float(row["printed"]))
        for row in rows
        if row["mean"] and row["printed"]
    }


def draw_random_init(table: Path, picture: Path) -> None:
    """Write the picture; nothing is written where the table lacks what it shows."""
    values = changes(table)
    if all((task, target, pair) in values for task in PANELS for target in TARGETS for pair in PAIRS):
        with rc_context(STYLE):
            draw_changes(values).savefig(picture, format="png", metadata={"Software": None})


def draw_changes(values: dict[tuple[str, str, str], tuple[float, float, float]]) -> Canvas:
    """A panel for each task, all on one scale."""
    with rc_context(STYLE):
        canvas = Canvas(figsize=(7.4, 2.9))
        first = None
        for place, (task, title) in enumerate(PANELS.items()):
            axes = canvas.add_axes((0.065 + 0.31 * place, 0.3, 0.295, 0.615), sharey=first)
            first = first or axes
            axes.set_title(title, loc="left")
            axes.axhline(0, color=GREY, linewidth=0.6)
            for target, (_, colour, marker) in TARGETS.items():
                ours, spread, paper = zip(*(values[task, target, pair] for pair in PAIRS), strict=True)
                axes.errorbar(PAIRS, ours, spread, color=colour, marker=marker, linewidth=1.3, capsize=1.5)
                axes.plot(PAIRS, paper, color=colour, linestyle=PAPER, linewidth=1.2, marker=marker, mfc="white")
            axes.set_xlabel("layers re-initialised")
            axes.tick_params(labelleft=place == 0)
        first.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
        first.set_ylabel("change in points")
        keys = [
            Line2D([], [], color=colour, marker=marker, linewidth=1.3, label=label)
            for label, colour, marker in TARGETS.values()
        ]
        keys.append(Line2D([], [], color=GREY, linestyle=PAPER, marker="o", mfc="white", label="the paper (mBERT)"))
        canvas.legend(handles=keys, loc="lower center", ncols=3, bbox_to_anchor=(0.5, 0.055))
        canvas.text(0.5, 0.02, "Bars: standard deviation over seeds.", ha="center", color=GREY, fontsize=6.5)
        return canvas
