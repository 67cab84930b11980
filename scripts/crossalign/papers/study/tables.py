"""Tables of `study`, with what the papers print of mBERT beside them."""

from collections.abc import Callable, Sequence

from crossalign.catalog.addresses import Base, Tuned
from crossalign.catalog.sets import DataSet
from crossalign.catalog.studied import layer_sets, place_of, shape_of, studied, study, targets
from crossalign.catalog.targets import tested_on
from crossalign.catalog.trained_models import trained_model
from crossalign.papers.align_predict.correlation import Correlations
from crossalign.papers.align_predict.tables import p_cell
from crossalign.papers.common.context import Context
from crossalign.papers.common.table import PAIRS, Cell, Column, Row, Table, number
from crossalign.papers.study.items import ADJUSTED_TASKS, adjusted, others, tasks, tuned
from crossalign.results.measured import measured_model
from crossalign.results.names import METRICS, language, model, task
from crossalign.results.published import Published, published
from crossalign.results.values import Value, mean

PRINTED = "mBERT in the paper"
GROUPS = {"source": "English", "seen": "other languages", "unseen": "unseen languages"}
TOKENIZER = {
    "pieces": "pieces per word",
    "unknown": "words with an unknown piece, %",
    "bytes": "words spelt in bytes, %",
    "shared": "pieces shared with English, %",
}


def origin(config: dict, name: str) -> str:
    """Where a model comes from, for readers."""
    if trained_model(config, name) is not None:
        return "pretrained by this run"
    entry = studied(config)[name]
    return f"{entry['hub']} at {entry['revision'][:12]}" if entry.get("hub") else place_of(config, name)


def table1(context: Context) -> Table:
    """What the models' own files say, and where they come from."""
    heads = {"layers": "layers", "neurons_per_layer": "neurons per layer", "parameters": "parameters"}
    rows = []
    for name in studied(context.config):
        shape = shape_of(context.config, name)
        facts = {"layers": shape["layers"], "neurons_per_layer": shape["neurons"]} if len(shape) == 2 else {}
        facts |= measured_model(context.config, name)
        told = {field: f"{facts[field]:,}" if field in facts else "" for field in heads}
        cells = [
            Cell({"model": name, "field": field}, Value(facts.get(field)), told[field], fact=True) for field in heads
        ]
        rows.append(
            Row(
                model(name),
                [*cells, Cell({"model": name, "field": "origin"}, text=origin(context.config, name), fact=True)],
            )
        )
    notes = ["Parameters without the heads of tasks and of language modelling."]
    return Table(stub="model", columns=[Column(label) for label in [*heads.values(), "from"]], rows=rows, notes=notes)


def table2(context: Context) -> Table:
    """For each task and model: the score, and what it loses when a part of the layers starts at random."""
    config = context.config
    names = list(studied(config))
    labels = list(dict.fromkeys(label for name in names for label in layer_sets(config, name)))
    rows = []
    for each in tasks(config):
        for name in names:
            for group, languages in targets(config, each).items():
                if languages:
                    cells = init_cells(context, name, each, group, languages, labels)
                    rows.append(Row(f"{model(name)}, {GROUPS[group]}", cells, task(each)))
        if not context.artificial:
            rows += printed_rows(each, labels)
    notes = ["REF: score with all layers as pretrained. Other columns: RANDOM-INIT minus REF, in points."]
    spans = {name: " / ".join(layer_sets(config, name).values()) for name in names}
    notes.append("Layers drawn anew: " + "; ".join(f"{model(name)} {told}" for name, told in spans.items()) + ".")
    if not context.artificial:
        notes.append(f"{PRINTED}: align-predict, tables 1 and 5; its other languages are tested on other treebanks.")
    heads = [Column("REF"), *(Column(label, "re-initialised") for label in labels)]
    return Table(stub="model, tested in", columns=heads, rows=rows, notes=notes, shading=PAIRS)


def init_cells(
    context: Context, name: str, each: str, group: str, languages: Sequence[str], labels: Sequence[str]
) -> list[Cell | None]:
    """REF and a difference for each part of the layers that the model has."""
    sets = [tested_on(context.config, each, lang) for lang in languages]
    parts = layer_sets(context.config, name)
    keys = {"task": each, "model": name, "target": group, "metric": METRICS[each]}

    def value(init: str) -> Value:
        return context.results.sample(tuned(context.config, name, each, init), sets, METRICS[each]).value()

    reference = value("ref")
    cells: list[Cell | None] = [Cell(keys | {"layers": "ref", "part": "ref", "kind": "score"}, reference)]
    for label in labels:
        if label not in parts:
            cells.append(None)
            continue
        change = value(f"random-{parts[label]}").minus(reference)
        told = keys | {"layers": parts[label], "part": label, "kind": "delta"}
        cells.append(Cell(told, change, signed=True, shade=PAIRS.classify(change.mean)))
    return cells


# The layers of mBERT's quarters; pairs are named by their layers already.
MBERT = dict(zip(("lowest quarter", "second quarter", "third quarter", "highest quarter"),
                 ("1-3", "4-6", "7-9", "10-12"), strict=True))  # fmt: skip


def printed_changes(each: str, group: str, labels: Sequence[str]) -> tuple[float | None, list[float | None]]:
    """mBERT's score in print, and what it loses by part, in English or (mean) elsewhere."""
    pairs, sets = published("align-predict/table1"), published("align-predict/table5")
    target = "en" if group == "source" else "X"
    quarters = any(label in MBERT for label in labels)

    def scores(layers: str) -> float | None:
        keys = {"task": each, "source": "en", "split": "test", "layers": layers}
        rows = [sets.rows[place] for place in sets.select(keys)]
        return mean([float(row["value"]) for row in rows if (row["target"] == "en") == (target == "en")])

    if quarters:
        reference = scores("ref")
        found = [scores(MBERT[label]) for label in labels]
        return reference, [None if score is None else score - reference for score in found]
    keys = {"task": each, "source": "en", "target": target}
    told = [_number(pairs, keys | {"layers": label.partition(" ")[2]}) for label in labels]
    return _number(pairs, keys | {"layers": "ref"}), told


def _number(table: Published, keys: dict[str, str]) -> float | None:
    found = table.find(keys)
    return found.number if found else None


def printed_rows(each: str, labels: Sequence[str]) -> list[Row]:
    """mBERT as align-predict prints it."""
    rows = []
    for group in ("source", "seen"):
        reference, changes = printed_changes(each, group, labels)
        keys = {"task": each, "model": "printed", "target": group, "metric": METRICS[each]}
        cells = [_fact(keys | {"part": "ref", "kind": "score"}, reference)]
        for label, change in zip(labels, changes, strict=True):
            cells.append(_fact(keys | {"part": label, "kind": "delta"}, change, signed=True))
        rows.append(Row(f"{PRINTED}, {GROUPS[group]}", cells, task(each)))
    return rows


def _fact(keys: dict[str, str], value: float | None, signed: bool = False) -> Cell:
    """A printed number, which is no result of this run."""
    return Cell(keys, text="" if value is None else number(value, 2, signed), fact=True)


def table3(context: Context) -> Table:
    """A row for each language, a column for each task and model."""
    config = context.config
    rows = []
    for group in GROUPS:
        shown = dict.fromkeys(lang for each in tasks(config) for lang in targets(config, each)[group])
        for lang in shown:
            cells: list[Cell | None] = []
            for each in tasks(config):
                there = lang in targets(config, each)[group]
                cells += [transfer_cell(context, name, each, lang) if there else None for name in studied(config)]
                if not context.artificial:
                    cells.append(printed_cell(each, lang))
            rows.append(Row(language(lang), cells, GROUPS[group]))
    heads = [
        Column(label, task(each))
        for each in tasks(config)
        for label in [*map(model, studied(config)), *([] if context.artificial else [PRINTED])]
    ]
    notes = [
        "Models fine-tuned in English. Parsing and POS are tested on PUD, in unseen languages on their own treebank."
    ]
    return Table(stub="language", columns=heads, rows=rows, notes=notes)


def transfer_cell(context: Context, name: str, each: str, lang: str) -> Cell:
    data = tested_on(context.config, each, lang)
    value = context.results.sample(tuned(context.config, name, each), [data], METRICS[each]).value()
    return Cell({"task": each, "model": name, "target": lang, "metric": METRICS[each]}, value)


def printed_cell(each: str, lang: str) -> Cell:
    """The score of mBERT in align-predict, tables 6 to 8."""
    table = published(
        {"parsing": "align-predict/table6", "pos": "align-predict/table7"}.get(each, "align-predict/table8")
    )
    value = _number(table, {"task": each, "source": "en", "target": lang, "layers": "ref"})
    return _fact({"task": each, "model": "printed", "target": lang, "metric": METRICS[each]}, value)


def correlations_of(context: Context, name: str, each: str, index: str) -> Correlations:
    """Transfer of a model's fine-tunings against the similarity of the model before."""
    sets = {lang: tested_on(context.config, each, lang) for lang in ["en", *others(context.config)]}
    return Correlations(context, dict.fromkeys(tuned(context.config, name, each), Base(name)), sets, index)


def table4(context: Context) -> Table:
    """Spearman's rho over languages, for each task and model."""
    config = context.config
    indexes = {"cka": "CKA", "anc": "ANC"}
    rows = []
    for each in tasks(config):
        for name in studied(config):
            cells: list[Cell | None] = []
            for index in indexes:
                found = correlations_of(context, name, each, index)
                rho = found.with_interval([layer for layer in found.layers if layer > 0])
                keys = {"task": each, "model": name, "index": index, "languages": str(rho.languages)}
                cells += [Cell(keys | {"metric": "spearman"}, rho.value), p_cell(keys, rho.p)]
            rows.append(Row(model(name), cells, task(each)))
        if not context.artificial:
            keys = {"task": each, "model": "pretrained", "metric": "spearman"}
            told = _fact(keys | {"model": "printed"}, _number(published("align-predict/table4"), keys))
            rows.append(Row(PRINTED, [told, None, None, None], task(each)))
    heads = [Column(label, name) for name in indexes.values() for label in ("rho", "p")]
    notes = [
        f"Over {len(others(config))} languages: similarity with English in the pretrained model, mean over all layers "
        "but the embeddings, and minus the gap to English. Two-sided p. The CSV file has 95 % intervals by bootstrap.",
    ]
    return Table(stub="model", columns=heads, rows=rows, notes=notes)


def table5(context: Context) -> Table:
    """How each vocabulary cuts the words of each language."""
    config = context.config
    audits = {name: context.results.tokenizer(name) for name in studied(config)}
    # Few vocabularies have both: a column of zeros says nothing.
    shown = {
        name: [field for field in TOKENIZER if field != "bytes" or any(row[field] for row in audits[name].values())]
        for name in audits
    }
    rows = []
    for lang in ["en", *others(config), *study(config).get("unseen", ())]:
        cells = []
        for name, fields in shown.items():
            row = audits[name].get(lang)
            for field in fields:
                value = Value() if row is None else Value(row[field])
                cells.append(
                    Cell({"model": name, "language": lang, "field": field}, value, digits=2 if field == "pieces" else 1)
                )
        rows.append(Row(language(lang), cells))
    heads = [Column(TOKENIZER[field], model(name)) for name, fields in shown.items() for field in fields]
    notes = [
        "Words of the treebanks that models are tested on. Shared: of the different pieces with a letter that a "
        "language uses, those that English uses too. Spelt in bytes: a piece is less than one letter.",
    ]
    return Table(stub="language", columns=heads, rows=rows, notes=notes, uniform=False)


def table6(context: Context) -> Table:
    """Mean L2 distances of related and unrelated words, and how well they tell the two apart."""
    config, rows = context.config, []
    for name in studied(config):
        for lang in study(config).get("adjusted_languages", ()):
            runs = {"before": Base(name), "after": adjusted(config, name, lang)[0]}
            panels = {when: context.results.distances(run, lang) for when, run in runs.items()}
            cells = []
            for kind in ("related", "unrelated", "auc"):
                for when, panel in panels.items():
                    keys = {"model": name, "language": lang, "field": kind, "when": when}
                    missing = () if panel else (f"distances/{runs[when].path()}/{lang}",)
                    value = None if panel is None else panel.summary["auc"] if kind == "auc" else panel.mean(kind)
                    cells.append(Cell(keys, Value(value, n=int(panel is not None), wanted=1, missing=missing)))
            rows.append(Row(language(lang), cells, model(name)))
    heads = [
        Column(when, label)
        for label in ("related words", "unrelated words", "area under ROC")
        for when in ("before", "after")
    ]
    notes = [
        "Mean distance of the vectors of two words in the last layer. The area is 1 where every related pair is closer."
    ]
    return Table(stub="language", columns=heads, rows=rows, notes=notes)


def table7(context: Context) -> Table:
    """Scores before and after, in the language of the adjustment."""
    config, rows = context.config, []
    for name in studied(config):
        for lang in study(config).get("adjusted_languages", ()):
            after, cells = adjusted(config, name, lang)[0].name, []
            for each in ADJUSTED_TASKS:
                values = [adjusted_score(context, tuned(config, one, each), lang) for one in (name, after)]
                keys = {"model": name, "language": lang, "task": each, "metric": METRICS[each]}
                cells += [Cell(keys | {"when": "before"}, values[0]), Cell(keys | {"when": "after"}, values[1])]
                gain = values[1].minus(values[0])
                cells.append(Cell(keys | {"when": "gain", "kind": "delta"}, gain, signed=True))
            rows.append(Row(language(lang), cells, model(name)))
    heads = [Column(when, task(each)) for each in ADJUSTED_TASKS for when in ("before", "after", "gain")]
    notes = ["Models fine-tuned in English and tested in the language of the adjustment, XNLI and WikiANN."]
    return Table(stub="language", columns=heads, rows=rows, notes=notes)


def adjusted_score(context: Context, runs: Sequence[Tuned], lang: str) -> Value:
    each = runs[0].task
    data = DataSet("nli", f"xnli_{lang}", "test") if each == "nli" else tested_on(context.config, each, lang)
    return context.results.sample(runs, [data], METRICS[each]).value()


TABLES: dict[str, Callable[[Context], Table]] = {
    "table1": table1,
    "table2": table2,
    "table3": table3,
    "table4": table4,
    "table5": table5,
    "table6": table6,
    "table7": table7,
}
