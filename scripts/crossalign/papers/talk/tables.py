"""Tables of the talk: two of them are `align-predict` again, the others tell of unseen languages."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import PurePath

from crossalign.catalog.sets import DataSet, raw_files, text_set
from crossalign.papers.align_predict.items import PAPER as STUDY
from crossalign.papers.align_predict.random_init import (
    DELTA_NOTE,
    MEAN_NOTE,
    columns,
    others,
    recomputed,
    runs_of,
    sets_behind,
    tested_on,
)
from crossalign.papers.align_predict.tables import DETAIL, correlation_table, overview_rows
from crossalign.papers.common.context import Context
from crossalign.papers.common.table import PAIRS, Cell, Column, Row, Table, number
from crossalign.papers.talk.items import PAPER
from crossalign.results.comparable import other_sets
from crossalign.results.names import METRICS, language, task
from crossalign.results.published import languages, published
from crossalign.results.reading import Results
from crossalign.results.values import Value
from crossalign.results.verdict import JUDGED, OTHER, Verdict
from crossalign.runtime.files import read_json

# Raw text that is put together from what lies openly, not the corpus of the talk.
MIXED = ("open",)
TARGETS = ("en", "fr", "de", "ru", "X")


def table1(context: Context) -> Table:
    """Zero-shot parsing from English."""
    detail = published(f"{STUDY}/{DETAIL['parsing']}")
    runs = runs_of(context, "parsing", "en", "ref")
    cells = []
    for target in TARGETS:
        targets = others(context.config, "parsing", "en") if target == "X" else [target]
        sets = [tested_on(context.config, "parsing", lang) for lang in targets]
        value = context.results.value(runs, sets, METRICS["parsing"])
        keys = {"task": "parsing", "source": "en", "target": target, "layers": "ref"}
        keys |= {"metric": METRICS["parsing"], "kind": "score"}
        match = context.printed.find(keys)
        if match and target == "X":
            match = replace(match, recomputed=recomputed(detail, {"task": "parsing", "source": "en", "layers": "ref"}))
        dependent = partial(sets_behind, task="parsing", source="en", target=target)
        other = other_sets(context.config, dependent) if match else ""
        verdict = context.judge("parsing", runs=runs, other=other).number(match, value)
        cells.append(Cell(keys, value, digits=1, printed=match, verdict=verdict))
    heads = [Column("mean of the others" if target == "X" else language(target)) for target in TARGETS]
    notes = [task("parsing"), MEAN_NOTE]
    return Table(stub="source", columns=heads, rows=[Row("English", cells)], notes=notes)


def table2(context: Context) -> Table:
    """The parsing block of table 1 of `align-predict`."""
    rows = overview_rows(context, ["parsing"])
    heads = columns(context.config[STUDY]["layer_pairs"])
    return Table(stub="source-target", columns=heads, rows=rows, notes=[DELTA_NOTE, MEAN_NOTE], shading=PAIRS)


def table3(context: Context) -> Table:
    """Unseen languages: script, family, and the sentences of raw text that were counted."""
    printed, judge = context.printed, context.judge()
    chosen = context.config[PAPER]["languages"]
    replaced = [lang for lang in chosen if text_set(context.config, lang).family in MIXED]
    rows = []
    for lang in chosen:
        name, facts = language(lang), languages().get(lang, {})
        cells = []
        for field in ("script", "family"):
            match = printed.find({"language": name}, field)
            text = facts.get(field, "")
            keys = {"language": name, "field": field}
            cells.append(Cell(keys, text=text, printed=match, verdict=judge.words(match, text), fact=True))
        match = printed.find({"language": name}, "raw_sentences")
        value = sentences(context, lang)
        keys = {"language": name, "field": "raw_sentences"}
        shown = "" if value.mean is None else number(value.mean, 0, False)
        verdict = judge.count(match, value.mean)
        if lang in replaced and verdict.label in JUDGED:
            verdict = Verdict(OTHER, "another text")
        cells.append(Cell(keys, value, shown, 0, printed=match, verdict=verdict))
        rows.append(Row(name, cells))
    heads = [Column("script"), Column("family"), Column("raw sentences")]
    notes = ["Sentences kept after cleaning, held-out ones included.", *text_notes(chosen, replaced)]
    return Table(stub="language", columns=heads, rows=rows, notes=notes, uniform=False)


def text_notes(chosen: list[str], replaced: list[str]) -> Iterator[str]:
    """Where the raw text comes from."""
    if set(chosen) - set(replaced):
        yield (
            "Our raw text is Wikipedia, except for Narabizi; the talk's was OSCAR for most languages, which is not "
            "open any more."
        )
    if replaced:
        names = ", ".join(map(language, replaced))
        yield f"Raw text of {names}: a mixture of small sources; its sentences are not compared with the talk's."


def sentences(context: Context, lang: str) -> Value:
    """The sentences of raw text of a language, training and held-out part."""
    kept = []
    for split in ("train", "dev"):
        path = text_set(context.config, lang, split).path()
        report = read_json((context.results.folder / path).with_name(f"{split}.report.json"))
        if report is None and split == "train":
            return Value(wanted=1, missing=(path,))
        kept.append((report or {}).get("kept", 0))
    return Value(float(sum(kept)), None, 1, 1)


def raw_bytes(results: Results, config: dict, lang: str) -> int | None:
    """The size of the raw text of a language, training and held-out part; None where there is none."""
    train, dev = (results.folder / text_set(config, lang, split).path() for split in ("train", "dev"))
    return sum(path.stat().st_size for path in (train, dev) if path.is_file()) if train.is_file() else None


def table4(context: Context) -> Table:
    """The profile of three languages."""
    config = context.config[PAPER]
    judge = context.judge()
    fields = ("script", "related to", "raw data", "raw data source", "annotated data", "native speakers")
    rows = []
    for lang in config["profile_languages"]:
        name = language(lang)
        ours = {"script": languages().get(lang, {}).get("script", ""), "annotated data": annotated(config, lang)}
        ours["raw data source"] = ", ".join(sources(text_set(context.config, lang)))
        size = raw_bytes(context.results, context.config, lang)
        ours["raw data"] = "" if size is None else f"{size / 1e6:.1f} MB"
        cells = []
        for field in fields:
            keys = {"language": name, "field": field}
            match = context.printed.find(keys)
            if field in ("related to", "native speakers", "raw data", "raw data source"):
                # Common knowledge that is not counted here, or another corpus than the talk's.
                reason = "another corpus" if field in ours else "not counted here"
                verdict = Verdict(OTHER, reason) if match else Verdict()
            else:
                verdict = judge.words(match, ours[field])
            cells.append(Cell(keys, text=ours.get(field, ""), printed=match, verdict=verdict, fact=True))
        rows.append(Row(name, cells))
    notes = ["Printed sizes of raw data are in MB, speakers in millions; both are approximate."]
    return Table(stub="language", columns=[Column(field) for field in fields], rows=rows, notes=notes)


def sources(data: DataSet) -> list[str]:
    """What a raw text was read from: the corpus, or for a mixture each of its files by the name in the register."""
    if data.family not in MIXED:
        return [data.family.capitalize()]
    paths = [PurePath(path) for path in raw_files(data)]
    # `text/open/common_voice_ug.txt` is named by its file, `text/ntrex/uig.txt` by its folder.
    names = (path.stem.rpartition("_")[0] if path.parent.name == "open" else path.parent.name for path in paths)
    return [name.replace("_", " ").capitalize() for name in dict.fromkeys(names)]


def annotated(config: dict, lang: str) -> str:
    """The tasks with data, in the talk's words."""
    return "+".join(["POS", "parsing"] * (lang in config["treebanks"]) + ["NER"] * (lang in config["ner"]))


TABLES: dict[str, Callable[[Context], Table]] = {
    "table1": table1,
    "table2": table2,
    "table3": table3,
    "table4": table4,
    # The first column of table 4 of `align-predict`.
    "table5": correlation_table("fine-tuned"),
}
