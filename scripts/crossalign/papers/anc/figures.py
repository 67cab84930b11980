"""Figures of `anc`."""

from collections.abc import Callable, Sequence

from crossalign.analysis.indexes import LABELS
from crossalign.catalog.addresses import Base, Run
from crossalign.papers.anc.items import PAPER, PRINTED_MODELS, normformer, xnli_tuned
from crossalign.papers.common.colours import SCALING, Look
from crossalign.papers.common.colours import language as language_look
from crossalign.papers.common.context import Context
from crossalign.papers.common.figure import Figure, Panel, Series, curve, with_readings
from crossalign.results.names import language, model

CORPUS = "xnliext"


def series(
    context: Context, label: str, look: Look, runs: Sequence[Run], pairs: Sequence[str], index: str, name: str
) -> Series:
    """A curve of the model called `name`, beside what was read off the paper's figure."""
    made = curve(context, label, look, runs, CORPUS, pairs, index)
    keys = {"model": PRINTED_MODELS.get(name, name), "pair": pairs[0] if len(pairs) == 1 else "mean"}
    return with_readings(context, made, runs, keys)


def panel(context: Context, name: str, runs: Sequence[Run], languages: list[str], index: str, title: str) -> Panel:
    """One model: a curve per language pair."""
    curves = [
        series(context, f"English-{language(lang)}", language_look(lang), runs, [f"en-{lang}"], index, name)
        for lang in languages
    ]
    return Panel(title, curves, ylabel=LABELS[index] if title != LABELS[index] else "similarity", ylim=(0, 1))


def models_figure(
    models: Callable[[dict], list[str]], languages: str, index: str, columns: int
) -> Callable[[Context], Figure]:
    """A panel per model, a curve per language pair."""

    def figure(context: Context) -> Figure:
        paper = context.config[PAPER]
        panels = [panel(context, name, [Base(name)], paper[languages], index, model(name)) for name in models(paper)]
        size = (3.3, 2.3) if len(panels) == 1 else (2.1, 1.8) if columns == 3 else (2.7, 2.0)
        return Figure(panels=panels, columns=columns, size=size)

    return figure


def scaling_figure(key: str, columns: int) -> Callable[[Context], Figure]:
    """A panel per size: the mean over the language pairs, its band the spread over them."""

    def figure(context: Context) -> Figure:
        paper = context.config[PAPER]
        pairs = [f"en-{lang}" for lang in paper["scaling_languages"]]
        panels = []
        for name in paper[key]:
            label = "mean over the language pairs"
            made = series(context, label, SCALING, [Base(name)], pairs, "anc", name)
            panels.append(Panel(model(name), [made], ylabel=LABELS["anc"], ylim=(0, 1)))
        notes = ["Lines: mean over the language pairs. Bands: standard deviation over them."]
        return Figure(panels=panels, columns=columns, size=(2.1, 1.7), notes=notes)

    return figure


def indexes_figure(
    runs: Callable[[dict], list[Run]], indexes: tuple[str, ...], variants: tuple[str, ...] = ()
) -> Callable[[Context], Figure]:
    """The NormFormer model under several indexes, and below them under those of `variants` that were computed."""

    def figure(context: Context) -> Figure:
        config = context.config
        panels = []
        for index in (*indexes, *variants):
            languages = config[PAPER]["norm_languages"]
            made = panel(context, normformer(config), runs(config), languages, index, LABELS[index])
            # Results made before an index was added are no reason for an empty panel.
            if index in indexes or any(one.points for one in made.series):
                panels.append(made)
        return Figure(panels=panels, columns=2, size=(2.7, 2.0))

    return figure


FIGURES: dict[str, Callable[[Context], Figure]] = {
    "figure1": models_figure(lambda paper: paper["schemes"], "norm_languages", "cka", 3),
    "figure2": models_figure(lambda paper: [paper["schemes"][-1]], "norm_languages", "matching", 1),
    "figure3": models_figure(lambda paper: paper["known_models"], "known_languages", "anc", 2),
    "figure4": models_figure(lambda paper: paper["schemes"], "norm_languages", "anc", 3),
    "figure5": scaling_figure("xlmr", 2),
    "figure6": scaling_figure("xglm", 3),
    "figure7": models_figure(lambda paper: [paper["second_normformer"]], "norm_languages", "cka", 1),
    "figure8": indexes_figure(lambda config: xnli_tuned(config, [normformer(config)]), ("cka", "anc")),
    "figure9": indexes_figure(
        lambda config: [Base(normformer(config))],
        ("pwcca", "svcca"),
        # As the library computes them that the authors' notebooks call; its SVCCA is the same.
        ("pwcca-ecco", "cca-ecco"),
    ),
}
