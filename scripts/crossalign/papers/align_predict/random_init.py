"""Cells and rows of the RANDOM-INIT tables: the REF score, then differences to it; and the sets behind them."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from crossalign.catalog.addresses import Tuned
from crossalign.catalog.sets import DataSet
from crossalign.catalog.targets import KINDS, having
from crossalign.papers.align_predict.items import PAPER, inits, train_set, tuned
from crossalign.papers.common.context import Context
from crossalign.papers.common.table import PAIRS, Cell, Column, Row
from crossalign.results.comparable import other_sets
from crossalign.results.names import METRICS, language
from crossalign.results.published import Printed, Published
from crossalign.results.values import Value

DELTA_NOTE = "REF: score without re-initialisation. Layer columns: RANDOM-INIT minus REF, in points."
MEAN_NOTE = (
    "The mean rows cover every language of the table but the source. The means that the paper prints are not those of "
    "its rows, so ours are compared with both."
)
SLOVENIAN_NOTE = (
    "Slovenian has no PUD treebank: parsing and POS are tested on SSJ. The row that the paper calls Slovenian is "
    "probably Swedish, so it is not judged"
)


def tested_on(config: dict, task: str, lang: str) -> DataSet:
    """Tables 1, 6, 7, 8: the PUD treebank or the one named instead of it; WikiANN for NER."""
    if task == "ner":
        return DataSet("ner", f"wikiann_{lang}", "test")
    return DataSet("trees", config[PAPER]["test_treebanks"].get(lang, f"{lang}_pud"), "test")


def own_set(config: dict, task: str, lang: str, split: str = "test") -> DataSet:
    """Table 5: the language's own treebank."""
    if task == "ner":
        return DataSet("ner", f"wikiann_{lang}", split)
    paper = config[PAPER]
    return DataSet("trees", paper["own_treebanks"].get(lang) or paper["treebanks"][lang], split)


def sets_behind(config: dict, task: str, source: str, target: str) -> list[DataSet]:
    """What a cell of tables 1, 6, 7, 8 depends on: the set that is trained on and those that are tested on."""
    targets = others(config, task, source) if target == "X" else [target]
    return [
        DataSet(KINDS[task], train_set(config, task, source), "train"),
        *(tested_on(config, task, lang) for lang in targets),
    ]


def own_places(config: dict) -> list[tuple[str, str]]:
    """Language and split of every row of table 5 for one task."""
    return [("en", "dev"), ("en", "test"), *((lang, "test") for lang in config[PAPER]["own_treebanks"])]


def own_sets_behind(config: dict, task: str, *places: tuple[str, str]) -> list[DataSet]:
    """The same of cells of table 5; each place is a language and a split."""
    sets = [own_set(config, task, lang, split) for lang, split in places]
    return [DataSet(KINDS[task], train_set(config, task, "en"), "train"), *sets]


def others(config: dict, task: str, source: str) -> list[str]:
    """The languages behind a mean row: neither the source nor those beside the table."""
    beside = config[PAPER]["extra_targets"]
    return [lang for lang in having(config, "languages", task) if lang not in (source, *beside)]


def slovenian_note(config: dict, *tasks: str) -> list[str]:
    """Where Slovenian is among the languages of one of the tasks."""
    there = {lang for task in tasks for lang in having(config, "languages", task)}
    if "sl" not in there:
        return []
    beside = ""
    if "sv" in there.intersection(config[PAPER]["extra_targets"]):
        treebank = tested_on(config, "parsing", "sv").name
        beside = f"; Swedish ({treebank}) is run beside it and left out of the means"
    return [f"{SLOVENIAN_NOTE}{beside}."]


def runs_of(context: Context, task: str, source: str, init: str, train: str | None = None) -> list[Tuned]:
    """The seeds of one model; `train` names another training set than the source's usual one."""
    runs = sorted(tuned(context.config, [task], source, [init]))
    return [replace(run, source=train) for run in runs] if train else runs


def columns(layer_sets: Sequence[str]) -> list[Column]:
    """REF and the layer sets."""
    return [Column("REF"), *(Column(layers, "re-initialised layers") for layers in layer_sets)]


def doubts(task: str, source: str, target: str) -> str:
    """Why the notes on the paper call a printed row doubtful."""
    if task != "ner" and target == "sl":
        return "the printed row is probably Swedish"
    if task != "ner" and source == "ru" and target == "ar":
        return "the printed row is not plausible as zero-shot transfer"
    return ""


def recomputed(table: Published, keys: dict[str, str]) -> float | None:
    """The mean of the printed rows that a printed mean row sums up; None where one is unreadable."""
    rows = [row for row in table.select(keys) if row["target"] not in ("X", keys["source"])]
    if not rows or any(not row["value"] for row in rows):
        return None
    return sum(float(row["value"]) for row in rows) / len(rows)


def pair_cells(
    context: Context,
    keys: dict[str, str],
    sets: Sequence[DataSet],
    find: Callable[[dict[str, str]], Printed | None],
    train: str | None = None,
    measured_on: Callable[[dict], list[DataSet]] | None = None,
) -> list[Cell]:
    """One row: REF and a difference per layer pair. `find` gives the printed value under some keys, and `measured_on`
    what it depends on, where our config may have other languages or sets."""
    task, metric = keys["task"], METRICS[keys["task"]]
    reference = Value()
    cells = []
    for init in ["ref", *inits(context.config[PAPER]["layer_pairs"])]:
        runs = runs_of(context, task, keys["source"], init, train)
        ours = context.results.value(runs, sets, metric)
        score = init == "ref"
        if score:
            reference = ours
        else:
            ours = ours.minus(reference)
        named = keys | {"layers": init.removeprefix("random-"), "metric": metric, "kind": "score" if score else "delta"}
        printed = find(named)
        shade = "" if score else PAIRS.classify(ours.mean)
        theirs = "" if score or printed is None else PAIRS.classify(printed.number)
        # A row that is not printed may be of a language that the papers' config does not know.
        other = other_sets(context.config, measured_on) if measured_on and printed else ""
        verdict = context.judge(task, terms=1 if score else 2, runs=runs, other=other).number(printed, ours)
        cells.append(
            Cell(named, ours, signed=not score, shade=shade, printed_shade=theirs, printed=printed, verdict=verdict)
        )
    return cells


def source_row(context: Context, detail: Published, task: str, source: str, target: str, group: str, label: str) -> Row:
    """A row for a source and a target, `X` for the mean over the other languages.

    `detail` is the printed table that holds the rows behind a printed mean.
    """
    targets = others(context.config, task, source) if target == "X" else [target]
    sets = [tested_on(context.config, task, lang) for lang in targets]

    def find(keys: dict[str, str]) -> Printed | None:
        found = context.printed.find(keys)
        if found and target == "X":
            rows = {name: keys[name] for name in ("task", "source", "layers")}
            return replace(found, recomputed=recomputed(detail, rows))
        return replace(found, doubt=found.doubt or doubts(task, source, target)) if found else None

    keys = {"task": task, "source": source, "target": target}
    cells = pair_cells(context, keys, sets, find, measured_on=lambda config: sets_behind(config, **keys))
    return Row(label, cells, group, summary=target == "X" and label.startswith("Mean"))


def target_name(context: Context, lang: str) -> str:
    """A target's name; a language beside the table says so."""
    return language(lang) + (" (beside)" if lang in context.config[PAPER]["extra_targets"] else "")
