"""Figures of `adjust`: distances of related and unrelated words."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from crossalign.analysis.distances import common_bins
from crossalign.catalog.addresses import Adapted, Base, Run
from crossalign.catalog.targets import adjust_seeds, base_of
from crossalign.papers.adjust.items import PAPER, adjustment, tuned
from crossalign.papers.common.colours import PAIRS
from crossalign.papers.common.context import Context
from crossalign.papers.common.figure import Figure, Panel, Point, Series
from crossalign.results.names import TASKS, language
from crossalign.results.values import Value

LABELS = {"related": "related words", "unrelated": "unrelated words"}


def models(context: Context, lang: str, tasks: list[str]) -> dict[str, Run]:
    """The models of a column, first seed: before any task, then for each task."""
    config = context.config
    seed = adjust_seeds(config)[0]
    base, made = base_of(config, seed, PAPER), adjustment(config, lang)
    found: dict[str, Run] = {"original": Base(base), "adjusted": Adapted(base, made, seed)}
    for task in tasks:
        found[f"original, {TASKS[task]}"] = next(iter(tuned(config, [task], None, seeds=[seed])))
        found[f"adjusted, {TASKS[task]}"] = next(iter(tuned(config, [task], made, seeds=[seed])))
        found[f"continual, {TASKS[task]}"] = next(iter(tuned(config, [task], made, "continual", seeds=[seed])))
    return found


def column(context: Context, lang: str, models: dict[str, Run], titles: Callable[[str], str]) -> list[Panel]:
    """The panels of one language, on common bins: two densities each, and the area under the ROC curve between them."""
    found = {name: context.results.distances(run, lang) for name, run in models.items()}
    there = [name for name in models if found[name] is not None]
    edges, counts = common_bins([found[name] for name in there]) if there else ([], [])
    merged = dict(zip(there, counts, strict=True))
    panels = []
    for name, run in models.items():
        missing = () if name in merged else (f"distances/{run.path()}/{lang}",)
        series = [
            Series(label, PAIRS[kind], density(edges, merged[name][kind]) if name in merged else [], missing, 1)
            for kind, label in LABELS.items()
        ]
        area = found[name].summary.get("auc") if name in merged else None
        inset = f"AUC {area:.2f}" if isinstance(area, int | float) else ""
        # Heights differ several times between models, and a common scale would flatten most of them.
        panels.append(Panel(titles(name), series, "histogram", "L2 distance", "density (own scale)", inset=inset))
    return panels


def density(edges: Sequence[float], counts: Sequence[int]) -> list[Point]:
    """Counts as a density: the area under the bars is one."""
    total = float(sum(counts))
    return [
        Point(float(left), Value(float(count) / (total * float(right - left))))
        for left, right, count in zip(edges[:-1], edges[1:], counts, strict=True)
        if total
    ]


def figure1(context: Context) -> Figure:
    """Hindi and NLI: five models."""
    lang = "hi" if "hi" in context.config[PAPER]["languages"] else context.config[PAPER]["languages"][0]
    panels = column(context, lang, models(context, lang, ["nli"]), str)
    panels = [replace(panel, heading=f"{language(lang)}: {panel.title}") for panel in panels]
    return Figure(panels=panels, columns=3, size=(2.0, 1.4))


def figure2(context: Context) -> Figure:
    """All languages (columns) and all models (rows); within a column the same pairs of words and the same bins."""
    paper = context.config[PAPER]
    # The order of the paper: QA, NER, NLI.
    tasks = [task for task in ("qa", "ner", "nli") if task in paper["tasks"]]
    columns = [
        column(context, lang, models(context, lang, tasks), f"{language(lang)}: {{}}".format)
        for lang in paper["languages"]
    ]
    panels = [panel for row in zip(*columns, strict=True) for panel in row]
    return Figure(panels=panels, columns=len(columns), size=(1.75, 0.95))


FIGURES: dict[str, Callable[[Context], Figure]] = {"figure1": figure1, "figure2": figure2}
