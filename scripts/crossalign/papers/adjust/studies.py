"""Tables 5, 6, 7 and 9 of `adjust`: every task of one language, one setting of the adjustment varied."""

from collections.abc import Callable

from crossalign.catalog.sets import DataSet
from crossalign.papers.adjust.arms import (
    FAMILIES,
    METRICS,
    NER_NOTE,
    Board,
    arm,
    judge_best,
    sets_in,
    size_variant,
)
from crossalign.papers.adjust.items import PAPER, adjustment
from crossalign.papers.common.context import Context
from crossalign.papers.common.table import Cell, Column, Row, Table
from crossalign.results.names import TASKS
from crossalign.results.published import published


def study_columns(context: Context, lang: str, base: str | None = None) -> list[tuple[str, DataSet, str]]:
    """The columns of tables 5, 6, 7, 9: task, set and metric; everything in one language."""
    return [
        (task, data, metric)
        for task in context.config[PAPER]["tasks"]
        for data in sets_in(context, task, lang, base)
        if data.family != "xnlimixed"
        for metric in METRICS[task]
    ]


def study_table(
    board: Board, item: str, stub: str, lang: str, rows: list[tuple[str, list[Cell]]], base: str | None = None
) -> Table:
    """A table whose columns are the test sets of one language; of the NER columns one is judged."""
    context = board.context
    places = study_columns(context, lang, base)
    ner = [place for place, (task, _, _) in enumerate(places) if task == "ner"]
    if len(ner) == 2:
        picked = judge_best(*([cells[place] for _, cells in rows] for place in ner))
        for column, place in zip(picked, ner, strict=True):
            for cell, (_, cells) in zip(column, rows, strict=True):
                cells[place] = cell
    heads = [
        Column(
            f"{FAMILIES[data.family]}, {METRICS[task][metric]}" if task == "ner" else FAMILIES[data.family], TASKS[task]
        )
        for task, data, metric in places
    ]
    made = [Row(label, list(cells)) for label, cells in rows]
    title = context.title(item)
    return Table(item, title, stub, heads, made, [NER_NOTE] if ner else [], published=board.printed)


AGGREGATIONS = {"subword": "subword alignment"}
TOKENS = {"cls": "[CLS]", "clssep": "[CLS] [SEP]"}


def ablation(name: str, study: str, field: str, stub: str, variant: Callable[[str], str]) -> Callable[[Context], Table]:
    """Tables 5, 6, 7: gains over the original model with one setting varied."""

    def declared(context: Context) -> Table:
        item = f"{PAPER}/{name}"
        board = Board(context, published(item))
        settings = context.config[PAPER][study]
        lang = settings["lang"]
        rows = []
        for value in settings.get("values", settings.get("pairs")):
            made = adjustment(context.config, lang, **{field: value})
            cells = [
                board.gain(
                    arm(context, "adjusted", task, made, variant(value)),
                    arm(context, "original", task, None),
                    data,
                    lang,
                    metric,
                )
                for task, data, metric in study_columns(context, lang)
            ]
            rows.append((variant(value).partition("=")[2], cells))
        return study_table(board, item, stub, lang, rows)

    return declared


def table9(context: Context) -> Table:
    """mBERT with a larger Hindi vocabulary."""
    item = f"{PAPER}/table9"
    study = context.config[PAPER]["extended"]
    lang, base = study["lang"], study["base"]
    board = Board(context, published(item), "embert")
    choices = [("original", None, ""), *(("adjusted", pairs, size_variant(pairs)) for pairs in study["pairs"])]
    rows = []
    for name, pairs, variant in choices:
        made = None if pairs is None else adjustment(context.config, lang, pairs=pairs)
        cells = [
            board.score(arm(context, name, task, made, variant, base), data, lang, metric)
            for task, data, metric in study_columns(context, lang, base)
        ]
        rows.append((f"{name}, {pairs.upper()} pairs" if pairs else name, cells))
    return study_table(board, item, "model", lang, rows, base)
