"""Figures of `anc`."""

from collections.abc import Callable

from crossalign.catalog.addresses import Base, Run
from crossalign.papers.anc.items import PAPER, normformer, xnli_tuned
from crossalign.papers.common.colours import SCALING
from crossalign.papers.common.colours import language as language_look
from crossalign.papers.common.context import Context
from crossalign.papers.common.curves import curve, with_readings
from crossalign.papers.common.figure import Figure, Panel
from crossalign.results.names import INDEXES, PRINTED_MODELS, language, model
from crossalign.results.published import Published, readings

CORPUS = "xnliext"


def panel(
    context: Context, name: str, runs: list[Run], languages: list[str], index: str, title: str, printed: Published
) -> Panel:
    """One model: a curve per language pair, beside what was read off the paper's figure."""
    series = []
    for lang in languages:
        pair = f"en-{lang}"
        made = curve(context, f"English-{language(lang)}", language_look(lang), runs, CORPUS, [pair], index)
        keys = {"model": PRINTED_MODELS.get(name, name), "pair": pair}
        series.append(with_readings(context, PAPER, made, runs, printed, keys))
    return Panel(title, series, ylabel=INDEXES[index] if title != INDEXES[index] else "similarity", ylim=(0, 1))


def models_figure(
    name: str, models: Callable[[dict], list[str]], languages: str, index: str, columns: int
) -> Callable[[Context], Figure]:
    """A panel per model, a curve per language pair."""

    def declared(context: Context) -> Figure:
        item = f"{PAPER}/{name}"
        paper = context.config[PAPER]
        printed = readings(item)
        panels = [
            panel(context, one, [Base(one)], paper[languages], index, model(one), printed) for one in models(paper)
        ]
        size = (3.3, 2.3) if len(panels) == 1 else (2.1, 1.8) if columns == 3 else (2.7, 2.0)
        return Figure(item, context.title(item), panels, columns, size)

    return declared


def scaling_figure(name: str, key: str, columns: int) -> Callable[[Context], Figure]:
    """A panel per size: the mean over the language pairs, its band the spread over them."""

    def declared(context: Context) -> Figure:
        item = f"{PAPER}/{name}"
        paper = context.config[PAPER]
        printed = readings(item)
        pairs = [f"en-{lang}" for lang in paper["scaling_languages"]]
        panels = []
        for one in paper[key]:
            made = curve(context, "mean over the language pairs", SCALING, [Base(one)], CORPUS, pairs, "anc")
            keys = {"model": PRINTED_MODELS.get(one, one), "pair": "mean"}
            series = [with_readings(context, PAPER, made, [Base(one)], printed, keys)]
            panels.append(Panel(model(one), series, ylabel=INDEXES["anc"], ylim=(0, 1)))
        notes = ["Bands: standard deviation over the language pairs."]
        return Figure(item, context.title(item), panels, columns, (2.1, 1.7), notes=notes)

    return declared


def indexes_figure(
    name: str, runs: Callable[[dict], list[Run]], indexes: tuple[str, ...], variants: tuple[str, ...] = ()
) -> Callable[[Context], Figure]:
    """The NormFormer model under several indexes, and below them under those of `variants` that were computed."""

    def declared(context: Context) -> Figure:
        item = f"{PAPER}/{name}"
        languages = context.config[PAPER]["norm_languages"]
        model_name = normformer(context.config)
        panels = [
            panel(context, model_name, runs(context.config), languages, index, INDEXES[index], readings(item))
            for index in (*indexes, *variants)
        ]
        # Results made before an index was added are no reason for an empty panel.
        panels = [
            one
            for place, one in enumerate(panels)
            if place < len(indexes) or any(series.points for series in one.series)
        ]
        return Figure(item, context.title(item), panels, 2, (2.7, 2.0))

    return declared


FIGURES: dict[str, Callable[[Context], Figure]] = {
    "figure1": models_figure("figure1", lambda paper: paper["schemes"], "norm_languages", "cka", 3),
    "figure2": models_figure("figure2", lambda paper: [paper["schemes"][-1]], "norm_languages", "matching", 1),
    "figure3": models_figure("figure3", lambda paper: paper["known_models"], "known_languages", "anc", 2),
    "figure4": models_figure("figure4", lambda paper: paper["schemes"], "norm_languages", "anc", 3),
    "figure5": scaling_figure("figure5", "xlmr", 2),
    "figure6": scaling_figure("figure6", "xglm", 3),
    "figure7": models_figure("figure7", lambda paper: [paper["second_normformer"]], "norm_languages", "cka", 1),
    "figure8": indexes_figure("figure8", lambda config: xnli_tuned(config, [normformer(config)]), ("cka", "anc")),
    "figure9": indexes_figure(
        "figure9",
        lambda config: [Base(normformer(config))],
        ("pwcca", "svcca"),
        # As the library computes them that the authors' notebooks call; its SVCCA is the same.
        ("pwcca-ecco", "cca-ecco"),
    ),
}
