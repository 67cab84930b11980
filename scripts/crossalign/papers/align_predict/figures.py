"""Figures of `align-predict`."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from crossalign.catalog.addresses import Base
from crossalign.papers.align_predict.items import BLOCKS, PAPER, TASKS, inits, tuned
from crossalign.papers.common.colours import BLACK, SHORT, Look, depth
from crossalign.papers.common.colours import TASKS as TASK_LOOKS
from crossalign.papers.common.colours import language as language_look
from crossalign.papers.common.context import Context
from crossalign.papers.common.correlation import Correlations, similarity_targets
from crossalign.papers.common.curves import curve
from crossalign.papers.common.figure import Figure, Panel, Point, Series
from crossalign.results.names import INDEXES, init, language
from crossalign.results.names import TASKS as TASK_NAMES

SOURCE = "en"
REFERENCE = Look(BLACK, "o", "-", 1.6)


def index_of(context: Context) -> str:
    """The index of the config."""
    return context.config["similarity"]["index"]


def pair_title(lang: str) -> str:
    return f"English-{language(lang)}"


def tuned_panel(context: Context, lang: str) -> Panel:
    """The pretrained model and the three fine-tuned ones on one pair of languages."""
    pairs = [f"{SOURCE}-{lang}"]
    index = index_of(context)
    base = [Base(context.config[PAPER]["base"])]
    series = [curve(context, "pretrained", TASK_LOOKS["pretrained"], base, "pud", pairs, index)]
    series += [
        curve(
            context,
            TASK_NAMES[task],
            TASK_LOOKS[task],
            tuned(context.config, [task], SOURCE, ["ref"]),
            "pud",
            pairs,
            index,
        )
        for task in TASKS
    ]
    return Panel(pair_title(lang), series, ylabel=INDEXES[index], ylim=(0, 1))


def random_panel(
    context: Context, task: str, lang: str, layer_sets: Sequence[str], title: str = "", dash: str | tuple = "-"
) -> Panel:
    """REF and RANDOM-INIT models of one task on one pair of languages."""
    index = index_of(context)
    series = []
    for place, name in enumerate(["ref", *inits(layer_sets)]):
        look = REFERENCE if name == "ref" else depth(place - 1, len(layer_sets), dash)
        runs = tuned(context.config, [task], SOURCE, [name])
        series.append(curve(context, init(name), look, runs, "pud", [f"{SOURCE}-{lang}"], index))
    return Panel(title or pair_title(lang), series, ylabel=INDEXES[index], ylim=(0, 1))


def tuned_figure(item: str, languages: Callable[[Context], list[str]], columns: int = 1) -> Callable[[Context], Figure]:
    """Figures 1 and 5, and figure 1 of the talk."""

    def declared(context: Context) -> Figure:
        panels = [tuned_panel(context, lang) for lang in languages(context)]
        size = (3.3, 2.3) if columns == 1 else (2.1, 1.7)
        return Figure(item, context.title(item), panels, columns, size)

    return declared


def figure2(context: Context) -> Figure:
    """English-Russian similarity of the NER model: pairs of layers, then blocks of four."""
    item = f"{PAPER}/figure2"
    paper = context.config[PAPER]
    blocks = [block for block in BLOCKS if block in paper["layer_sets"]]
    panels = [random_panel(context, "ner", "ru", paper["layer_pairs"], "pairs of layers")]
    if blocks:
        panels.append(random_panel(context, "ner", "ru", blocks, "blocks of layers", SHORT))
    return Figure(item, context.title(item), panels, 2, (2.9, 2.2))


def correlation_figure(item: str) -> Callable[[Context], Figure]:
    """Spearman's rho by layer: fine-tuned models in full lines, the pretrained one dashed."""

    def declared(context: Context) -> Figure:
        series = []
        for task in TASKS:
            for pretrained in (False, True):
                found = Correlations(context, task, pretrained)
                # The band would be that of single seeds; six of them hide the curves.
                points = [Point(layer, replace(value, std=None)) for layer, value in found.by_layer().items()]
                look = TASK_LOOKS[task]
                look = Look(look.colour, look.marker, SHORT if pretrained else "-", 1.0 if pretrained else 1.4)
                label = f"{TASK_NAMES[task]}, {'pretrained' if pretrained else 'fine-tuned'}"
                series.append(Series(label, look, points, found.missing, len(found.runs)))
        panel = Panel("correlation of gap and similarity", series, ylabel="Spearman's rho")
        return Figure(item, context.title(item), [panel], 1, (3.6, 2.5))

    return declared


def figure4(context: Context) -> Figure:
    """The NER model with every target language, labelled at the curves' ends."""
    item = f"{PAPER}/figure4"
    runs = list(tuned(context.config, ["ner"], SOURCE, ["ref"]))
    series = [
        curve(context, language(lang), language_look(lang), runs, "pud", [f"{SOURCE}-{lang}"], index_of(context))
        for lang in similarity_targets(context)
    ]
    panel = Panel("English with every target, NER", series, ylabel=INDEXES[index_of(context)], ylim=(0, 1))
    return Figure(item, context.title(item), [panel], 1, (4.3, 3.2), direct=True)


def random_figure(name: str, task: str) -> Callable[[Context], Figure]:
    """Figures 6, 7, 8: RANDOM-INIT on every language of the study."""

    def declared(context: Context) -> Figure:
        item = f"{PAPER}/{name}"
        paper = context.config[PAPER]
        panels = [random_panel(context, task, lang, paper["layer_pairs"]) for lang in paper["similarity_languages"]]
        return Figure(item, context.title(item), panels, 3, (2.1, 1.7))

    return declared


def other_languages(context: Context) -> list[str]:
    return [lang for lang in context.config[PAPER]["similarity_languages"] if lang != "ru"]


FIGURES: dict[str, Callable[[Context], Figure]] = {
    "figure1": tuned_figure(f"{PAPER}/figure1", lambda context: ["ru"]),
    "figure2": figure2,
    "figure3": correlation_figure(f"{PAPER}/figure3"),
    "figure4": figure4,
    "figure5": tuned_figure(f"{PAPER}/figure5", other_languages, 3),
    "figure6": random_figure("figure6", "parsing"),
    "figure7": random_figure("figure7", "pos"),
    "figure8": random_figure("figure8", "ner"),
}
