"""Figures of the talk."""

from collections.abc import Callable, Iterable

from crossalign.catalog.addresses import Tuned
from crossalign.catalog.sets import DataSet
from crossalign.catalog.targets import KINDS, bases
from crossalign.papers.align_predict.figures import correlation_figure, tuned_figure
from crossalign.papers.common.colours import SCALING, SCRIPTS, Look
from crossalign.papers.common.colours import SYSTEMS as SYSTEM_LOOKS
from crossalign.papers.common.context import Context
from crossalign.papers.common.figure import Figure, Panel, Point, Series
from crossalign.papers.talk.items import PAPER, in_latin, systems, task_of
from crossalign.results.names import METRICS, TASKS, language
from crossalign.results.names import systems as system_names
from crossalign.results.values import Value

# MLQA, mean F1 over its languages, of models fine-tuned on English: Conneau et al. 2020 (large); Goyal et al. 2021 (XL
# and XXL). The slide's own values are not in its text.
CITED = {"XLM-R large\n550M": 70.7, "XLM-R XL\n3.5B": 73.4, "XLM-R XXL\n10.7B": 74.8}


def score(context: Context, runs: Iterable[Tuned], task: str) -> Value:
    """The score of a system on the test set of the language that it was trained on."""
    return context.results.value(runs, lambda run: [DataSet(KINDS[task], run.source, "test")], METRICS[task])


def bars(label: str, look: Look, values: dict[str, Value]) -> Series:
    """One colour of bars."""
    missing = tuple(address for value in values.values() for address in value.missing)
    wanted = max((value.wanted for value in values.values()), default=0)
    return Series(label, look, [Point(name, value) for name, value in values.items()], missing, wanted)


def category(bilstm: Value, mbert: Value, adapted: Value) -> str:
    """Easy, Intermediate or Hard: whether mBERT, or mBERT after MLM, beats the baseline; empty when it is not known."""
    if bilstm.mean is None or mbert.mean is None:
        return ""
    if mbert.mean > bilstm.mean:
        return "Easy"
    if adapted.mean is None:
        return ""
    return "Intermediate" if adapted.mean > bilstm.mean else "Hard"


def figure2(context: Context) -> Figure:
    """Four systems on unseen languages and what kind of language that makes each; a panel per task."""
    config = context.config
    languages = config[PAPER]["profile_languages"]
    names = system_names(bases(config, PAPER)[0])
    panels = []
    for task in ("parsing", "ner"):
        if not (chosen := [lang for lang in languages if task_of(config, lang) == task]):
            continue
        scores = {
            system: {language(lang): score(context, systems(config, lang, [task], [system]), task) for lang in chosen}
            for system in names
        }
        series = [bars(label, SYSTEM_LOOKS[system], scores[system]) for system, label in names.items()]
        kinds = {name: category(*(scores[s][name] for s in ("bilstm", "mbert", "mlm"))) for name in scores["mbert"]}
        labels = {name: f"{name}\n{kind}" for name, kind in kinds.items() if kind}
        title = f"{TASKS[task]}, trained and tested on each language"
        panels.append(Panel(title, series, "bars", "", METRICS[task], tick_labels=labels))
    return Figure(panels=panels, size=(min(0.4 + 1.4 * len(languages), 9.5), 2.3), share_y=False)


def figure3(context: Context) -> Figure:
    """Original against Latin script; a panel per language and task."""
    panels = []
    for lang, tasks in in_latin(context.config).items():
        for task in tasks:
            panels.append(script_panel(context, lang, task, ("bilstm", "mono", "mbert", "mlm"), "unseen-"))
    for lang in context.config[PAPER]["transliterated_seen"]:
        panels.append(script_panel(context, lang, "ner", ("mbert", "mlm"), ""))
    columns, size = (3, (3.0, 1.7)) if len(panels) > 1 else (1, (4.6, 2.3))
    return Figure(panels=panels, columns=columns, size=size, share_y=False)


def script_panel(context: Context, lang: str, task: str, models: tuple[str, ...], study: str) -> Panel:
    """One language and task. The baseline, and MLM on a language that mBERT knows, exist in one script only."""
    names = system_names(bases(context.config, PAPER)[0])
    series = []
    for script, suffix in (("original", ""), ("latin", "+latn")):
        values = {}
        for system in models:
            if (system == "bilstm" and suffix) or (not study and system == "mlm" and not suffix):
                values[names[system]] = Value()
                continue
            runs = systems(context.config, lang, [task], [system], suffix, study=study)
            values[names[system]] = score(context, runs, task)
        label = "original script" if script == "original" else "Latin script"
        series.append(bars(label, SCRIPTS[script], values))
    return Panel(f"{language(lang)}, {TASKS[task]}", series, "bars", "", METRICS[task])


def figure4(context: Context) -> Figure:
    """MLQA by size of XLM-R, from the papers that the slide cites."""
    points = [Point(name, Value(number)) for name, number in CITED.items()]
    panel = Panel("MLQA, cited", [Series("cited", SCALING, points)], "bars", "", "F1")
    note = "Numbers of Conneau et al. 2020 and Goyal et al. 2021; no run of ours. The slide's own are not in its text."
    return Figure(panels=[panel], size=(3.3, 2.1), notes=[note])


FIGURES: dict[str, Callable[[Context], Figure]] = {
    "figure1": tuned_figure(lambda context: ["de"]),
    "figure2": figure2,
    "figure3": figure3,
    "figure4": figure4,
    "figure5": correlation_figure,
}
