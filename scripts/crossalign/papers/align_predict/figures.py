"""Figures of `align-predict`."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from crossalign.analysis.indexes import LABELS
from crossalign.catalog.addresses import Base, Run
from crossalign.catalog.targets import bases
from crossalign.papers.align_predict.correlation import SOURCE, correlations, similarity_targets
from crossalign.papers.align_predict.items import BLOCKS, PAPER, TASKS, inits, tuned
from crossalign.papers.common.colours import BLACK, SHORT, Look, depth
from crossalign.papers.common.colours import TASKS as TASK_LOOKS
from crossalign.papers.common.colours import language as language_look
from crossalign.papers.common.context import Context
from crossalign.papers.common.figure import Figure, Panel, Point, Series, curve
from crossalign.results.names import TASKS as TASK_NAMES
from crossalign.results.names import init, language

REFERENCE = Look(BLACK, "o", "-", 1.6)


def pair_curve(context: Context, label: str, look: Look, runs: Iterable[Run], lang: str) -> Series:
    """The similarity of English and another language by layer."""
    index = context.config["similarity"]["index"]
    return curve(context, label, look, runs, "pud", [f"{SOURCE}-{lang}"], index)


def panel(context: Context, title: str, series: list[Series]) -> Panel:
    """Similarities on one scale."""
    return Panel(title, series, ylabel=LABELS[context.config["similarity"]["index"]], ylim=(0, 1))


def tuned_panel(context: Context, lang: str) -> Panel:
    """The pretrained model and the three fine-tuned ones on one pair of languages."""
    base = [Base(name) for name in bases(context.config)]
    series = [pair_curve(context, "pretrained", TASK_LOOKS["pretrained"], base, lang)]
    for task in TASKS:
        runs = tuned(context.config, [task], SOURCE, ["ref"])
        series.append(pair_curve(context, TASK_NAMES[task], TASK_LOOKS[task], runs, lang))
    return panel(context, f"English-{language(lang)}", series)


def random_panel(
    context: Context, task: str, lang: str, layer_sets: Sequence[str], title: str = "", dash: str | tuple = "-"
) -> Panel:
    """REF and RANDOM-INIT models of one task on one pair of languages."""
    series = []
    for place, name in enumerate(["ref", *inits(layer_sets)]):
        look = REFERENCE if name == "ref" else depth(place - 1, len(layer_sets), dash)
        runs = tuned(context.config, [task], SOURCE, [name])
        series.append(pair_curve(context, init(name), look, runs, lang))
    return panel(context, title or f"English-{language(lang)}", series)


def tuned_figure(languages: Callable[[Context], list[str]], columns: int = 1) -> Callable[[Context], Figure]:
    """Figures 1 and 5, and figure 1 of the talk."""

    def figure(context: Context) -> Figure:
        panels = [tuned_panel(context, lang) for lang in languages(context)]
        return Figure(panels=panels, columns=columns, size=(3.3, 2.3) if columns == 1 else (2.1, 1.7))

    return figure


def figure2(context: Context) -> Figure:
    """English-Russian similarity of the NER model: pairs of layers, then blocks of four."""
    paper = context.config[PAPER]
    blocks = [block for block in BLOCKS if block in paper["layer_sets"]]
    panels = [random_panel(context, "ner", "ru", paper["layer_pairs"], "pairs of layers")]
    if blocks:
        panels.append(random_panel(context, "ner", "ru", blocks, "blocks of layers", SHORT))
    return Figure(panels=panels, columns=2, size=(2.9, 2.2))


def correlation_figure(context: Context) -> Figure:
    """Spearman's rho by layer: fine-tuned models in full lines, the pretrained one dashed."""
    series = []
    for task in TASKS:
        for pretrained in (False, True):
            found = correlations(context, task, pretrained)
            # The band would be that of single seeds; six of them hide the curves.
            points = [Point(layer, replace(value, std=None)) for layer, value in found.by_layer().items()]
            dash, width = (SHORT, 1.0) if pretrained else ("-", 1.4)
            look = replace(TASK_LOOKS[task], dash=dash, width=width)
            label = f"{TASK_NAMES[task]}, {'pretrained' if pretrained else 'fine-tuned'}"
            series.append(Series(label, look, points, found.missing, len(found.runs)))
    # The gap is taken with its sign turned, so that a high rho means: similar languages profit.
    heading = "correlation of similarity with transfer (minus gap)"
    found = Panel("correlation of gap and similarity", series, ylabel="Spearman's rho", heading=heading)
    return Figure(panels=[found], size=(3.6, 2.5))


def figure4(context: Context) -> Figure:
    """The NER model with every target language, labelled at the curves' ends."""
    runs = list(tuned(context.config, ["ner"], SOURCE, ["ref"]))
    series = [
        pair_curve(context, language(lang), language_look(lang), runs, lang)
        for lang in similarity_targets(context.config, "ner")
    ]
    return Figure(panels=[panel(context, "English with every target, NER", series)], size=(4.3, 3.2), direct=True)


def random_figure(task: str) -> Callable[[Context], Figure]:
    """Figures 6, 7, 8: RANDOM-INIT on every language of the study."""

    def figure(context: Context) -> Figure:
        paper = context.config[PAPER]
        panels = [random_panel(context, task, lang, paper["layer_pairs"]) for lang in paper["similarity_languages"]]
        return Figure(panels=panels, columns=3, size=(2.1, 1.7))

    return figure


def other_languages(context: Context) -> list[str]:
    """The languages of figure 5: all but that of figure 1."""
    return [lang for lang in context.config[PAPER]["similarity_languages"] if lang != "ru"]


FIGURES: dict[str, Callable[[Context], Figure]] = {
    "figure1": tuned_figure(lambda context: ["ru"]),
    "figure2": figure2,
    "figure3": correlation_figure,
    "figure4": figure4,
    "figure5": tuned_figure(other_languages, 3),
    "figure6": random_figure("parsing"),
    "figure7": random_figure("pos"),
    "figure8": random_figure("ner"),
}
