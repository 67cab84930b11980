"""Tables of `align-predict`."""

from collections.abc import Callable, Sequence
from statistics import median

from crossalign.catalog.sets import DataSet
from crossalign.catalog.targets import having
from crossalign.papers.align_predict.correlation import correlated_sets, correlations, similarity_targets
from crossalign.papers.align_predict.grid import table3
from crossalign.papers.align_predict.items import PAPER, TASKS, inits, pud_languages
from crossalign.papers.align_predict.random_init import (
    DELTA_NOTE,
    MEAN_NOTE,
    columns,
    own_places,
    own_set,
    own_sets_behind,
    pair_cells,
    runs_of,
    slovenian_note,
    source_row,
    target_name,
)
from crossalign.papers.common.context import Context
from crossalign.papers.common.table import PAIRS, SETS, Cell, Column, Row, Table, number
from crossalign.results.comparable import other_sets
from crossalign.results.names import METRICS, language, task
from crossalign.results.published import Printed, claims, published
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


def overview_rows(context: Context, tasks: Sequence[str]) -> list[Row]:
    """Same language, then mean over the others, for every source."""
    rows = []
    for name in tasks:
        detail = published(f"{PAPER}/{DETAIL[name]}")
        for others in (False, True):
            for source in having(context.config, "sources", name):
                target = "X" if others else source
                label = f"{source.upper()}-{target.upper()}"
                rows.append(source_row(context, detail, name, source, target, task(name), label))
    return rows


def table1(context: Context) -> Table:
    """RANDOM-INIT on pairs of layers: the overview."""
    notes = [DELTA_NOTE, "X: mean over all other languages.", MEAN_NOTE, *slovenian_note(context.config, *TASKS)]
    heads = columns(context.config[PAPER]["layer_pairs"])
    rows = overview_rows(context, TASKS)
    return Table(stub="source-target", columns=heads, rows=rows, notes=notes, shading=PAIRS)


def table2(context: Context) -> Table:
    """English models on other domains, against French."""
    domains = context.config[PAPER]["domains"]
    rows = []
    for name in TASKS:
        train = None if name == "ner" else domains["train"]
        for test in domains["ner" if name == "ner" else "test"]:
            data = DataSet("ner" if name == "ner" else "trees", test, "test")
            domain, wording = DOMAINS.get(test, (test, test))
            lang = data.languages[0]
            keys = {"task": name, "source": "en", "train_data": train or "wikiann en", "target": lang}
            keys |= {"domain": domain, "eval_data": wording}
            cells = pair_cells(context, keys, [data], context.printed.find, train)
            rows.append(Row(f"{language(lang)}, {domain}", cells, task(name)))
    heads = columns(context.config[PAPER]["layer_pairs"])
    notes = [DELTA_NOTE, f"Trained on {domains['train']}; NER on the English WikiANN."]
    return Table(stub="test set", columns=heads, rows=rows, notes=notes, shading=PAIRS)


def correlation_table(*models: str) -> Callable[[Context], Table]:
    """Spearman correlation of similarity and transfer.

    One row per task; per model the correlation without and with English itself, and its p value.
    """

    def table(context: Context) -> Table:
        rows = [
            Row(task(name), [cell for model in models for cell in rho_cells(context, name, model)]) for name in TASKS
        ]
        counts = sorted({len(similarity_targets(context.config, name)) for name in TASKS})
        heads = [
            column
            for model in models
            for more in (0, 1)
            for column in (Column(f"rho, n = {' or '.join(str(n + more) for n in counts)}", model), Column("p", model))
        ]
        notes = [
            "Spearman's rho of the similarity to English, mean over all layers but the embeddings, and minus the "
            "cross-lingual gap; two-sided p. The larger n counts English itself (gap 0, similarity 1). "
            "± is over the correlations of single seeds.",
            "The CSV file has 95 % intervals of rho (low, high) by bootstrap over languages.",
        ]
        if "sl" in context.config[PAPER]["languages"] and "sv" in pud_languages(context.config):
            notes.append("Swedish stands in for Slovenian, which has no parallel sentences.")
        return Table(stub="task", columns=heads, rows=rows, notes=notes)

    return table


def rho_cells(context: Context, name: str, model: str) -> list[Cell]:
    """The correlation of one task without and with English, each with its p value."""
    found = correlations(context, name, model == "pretrained")
    layers = [layer for layer in found.layers if layer > 0]
    other = other_sets(context.config, lambda config: correlated_sets(config, name))
    judge = context.judge(scale=CORRELATION, runs=found.runs, other=other)
    cells = []
    for with_source in (False, True):
        rho = found.with_interval(layers, with_source)
        keys = {"task": name, "model": model, "metric": "spearman"}
        match = None if with_source else context.printed.find(keys)
        keys["languages"] = str(rho.languages)
        cells.append(Cell(keys, rho.value, printed=match, verdict=judge.number(match, rho.value)))
        cells.append(p_cell(keys, rho.p))
    return cells


def p_cell(keys: dict[str, str], p: float | None) -> Cell:
    """The p value of a correlation."""
    shown = "" if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}"
    return Cell(keys | {"metric": "p"}, Value(p), text=shown, fact=not shown)


def table5(context: Context) -> Table:
    """Absolute scores with other sets of layers re-initialised."""
    paper = context.config[PAPER]
    rows, notes = [], ["Absolute scores; colours by the difference to REF in the same row."]
    for name in TASKS:
        made = [layer_set_row(context, name, lang, split) for lang, split in own_places(context.config)]
        notes.append(
            spread_note(name, [cell.value.std for row in made for cell in row.cells if cell.value.std is not None])
        )
        rows += made
    heads = columns(paper["layer_sets"])
    return Table(stub="test set", columns=heads, rows=rows, notes=notes, shading=SETS)


def layer_set_row(context: Context, name: str, lang: str, split: str) -> Row:
    """REF and every set of layers on one set."""
    data = own_set(context.config, name, lang, split)
    cells: list[Cell] = []
    for init in ["ref", *inits(context.config[PAPER]["layer_sets"])]:
        runs = runs_of(context, name, "en", init)
        value = context.results.value(runs, [data], METRICS[name])
        keys = {"task": name, "source": "en", "target": lang, "split": split}
        keys |= {"layers": init.removeprefix("random-"), "metric": METRICS[name], "kind": "score"}
        match = context.printed.find(keys)
        shade = SETS.classify(value.minus(cells[0].value).mean) if cells else ""
        theirs = SETS.classify(loss(match, cells[0].printed)) if cells else ""
        # A language that is not printed may be one that the papers' config does not know.
        other = other_sets(context.config, lambda config: own_sets_behind(config, name, (lang, split))) if match else ""
        verdict = context.judge(name, runs=runs, other=other).number(match, value)
        cells.append(Cell(keys, value, shade=shade, printed_shade=theirs, printed=match, verdict=verdict))
    return Row(f"{language(lang)} {split}" if lang == "en" else language(lang), cells, task(name))


def loss(printed: Printed | None, reference: Printed | None) -> float | None:
    """The printed difference to the printed REF."""
    if printed is None or reference is None or printed.number is None or reference.number is None:
        return None
    return printed.number - reference.number


def spread_note(name: str, spreads: list[float]) -> str:
    """The caption's sentence on standard deviations, ours and the paper's."""
    stated = " / ".join(claims(PAPER)[f"std-{name}-{which}"]["value"] for which in ("min", "median", "max"))
    if not spreads:
        return f"Standard deviation, {task(name)}: not run; printed min / median / max {stated}."
    ours = " / ".join(number(value, 2, False) for value in (min(spreads), median(spreads), max(spreads)))
    return f"Standard deviation over seeds, {task(name)}: min / median / max {ours}; printed {stated}."


def by_target(name: str) -> Callable[[Context], Table]:
    """Tables 6, 7, 8: one row per source and target."""

    def table(context: Context) -> Table:
        paper = context.config[PAPER]
        rows = []
        targets = having(context.config, "languages", name)
        for source in having(context.config, "sources", name):
            for target in [source, *(lang for lang in targets if lang != source), "X"]:
                label = "Mean of the others" if target == "X" else target_name(context, target)
                group = f"from {language(source)}"
                rows.append(source_row(context, context.printed, name, source, target, group, label))
        heads = columns(paper["layer_pairs"])
        notes = [DELTA_NOTE, MEAN_NOTE, *slovenian_note(context.config, name)]
        title = f"({METRICS[name]})"
        return Table(title=title, stub="target", columns=heads, rows=rows, notes=notes, shading=PAIRS)

    return table


TABLES: dict[str, Callable[[Context], Table]] = {
    "table1": table1,
    "table2": table2,
    "table3": table3,
    "table4": correlation_table("fine-tuned", "pretrained"),
    "table5": table5,
    "table6": by_target("parsing"),
    "table7": by_target("pos"),
    "table8": by_target("ner"),
}
