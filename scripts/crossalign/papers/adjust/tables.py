"""Tables of `adjust`."""

from collections.abc import Callable

from crossalign.catalog.sets import DataSet
from crossalign.catalog.targets import evaluation_sets
from crossalign.papers.adjust.arms import (
    ABLATIONS,
    FAMILIES,
    METRICS,
    NER_NOTE,
    Arm,
    Board,
    Mark,
    arm,
    arm_names,
    column_of,
    judge_best,
    mark_note,
    marks,
    scope_notes,
    setting_of,
    size_variant,
    study_columns,
)
from crossalign.papers.adjust.items import PAPER, adjustment
from crossalign.papers.common.context import Context
from crossalign.papers.common.table import Cell, Column, Row, Table
from crossalign.results.names import TASKS, language
from crossalign.results.published import languages
from crossalign.results.verdict import OTHER, Verdict

FACTS = {"family": "family", "script": "script", "word_order": "word order", "wikipedia_pages": "Wikipedia pages"}
SETTINGS = (
    *("original", "monolingual", "mixed-language"),
    *("question target, paragraph en", "question en, paragraph target"),
)


def table1(context: Context) -> Table:
    """Facts about the languages."""
    judge = context.judge()
    rows = []
    for lang in ["en", *context.config[PAPER]["languages"]]:
        cells = []
        for field in FACTS:
            keys = {"language": lang, "field": field}
            match = context.printed.find(keys)
            if field == "wikipedia_pages":
                # Nothing that is downloaded says how many pages there were.
                text, verdict = "", Verdict(OTHER, "not counted here") if match else Verdict()
            else:
                text = languages().get(lang, {}).get(field, "")
                verdict = judge.words(match, text)
            cells.append(Cell(keys, text=text, printed=match, verdict=verdict, fact=True))
        rows.append(Row(language(lang), cells))
    heads = [Column(label) for label in FACTS.values()]
    return Table(stub="language", columns=heads, rows=rows, notes=["From the register of languages."])


def systems(context: Context, task: str, lang: str) -> dict[str, Arm]:
    """The arms for a language."""
    main = size_variant(context.config[PAPER]["pairs"])
    made = adjustment(context.config, lang)
    return {
        name: arm(context, name, task, None if name == "original" else made, "" if name == "original" else main)
        for name in arm_names(context)
    }


def arm_table(task: str) -> Callable[[Context], Table]:
    """Tables 2, 3, 4: the arms on every test set, with significance marks."""

    def table(context: Context) -> Table:
        by_setting = group_sets(context, task)
        order = list(dict.fromkeys((lang, column_of(data)) for sets in by_setting.values() for lang, data in sets))
        order.sort(key=lambda column: context.config[PAPER]["languages"].index(column[0]))
        tested: list[Mark] = []
        rows = []
        for setting, sets in by_setting.items():
            blocks: dict[str, list[Row]] = {}
            for metric, wording in METRICS[task].items():
                for system in arm_names(context):
                    cells = {
                        (lang, column_of(data)): marked_cell(context, task, system, lang, data, metric, tested)
                        for lang, data in sets
                    }
                    group = wording if task == "ner" else setting if len(by_setting) > 1 else ""
                    row = Row(system, [cells.get(column) for column in order], group)
                    blocks.setdefault(wording, []).append(row)
            rows += judged_once(blocks) if task == "ner" else [row for block in blocks.values() for row in block]
        several = task == "qa"
        heads = [
            Column(FAMILIES[family] if several else language(lang), language(lang) if several else "")
            for lang, family in order
        ]
        notes = [mark_note(tested), *([NER_NOTE] if task == "ner" else []), *scope_notes(context)]
        return Table(stub="model", columns=heads, rows=rows, notes=notes)

    return table


def marked_cell(
    context: Context, task: str, system: str, lang: str, data: DataSet, metric: str, tested: list[Mark]
) -> Cell:
    """The score of a system, marked where it differs from the one before it; the test is added to `tested`."""
    arms = systems(context, task, lang)
    sign, tested_here = "", False
    if system != "original":
        before, mark = ("original", "*") if system == "adjusted" else ("adjusted", "**")
        tested.append(marks(context.results, arms[system].runs, arms[before].runs, data, metric))
        sign, tested_here = mark if tested[-1].differs else "", tested[-1].differs is not None
    return Board(context).cell(arms[system], data, lang, metric, mark=sign, tested=tested_here)


def group_sets(context: Context, task: str) -> dict[str, list[tuple[str, DataSet]]]:
    """The test sets of the original model by what they mix, each with its language beside English."""
    run = systems(context, task, context.config[PAPER]["languages"][0])["original"].runs[0]
    found: dict[str, list[tuple[str, DataSet]]] = {}
    for lang in context.config[PAPER]["languages"]:
        for data in evaluation_sets(context.config, run):
            if lang in data.languages:
                found.setdefault(setting_of(data), []).append((lang, data))
    return {setting: found[setting] for setting in SETTINGS if setting in found}


def judged_once(blocks: dict[str, list[Row]]) -> list[Row]:
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
    board = Board(context)
    paper = context.config[PAPER]
    english = DataSet("qa", "squad_en", "dev")
    setting = "trained on squad en; evaluated in en"
    first = systems(context, "qa", paper["languages"][0])["original"]
    cells = [board.cell(first, english, "", "F1", setting=setting)]
    cells += [
        board.cell(systems(context, "qa", lang)["adjusted"], english, lang, "F1", setting=setting)
        for lang in paper["languages"]
    ]
    rows = [Row("SQuAD, English", cells)]
    setting = "trained on squad translated to the language"
    for lang in paper["translated"]:
        data = DataSet("qa", f"mlqa_{lang}", "test")
        arms = systems(context, "qa", lang)
        original, adjusted = (
            board.cell(arms[name].trained_on(f"squadmt_{lang}"), data, lang, "F1", setting=setting)
            for name in ("original", "adjusted")
        )
        others = [adjusted if other == lang else None for other in paper["languages"]]
        rows.append(Row(f"MLQA, {language(lang)} (translated SQuAD)", [original, *others]))
    heads = [Column("original"), *(Column(language(lang), "adjusted on") for lang in paper["languages"])]
    notes = ["F1. The original model's SQuAD score is one number for all languages."]
    return Table(stub="test set", columns=heads, rows=rows, notes=notes)


def study_table(stub: str, places: list[tuple[str, DataSet, str]], rows: dict[str, list[Cell]]) -> Table:
    """A table whose columns are the test sets of one language; of the NER columns one is judged."""
    ner = [place for place, (task, _, _) in enumerate(places) if task == "ner"]
    if len(ner) == 2:
        picked = judge_best(*([cells[place] for cells in rows.values()] for place in ner))
        for column, place in zip(picked, ner, strict=True):
            for cell, cells in zip(column, rows.values(), strict=True):
                cells[place] = cell
    heads = [
        Column(FAMILIES[data.family] + (f", {METRICS[task][metric]}" if task == "ner" else ""), TASKS[task])
        for task, data, metric in places
    ]
    made = [Row(label, list(cells)) for label, cells in rows.items()]
    return Table(stub=stub, columns=heads, rows=made, notes=[NER_NOTE] if ner else [])


def ablation(name: str, stub: str) -> Callable[[Context], Table]:
    """Tables 5, 6, 7: gains over the original model with one setting varied."""
    study = ABLATIONS[name]

    def table(context: Context) -> Table:
        lang = context.config[PAPER][study.key]["lang"]
        places = study_columns(context, lang)
        rows: dict[str, list[Cell]] = {}
        for task, data, metric in places:
            original = arm(context, "original", task, None)
            for variant, adjusted in study.arms(context, task).items():
                cell = Board(context).cell(adjusted, data, lang, metric, original=original)
                rows.setdefault(variant.partition("=")[2], []).append(cell)
        return study_table(stub, places, rows)

    return table


def table9(context: Context) -> Table:
    """mBERT with a larger Hindi vocabulary."""
    study = context.config[PAPER]["extended"]
    lang, base = study["lang"], study["base"]
    places = study_columns(context, lang, base)
    rows = {}
    for pairs in (None, *study["pairs"]):
        name, variant = ("adjusted", size_variant(pairs)) if pairs else ("original", "")
        made = adjustment(context.config, lang, pairs=pairs) if pairs else None
        rows[f"{name}, {pairs.upper()} pairs" if pairs else name] = [
            Board(context, "embert").cell(arm(context, name, task, made, variant, base), data, lang, metric)
            for task, data, metric in places
        ]
    return study_table("model", places, rows)


TABLES: dict[str, Callable[[Context], Table]] = {
    "table1": table1,
    "table2": arm_table("nli"),
    "table3": arm_table("ner"),
    "table4": arm_table("qa"),
    "table5": ablation("table5", "sentence pairs"),
    "table6": ablation("table6", "aggregation"),
    "table7": ablation("table7", "aligned tokens"),
    "table8": table8,
    "table9": table9,
}
