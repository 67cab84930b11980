"""Figures of `study`."""

import math
from collections.abc import Callable
from dataclasses import replace

from crossalign.analysis.indexes import LABELS
from crossalign.catalog.addresses import Base
from crossalign.catalog.studied import layer_sets, studied, study, targets
from crossalign.catalog.targets import tested_on
from crossalign.papers.common.colours import BLUE, GREEN, GREY, ORANGE, PURPLE, SHORT, VERMILLION, Look
from crossalign.papers.common.colours import TASKS as TASK_LOOKS
from crossalign.papers.common.colours import language as language_look
from crossalign.papers.common.context import Context
from crossalign.papers.common.figure import Figure, Panel, Point, Series, curve
from crossalign.papers.study.items import CORPUS, others, tasks, tuned
from crossalign.papers.study.tables import GROUPS, PRINTED, correlations_of, printed_changes
from crossalign.results.names import CONTROLS, METRICS, TASKS, language, model
from crossalign.results.values import Value

CONTROL, MATCHED = "length", "strangers"
INDEX_LOOKS = {"cka": Look(BLUE, "o"), "anc": Look(GREEN, "s"), "matching": Look(ORANGE, "^")}
TARGET_LOOKS = {"source": Look(BLUE, "o"), "seen": Look(VERMILLION, "s"), "unseen": Look(PURPLE, "^")}
DIAGNOSIS = {
    "cka": Look(BLUE, "o"),
    "cka-standardised": Look(GREEN, "s"),
    "matching": Look(PURPLE, "p"),
    "matching-standardised": Look(PURPLE, "h", SHORT),
    "variance-1": Look(VERMILLION, "v"),
    "variance-5": Look(VERMILLION, "^", SHORT),
    "variance-20": Look(ORANGE, "D", SHORT),
}
WIDE = (3.3, 2.3)


def mean_curve(context: Context, name: str, index: str, look: Look) -> Series:
    """An index by layer, mean over the languages; its band is the spread over them."""
    pairs = [f"en-{lang}" for lang in others(context.config)]
    return curve(context, LABELS[index], look, [Base(name)], CORPUS, pairs, index)


def figure1(context: Context) -> Figure:
    """Left three indexes as measured and, dotted, with the length of sentences taken out; right what translations have
    over other sentences of the same length."""
    panels = []
    for name in studied(context.config):
        series = [mean_curve(context, name, index, look) for index, look in INDEX_LOOKS.items()]
        bare = [under(each, MATCHED) for each in series if MATCHED in each.controls]
        shown = {model(name): series, f"{model(name)}, {CONTROLS[MATCHED]}": bare}
        panels += [Panel(title, every, ylabel="similarity with English", ylim=(0, 1)) for title, every in shown.items()]
    notes = ["Mean over the languages. Bands: standard deviation over the languages."]
    return Figure(panels=panels, columns=2, size=WIDE, notes=notes, control=CONTROL)


def under(series: Series, control: str) -> Series:
    """The curve under a control alone."""
    return replace(series, points=series.controls.get(control, []), controls={})


def by_language(index: str, controlled: bool = True) -> Callable[[Context], Figure]:
    """A curve per language: as measured on the left, with the length of sentences taken out on the right."""

    def figure(context: Context) -> Figure:
        panels = []
        for name in studied(context.config):
            series = [
                curve(context, language(lang), language_look(lang), [Base(name)], CORPUS, [f"en-{lang}"], index)
                for lang in others(context.config)
            ]
            shown = {model(name): [replace(each, controls={}) for each in series]}
            if controlled:
                shown[f"{model(name)}, {CONTROLS[CONTROL]}"] = [under(each, CONTROL) for each in series]
            panels += [Panel(title, every, ylabel=LABELS[index], ylim=(0, 1)) for title, every in shown.items()]
        return Figure(panels=panels, columns=2, size=WIDE)

    return figure


def figure5(context: Context) -> Figure:
    """What each part of the layers is worth: a column for each task, a row for each model."""
    config = context.config
    quarters = study(config).get("layer_sets") == "quarters"
    label = "quarter of the layers, from the lowest" if quarters else "last layer of the pair"
    panels = []
    for name in studied(config):
        parts = layer_sets(config, name)
        # Quarters are counted, so that models of any depth compare; pairs stand where they end.
        ends = [int(layers.rpartition("-")[2]) for layers in parts.values()]
        places = dict(zip(parts, range(1, len(parts) + 1) if quarters else ends, strict=True))
        for each in tasks(config):
            series = [
                change_curve(context, name, each, group, {parts[part]: place for part, place in places.items()})
                for group, languages in targets(config, each).items()
                if languages
            ]
            series += [] if context.artificial else printed_curves(each, places)
            panels.append(Panel(f"{model(name)}, {TASKS[each]}", series, xlabel=label, ylabel="change in points"))
    values = [point.value for panel in panels for series in panel.series for point in series.drawn]
    ends = [value.mean + side * (value.std or 0) for value in values for side in (-1, 1)]
    scale = (5 * math.floor(min(ends) / 5), max(1, math.ceil(max(ends) + 0.5))) if ends else None
    notes = ["RANDOM-INIT minus REF. Bands: standard deviation over seeds."]
    panels = [replace(panel, ylim=scale) for panel in panels]
    return Figure(panels=panels, columns=len(tasks(config)), size=(2.2, 1.8), notes=notes)


def change_curve(context: Context, name: str, each: str, group: str, places: dict[str, int]) -> Series:
    """RANDOM-INIT minus REF, mean over the languages of a group."""
    sets = [tested_on(context.config, each, lang) for lang in targets(context.config, each)[group]]

    def value(init: str) -> Value:
        return context.results.sample(tuned(context.config, name, each, init), sets, METRICS[each]).value()

    reference = value("ref")
    points = [Point(place, value(f"random-{layers}").minus(reference)) for layers, place in places.items()]
    missing = tuple(dict.fromkeys(address for point in points for address in point.value.missing))
    return Series(GROUPS[group], TARGET_LOOKS[group], points, missing, len(context.config["seeds"]))


def printed_curves(each: str, places: dict[str, int]) -> list[Series]:
    """mBERT as align-predict prints it."""
    curves = []
    for group, dash in (("source", SHORT), ("seen", (0, (1, 1.2)))):
        _, changes = printed_changes(each, group, list(places))
        points = [Point(place, Value(change)) for place, change in zip(places.values(), changes, strict=True)]
        if any(change is not None for change in changes):
            curves.append(Series(f"{PRINTED}, {GROUPS[group]}", Look(GREY, TARGET_LOOKS[group].marker, dash), points))
    return curves


def figure6(context: Context) -> Figure:
    """Whether a few neurons hold the variance of a layer, and what is found when all weigh alike."""
    panels = [
        Panel(
            model(name),
            [without_band(mean_curve(context, name, index, look)) for index, look in DIAGNOSIS.items()],
            ylabel="similarity; share of the variance",
            ylim=(0, 1),
        )
        for name in studied(context.config)
    ]
    return Figure(panels=panels, columns=2, size=WIDE, notes=["Mean over the languages."])


def without_band(series: Series) -> Series:
    """The curve alone: the bands of so many would hide it."""
    return replace(
        series, points=[replace(one, value=replace(one.value, std=None)) for one in series.points], controls={}
    )


def figure7(context: Context) -> Figure:
    """Spearman's rho over languages by layer: CKA in full lines, ANC dashed."""
    panels = []
    for name in studied(context.config):
        series = []
        for each in tasks(context.config):
            for index in ("cka", "anc"):
                found = correlations_of(context, name, each, index)
                # The band would be that of single seeds; six of them hide the curves.
                points = [Point(layer, replace(value, std=None)) for layer, value in found.by_layer().items()]
                look = replace(TASK_LOOKS[each], dash="-" if index == "cka" else SHORT)
                label = f"{TASKS[each]}, {LABELS[index]}"
                series.append(Series(label, look, points, found.missing, len(found.runs)))
        panels.append(Panel(model(name), series, ylabel="Spearman's rho", ylim=(-1.04, 1.04)))
    return Figure(panels=panels, columns=2, size=WIDE)


FIGURES: dict[str, Callable[[Context], Figure]] = {
    "figure1": figure1,
    "figure2": by_language("cka"),
    "figure3": by_language("anc"),
    "figure4": by_language("matching", controlled=False),
    "figure5": figure5,
    "figure6": figure6,
    "figure7": figure7,
}
