"""Tables of `adjust`."""

from collections.abc import Callable

from crossalign.catalog.addresses import Tuned
from crossalign.catalog.sets import DataSet
from crossalign.catalog.targets import evaluation_sets
from crossalign.papers.adjust.arms import (
    FAMILIES,
    METRICS,
    NER_NOTE,
    Arm,
    Board,
    arm,
    arm_names,
    compared,
    judge_best,
    mark_note,
    scope_notes,
    setting_of,
    size_variant,
)
from crossalign.papers.adjust.items import PAPER, adjustment
from crossalign.papers.adjust.studies import AGGREGATIONS, TOKENS, ablation, table9
from crossalign.papers.common.context import Context
from crossalign.papers.common.table import Cell, Column, Row, Table
from crossalign.results.names import language
from crossalign.results.published import languages, published
from crossalign.results.verdict import OTHER, Verdict


def table1(context: Context) -> Table:
    """Facts about the languages."""
    item = f"{PAPER}/table1"
    printed = published(item)
    fields = {"family": "family", "script": "script", "word_order": "word order", "wikipedia_pages": "Wikipedia pages"}
    rows = []
    for lang in ["en", *context.config[PAPER]["languages"]]:
        cells = []
        for field in fields:
            keys = {"language": lang, "field": field}
            match = printed.find(keys)
            if field == "wikipedia_pages":
                # Nothing that is downloaded says how many pages there were.
                verdict = Verdict(OTHER, "not counted here") if match else Verdict()
                cells.append(Cell(keys, printed=match, verdict=verdict, fact=True))
                continue
            text = languages().get(lang, {}).get(field, "")
            cells.append(
                Cell(keys, text=text, printed=match, verdict=context.judge(PAPER).words(match, text), fact=True)
            )
        rows.append(Row(language(lang), cells))
    heads = [Column(label) for label in fields.values()]
    return Table(
        item, context.title(item), "language", heads, rows, ["From the register of languages."], published=printed
    )


def systems(context: Context, task: str, lang: str) -> dict[str, Arm]:
    """The arms for a language."""
    main = size_variant(context.config[PAPER]["pairs"])
    made = adjustment(context.config, lang)
    return {
        name: arm(context, name, task, None if name == "original" else made, "" if name == "original" else main)
        for name in arm_names(context)
    }


def arm_table(task: str, name: str) -> Callable[[Context], Table]:
    """Tables 2, 3, 4: the arms on every test set, with significance marks."""

    def declared(context: Context) -> Table:
        item = f"{PAPER}/{name}"
        printed = published(item)
        board = Board(context, printed)
        by_setting = group_sets(context, task)
        order = list(dict.fromkeys((lang, column_of(data)) for sets in by_setting.values() for lang, data in sets))
        order.sort(key=lambda column: context.config[PAPER]["languages"].index(column[0]))
        found, rows = [], []
        for setting, sets in by_setting.items():
            blocks: dict[str, list[Row]] = {}
            for metric, wording in METRICS[task].items():
                for system in arm_names(context):
                    cells: dict[tuple[str, str], Cell] = {}
                    for lang, data in sets:
                        arms = systems(context, task, lang)
                        mark = ""
                        if system != "original":
                            before, sign = ("original", "*") if system == "adjusted" else ("adjusted", "**")
                            mark, tested = compared(context, arms[system], arms[before], data, metric, sign)
                            found.append(tested)
                        cells[lang, column_of(data)] = board.score(arms[system], data, lang, metric, mark)
                    group = wording if task == "ner" else setting if len(by_setting) > 1 else ""
                    row = Row(system, [cells.get(column) for column in order], group)
                    blocks.setdefault(wording, []).append(row)
            rows += chosen(blocks) if task == "ner" else [row for block in blocks.values() for row in block]
        several = task == "qa"
        heads = [
            Column(FAMILIES[family] if several else language(lang), language(lang) if several else "")
            for lang, family in order
        ]
        notes = [mark_note(found), *([NER_NOTE] if task == "ner" else []), *scope_notes(context)]
        return Table(item, context.title(item), "model", heads, rows, notes, published=printed)

    return declared


def column_of(data: DataSet) -> str:
    """The data set that heads a column: the mixed-language XNLI stands under the original one."""
    return data.family.removesuffix("mixed")


def group_sets(context: Context, task: str) -> dict[str, list[tuple[str, DataSet]]]:
    """The test sets of the original model by what they mix, each with its language beside English."""
    run = systems(context, task, context.config[PAPER]["languages"][0])["original"].runs[0]
    found: dict[str, list[tuple[str, DataSet]]] = {}
    for lang in context.config[PAPER]["languages"]:
        for data in evaluation_sets(context.config, run):
            if lang in data.languages:
                found.setdefault(setting_of(data), []).append((lang, data))
    order = (
        "original",
        "monolingual",
        "mixed-language",
        "question target, paragraph en",
        "question en, paragraph target",
    )
    return {setting: found[setting] for setting in order if setting in found}


def chosen(blocks: dict[str, list[Row]]) -> list[Row]:
    """Both readings of NER, one of them judged."""
    token, entity = (blocks[wording] for wording in METRICS["ner"].values())
    width = len(token[0].cells)
    flat = judge_best([c for row in token for c in row.cells], [c for row in entity for c in row.cells])
    return [
        Row(row.label, cells[place * width : (place + 1) * width], row.group)
        for rows, cells in zip((token, entity), flat, strict=True)
        for place, row in enumerate(rows)
    ]


def table8(context: Context) -> Table:
    """Monolingual question answering: English, and trained on translated SQuAD."""
    item = f"{PAPER}/table8"
    board = Board(context, published(item))
    paper = context.config[PAPER]
    english = DataSet("qa", "squad_en", "dev")
    trained = {"setting": "trained on squad en; evaluated in en"}
    first = systems(context, "qa", paper["languages"][0])["original"]
    cells = [board.score(first, english, "", "F1", changes=trained)]
    cells += [
        board.score(systems(context, "qa", lang)["adjusted"], english, lang, "F1", changes=trained)
        for lang in paper["languages"]
    ]
    rows = [Row("SQuAD, English", cells)]
    for lang in paper["translated"]:
        data = DataSet("qa", f"mlqa_{lang}", "test")
        changes = {"setting": "trained on squad translated to the language"}
        arms = systems(context, "qa", lang)
        pair = {}
        for name in ("original", "adjusted"):
            runs = [Tuned(run.model, run.preset, f"squadmt_{lang}", run.init, run.seed) for run in arms[name].runs]
            pair[name] = board.score(Arm(name, runs, arms[name].variant), data, lang, "F1", changes=changes)
        others = [pair["adjusted"] if other == lang else None for other in paper["languages"]]
        rows.append(Row(f"MLQA, {language(lang)} (translated SQuAD)", [pair["original"], *others]))
    heads = [Column("original"), *(Column(language(lang), "adjusted on") for lang in paper["languages"])]
    notes = ["F1. The original model's SQuAD score is one number for all languages."]
    return Table(item, context.title(item), "test set", heads, rows, notes, published=board.printed)


TABLES: dict[str, Callable[[Context], Table]] = {
    "table1": table1,
    "table2": arm_table("nli", "table2"),
    "table3": arm_table("ner", "table3"),
    "table4": arm_table("qa", "table4"),
    "table5": ablation("table5", "sizes", "pairs", "sentence pairs", size_variant),
    "table6": ablation(
        "table6",
        "aggregations",
        "aggregation",
        "aggregation",
        lambda value: f"aggregation={AGGREGATIONS.get(value, value)}",
    ),
    "table7": ablation(
        "table7",
        "token_choices",
        "tokens",
        "aligned tokens",
        lambda value: f"aligned tokens={TOKENS.get(value, value)}",
    ),
    "table8": table8,
    "table9": table9,
}
