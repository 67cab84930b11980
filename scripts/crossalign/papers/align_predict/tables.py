"""Tables of `align-predict`."""

from collections.abc import Callable, Sequence
from statistics import median

from crossalign.catalog.sets import DataSet
from crossalign.papers.align_predict.grid import table3
from crossalign.papers.align_predict.items import PAPER, TASKS, inits
from crossalign.papers.common.context import Context
from crossalign.papers.common.correlation import Correlations, similarity_targets
from crossalign.papers.common.random_init import (
    DELTA_NOTE,
    MEAN_NOTE,
    arrow,
    columns,
    pair_cells,
    runs_of,
    slovenian_note,
    source_row,
    target_name,
)
from crossalign.papers.common.shades import PAIRS, SETS
from crossalign.papers.common.table import Cell, Column, Row, Table, number
from crossalign.papers.common.tested import own_set
from crossalign.results.names import METRICS, language, task
from crossalign.results.published import Printed, Published, claim, published
from crossalign.results.values import Value
from crossalign.results.verdict import CORRELATION

# Where the rows behind a printed mean stand.
DETAIL = {"parsing": "table6", "pos": "table7", "ner": "table8"}

DOMAINS = {
    "en_partut": ("in-domain (ParTUT)", "en_partut test"),
    "en_lines": ("literature", "en_lines"),
    "en_ewt": ("web", "en_ewt"),
    "en_lexnorm": ("ugc", "en lexnorm"),
    "en_tweebank": ("tweets", "en_tweebank"),
    "fr_partut": ("translation of in-domain test", "fr_partut test (110 sentences)"),
    "fr_gsd": ("wiki", "fr_gsd"),
    "wikiann_en": ("in-domain (WikiANN)", "wikiann en"),
    "conll2003_en": ("news", "conll2003 en"),
    "wikiann_fr": ("WikiANN", "wikiann fr"),
}


def overview_rows(context: Context, printed: Published, tasks: Sequence[str]) -> list[Row]:
    """Same language, then mean over the others, for every source."""
    rows = []
    sources = context.config[PAPER]["sources"]
    for name in tasks:
        detail = published(f"{PAPER}/{DETAIL[name]}")
        for target in ("same", "X"):
            for source in sources:
                real = source if target == "same" else "X"
                rows.append(source_row(context, printed, detail, name, source, real, task(name), arrow(source, real)))
    return rows


def table1(context: Context) -> Table:
    item = f"{PAPER}/table1"
    printed = published(item)
    rows = overview_rows(context, printed, TASKS)
    heads = columns(context.config[PAPER]["layer_pairs"])
    notes = [DELTA_NOTE, "X: mean over all other languages.", MEAN_NOTE, *slovenian_note(context.config)]
    return Table(item, context.title(item), "source-target", heads, rows, notes, PAIRS, published=printed)


def table2(context: Context) -> Table:
    """English models on other domains, against French."""
    item = f"{PAPER}/table2"
    printed = published(item)
    domains = context.config[PAPER]["domains"]
    rows = []
    for name in TASKS:
        train = None if name == "ner" else domains["train"]
        tests = domains["ner"] if name == "ner" else domains["test"]
        for test in tests:
            data = DataSet("ner" if name == "ner" else "trees", test, "test")
            domain, wording = DOMAINS.get(test, (test, test))
            lang = data.languages[0]
            keys = {"task": name, "source": "en", "train_data": train or "wikiann en", "target": lang}
            keys |= {"domain": domain, "eval_data": wording}
            cells = pair_cells(context, keys, [data], lambda named: printed.find(named), train)
            rows.append(Row(f"{language(lang)}, {domain}", cells, task(name)))
    heads = columns(context.config[PAPER]["layer_pairs"])
    notes = [DELTA_NOTE, f"Trained on {domains['train']}; NER on the English WikiANN."]
    return Table(item, context.title(item), "test set", heads, rows, notes, PAIRS, published=printed)


def table4(context: Context) -> Table:
    """Spearman correlation of similarity and transfer."""
    item = f"{PAPER}/table4"
    return correlation_table(context, item, ("fine-tuned", "pretrained"))


def correlation_table(context: Context, item: str, models: tuple[str, ...]) -> Table:
    """One row per task; per model the correlation without and with English itself, and its p value."""
    printed = published(item)
    rows = []
    for name in TASKS:
        cells = []
        for model in models:
            found = Correlations(context, name, model == "pretrained")
            layers = [layer for layer in found.layers if layer > 0]
            judge = context.judge(PAPER, scale=CORRELATION, runs=found.runs)
            for with_source in (False, True):
                rho = found.with_interval(layers, with_source)
                keys = {"task": name, "model": model, "metric": "spearman"}
                match = None if with_source else printed.find(keys)
                keys["languages"] = str(rho.languages)
                cells.append(Cell(keys, rho.value, printed=match, verdict=judge.number(match, rho.value)))
                shown = "" if rho.p is None else "< 0.001" if rho.p < 0.001 else f"{rho.p:.3f}"
                cells.append(Cell(keys | {"metric": "p"}, Value(rho.p), text=shown, fact=not shown))
        rows.append(Row(task(name), cells))
    count = len(similarity_targets(context))
    heads = [
        column
        for model in models
        for n in (count, count + 1)
        for column in (Column(f"rho, n = {n}", model), Column("p", model))
    ]
    notes = [
        "Spearman's rho of the similarity to English, mean over all layers but the embeddings, and minus the "
        "cross-lingual gap; two-sided p. The larger n counts English itself (gap 0, similarity 1). "
        "± is over the correlations of single seeds.",
        "The CSV file has 95 % intervals of rho (low, high) by bootstrap over languages.",
    ]
    if {"sl", "sv"} <= set(context.config[PAPER]["languages"]):
        notes.append("Swedish stands in for Slovenian, which has no parallel sentences.")
    return Table(item, context.title(item), "task", heads, rows, notes, published=printed)


def table5(context: Context) -> Table:
    """Absolute scores with other sets of layers re-initialised."""
    item = f"{PAPER}/table5"
    printed = published(item)
    paper = context.config[PAPER]
    rows, notes = [], ["Absolute scores; colours by the difference to REF in the same row."]
    for name in TASKS:
        spreads = []
        for lang, split in [("en", "dev"), ("en", "test"), *((lang, "test") for lang in paper["own_treebanks"])]:
            cells = []
            for init in ["ref", *inits(paper["layer_sets"])]:
                data = own_set(context.config, name, lang, split)
                runs = runs_of(context, name, "en", init)
                value = context.results.sample(runs, [data], METRICS[name]).value()
                keys = {"task": name, "source": "en", "target": lang, "split": split}
                keys |= {"layers": init.removeprefix("random-"), "metric": METRICS[name], "kind": "score"}
                match = printed.find(keys)
                shade = "" if init == "ref" else SETS.classify(value.minus(cells[0].value).mean)
                theirs = "" if init == "ref" else SETS.classify(loss(match, cells[0].printed))
                verdict = context.judge(PAPER, name, runs=runs).number(match, value)
                cells.append(Cell(keys, value, shade=shade, printed_shade=theirs, printed=match, verdict=verdict))
                spreads += [] if value.std is None else [value.std]
            rows.append(Row(f"{language(lang)} {split}" if lang == "en" else language(lang), cells, task(name)))
        notes.append(spread_note(name, spreads))
    heads = columns(paper["layer_sets"])
    return Table(item, context.title(item), "test set", heads, rows, notes, SETS, published=printed)


def loss(printed: Printed | None, reference: Printed | None) -> float | None:
    """The printed difference to the printed REF."""
    if printed is None or reference is None or printed.number is None or reference.number is None:
        return None
    return printed.number - reference.number


def spread_note(name: str, spreads: list[float]) -> str:
    """The caption's sentence on standard deviations, ours and the paper's."""
    stated = " / ".join(claim(PAPER, f"std-{name}-{which}") or "?" for which in ("min", "median", "max"))
    if not spreads:
        return f"Standard deviation, {task(name)}: not run; printed min / median / max {stated}."
    ours = " / ".join(number(value, 2, False) for value in (min(spreads), median(spreads), max(spreads)))
    return f"Standard deviation over seeds, {task(name)}: min / median / max {ours}; printed {stated}."


def by_target(name: str) -> Callable[[Context], Table]:
    """Tables 6, 7, 8: one row per source and target."""

    def declared(context: Context) -> Table:
        item = f"{PAPER}/{DETAIL[name]}"
        printed = published(item)
        paper = context.config[PAPER]
        rows = []
        for source in paper["sources"]:
            for target in [source, *(lang for lang in paper["languages"] if lang != source), "X"]:
                label = "Mean of the others" if target == "X" else target_name(context, target)
                group = f"from {language(source)}"
                rows.append(source_row(context, printed, printed, name, source, target, group, label))
        heads = columns(paper["layer_pairs"])
        notes = [DELTA_NOTE, MEAN_NOTE, *slovenian_note(context.config)]
        title = f"{context.title(item)} ({METRICS[name]})"
        return Table(item, title, "target", heads, rows, notes, PAIRS, published=printed)

    return declared


TABLES: dict[str, Callable[[Context], Table]] = {
    "table1": table1,
    "table2": table2,
    "table3": table3,
    "table4": table4,
    "table5": table5,
    "table6": by_target("parsing"),
    "table7": by_target("pos"),
    "table8": by_target("ner"),
}
