"""Every table renders from a results folder, whole or partial, and says what the papers print beside it."""

import csv
import json
import re
import shutil
import subprocess
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from statistics import mean, median, stdev

import pytest
from tests.unit.made_results import load, make_results

from crossalign.analysis.correlations import spearman_interval
from crossalign.catalog.addresses import Base, Tuned
from crossalign.catalog.sets import DataSet
from crossalign.papers.adjust.arms import mark_note
from crossalign.papers.adjust.significance import Mark, marks
from crossalign.papers.all_items import ITEMS
from crossalign.papers.all_tables import TABLES, make
from crossalign.papers.common.context import Context
from crossalign.papers.common.shades import PAIRS, SETS
from crossalign.papers.common.table import Cell, Column, Row, Table, number
from crossalign.papers.common.table_csv import write_csv
from crossalign.papers.common.table_html import fragment
from crossalign.papers.common.table_latex import document, tex
from crossalign.results.published import published
from crossalign.results.reading import Results
from crossalign.results.values import Value
from crossalign.results.verdict import JUDGED, LABELS
from crossalign.tasks.predictions import write_predictions

NASTY = "<script>alert('x')</script> & \"q\" \\ $_{}#%~^"


@pytest.fixture(scope="module")
def config(root):
    return load(root)


@pytest.fixture(scope="module")
def folder(config, tmp_path_factory):
    path = tmp_path_factory.mktemp("results")
    make_results(path, config)
    return path


@pytest.fixture(scope="module")
def tables(config, folder):
    context = Context(config, Results(folder))
    return {item: make(item, context) for item in TABLES}


def rows_of(table, tmp_path):
    write_csv(table, tmp_path / "table.csv")
    with (tmp_path / "table.csv").open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def score(folder, address, data, metric):
    return json.loads((folder / address / "scores.json").read_text(encoding="utf-8"))[data][metric]


def find(table, **keys):
    found = [cell for cell in table.cells() if all(cell.keys.get(k) == v for k, v in keys.items())]
    assert len(found) == 1, keys
    return found[0]


def test_every_table_has_a_declaration():
    assert sorted(TABLES) == sorted(item for item in ITEMS if "/table" in item)


@pytest.mark.parametrize("item", TABLES)
def test_tables_ask_for_the_runs_of_the_catalog(item, config, folder):
    results = Results(folder)
    context = Context(config, results)
    table = make(item, context)
    needed = context.catalog.needs(item).runs
    assert results.asked <= needed
    # The talk shows the fine-tuned half of a table that needs the pretrained model too.
    assert needed - results.asked <= ({Base("mbert")} if item == "talk/table5" else set())
    assert not table.missing


@pytest.mark.parametrize("item", TABLES)
def test_every_printed_number_stands_beside_one_of_ours(item, tables):
    table = tables[item]
    assert table.published.rest() == []
    for cell in table.cells():
        assert cell.verdict.label in ("", *LABELS)
        assert bool(cell.verdict.label) == (cell.printed is not None)


@pytest.mark.parametrize("item", TABLES)
def test_tables_without_results_say_not_run(item, config, tmp_path):
    context = Context(config, Results(tmp_path))
    table = make(item, context)
    for cell in table.cells():
        if not cell.fact:
            assert cell.shown == "not run" and cell.verdict.label in ("", "not run")
    runs = [run for run in context.catalog.needs(item).runs if isinstance(run, Tuned)]
    if runs:
        stems = {address.rpartition("/seed")[0] for address in table.missing}
        assert {run.path().rpartition("/seed")[0] for run in runs} <= stems
        assert "Not run:" in fragment(table) and "Not run:" in document(table)


def test_scores_and_differences_by_hand(tables, folder):
    table = tables["align-predict/table6"]
    ref, changed = (
        [score(folder, f"tuned/mbert/parsing-en_ewt/{init}/seed{seed}", "trees/de_pud/test", "LAS") for seed in (1, 2)]
        for init in ("ref", "random-3-4")
    )
    cell = find(table, source="en", target="de", layers="ref")
    assert cell.value.mean == pytest.approx(mean(ref)) and cell.value.std == pytest.approx(stdev(ref))
    assert (cell.value.n, cell.keys["kind"]) == (2, "score")
    cell = find(table, source="en", target="de", layers="3-4")
    assert cell.value.mean == pytest.approx(mean(changed) - mean(ref))
    assert cell.value.std == pytest.approx((stdev(changed) ** 2 + stdev(ref) ** 2) ** 0.5)
    assert cell.shade == PAIRS.classify(cell.value.mean)
    assert cell.printed.text == "-9.26" and cell.keys["kind"] == "delta"


def test_mean_rows_leave_out_the_source_and_the_languages_beside(tables, folder, config):
    paper = config["align-predict"]
    others = [lang for lang in paper["languages"] if lang not in ("ru", "sv")]
    assert len(others) == 16
    sets = [f"trees/{paper['test_treebanks'].get(lang, lang + '_pud')}/test" for lang in others]
    seeds = [mean(score(folder, f"tuned/mbert/pos-ru_gsd/ref/seed{s}", d, "accuracy") for d in sets) for s in (1, 2)]
    for item in ("align-predict/table1", "align-predict/table7"):
        cell = find(tables[item], task="pos", source="ru", target="X", layers="ref")
        assert cell.value.mean == pytest.approx(mean(seeds)) and cell.value.std == pytest.approx(stdev(seeds))
        # The notes on the paper give the mean of its rows as 77.94.
        assert cell.printed.text == "79.25" and cell.printed.recomputed == pytest.approx(77.94, abs=0.005)


def test_doubtful_rows_are_not_judged(tables):
    for item, layers in (("align-predict/table6", "ref"), ("align-predict/table7", "1-2")):
        for source, target in (("en", "sl"), ("ru", "ar")):
            cell = find(tables[item], source=source, target=target, layers=layers)
            assert cell.verdict.label == "not judged (doubtful)" and cell.verdict.reason
        assert find(tables[item], source="en", target="sv", layers=layers).printed is None
    assert find(tables["align-predict/table8"], source="en", target="sl", layers="ref").verdict.label in JUDGED


def test_colour_classes():
    assert [PAIRS.classify(d) for d in (0.0, 3.0, -0.01, -1.99, -2.0, -4.99, -5.0, None)] == [
        *("atleast", "atleast", "small", "small", "medium", "medium", "large", "")
    ]
    assert [SETS.classify(d) for d in (0.0, -4.99, -5.0, -9.99, -10.0)] == [
        "atleast",
        "small",
        "medium",
        "medium",
        "large",
    ]


def test_table5_tells_the_spread_of_its_cells(tables):
    table = tables["align-predict/table5"]
    spreads = [cell.value.std for cell in table.cells() if cell.keys["task"] == "ner"]
    ours = " / ".join(f"{value:.2f}" for value in (min(spreads), median(spreads), max(spreads)))
    assert any(f"{ours}; printed 0.0 / 0.47 / 2.62" in note for note in table.notes)
    cell = find(table, task="parsing", target="fr", layers="all")
    reference = find(table, task="parsing", target="fr", layers="ref")
    assert cell.shade == SETS.classify(cell.value.mean - reference.value.mean)
    assert cell.printed_shade == "large"


def test_correlations_by_hand(tables, folder, config):
    scipy_stats = pytest.importorskip("scipy.stats")
    languages = [lang for lang in config["align-predict"]["languages"] if lang not in ("en", "sl")]
    transfer, alike = [], []
    for lang in languages:
        addresses = [f"tuned/mbert/ner-wikiann_en/ref/seed{seed}" for seed in (1, 2)]
        same = [score(folder, address, "ner/wikiann_en/test", "F1") for address in addresses]
        other = [score(folder, address, f"ner/wikiann_{lang}/test", "F1") for address in addresses]
        transfer.append(-(mean(same) - mean(other)))
        values = []
        for address in addresses:
            with (folder / "similarity" / address / "pud.csv").open(encoding="utf-8") as stream:
                rows = list(csv.DictReader(stream))
            values += [
                float(row["value"])
                for row in rows
                if (row["pair"], row["index"], row["control"]) == (f"en-{lang}", "cka", "none") and row["layer"] != "0"
            ]
        assert len(values) == 24
        alike.append(mean(values))
    expected = scipy_stats.spearmanr(alike, transfer)
    cell = find(tables["align-predict/table4"], task="ner", model="fine-tuned", metric="spearman", languages="16")
    assert cell.value.mean == pytest.approx(expected.statistic)
    p = find(tables["align-predict/table4"], task="ner", model="fine-tuned", metric="p", languages="16")
    assert p.value.mean == pytest.approx(expected.pvalue)
    with_english = scipy_stats.spearmanr([*alike, 1.0], [*transfer, 0.0]).statistic
    cell = find(tables["align-predict/table4"], task="ner", model="fine-tuned", metric="spearman", languages="17")
    assert cell.value.mean == pytest.approx(with_english) and cell.printed is None
    assert (cell.value.low, cell.value.high) == spearman_interval([*alike, 1.0], [*transfer, 0.0])


@pytest.mark.parametrize("item", ["align-predict/table4", "talk/table5"])
def test_correlations_have_intervals_over_languages(tables, item):
    rows = [row for row in tables[item].tidy() if row["mean"]]
    assert {row["metric"] for row in rows} == {"spearman", "p"}
    for row in rows:
        if row["metric"] == "p":
            assert row["low"] == row["high"] == ""
        else:
            assert -1 <= float(row["low"]) < float(row["mean"]) < float(row["high"]) <= 1
    assert any("95 % intervals of rho" in note for note in tables[item].notes)


def test_grid_finds_the_best_setting(tables, folder, config):
    paper = config["align-predict"]
    best = max(
        ((batch, rate) for batch in paper["grid"]["batch"] for rate in ("1e-5", "2.5e-5", "5e-5")),
        key=lambda setting: mean(
            score(
                folder,
                f"tuned/mbert/pos-en_ewt/grid-{setting[0]}-{setting[1]}/seed{seed}",
                "trees/en_ewt/dev",
                "accuracy",
            )
            for seed in (1, 2)
        ),
    )
    table = tables["align-predict/table3"]
    assert find(table, parameter="batch size", column="pos").shown == str(best[0])
    assert find(table, parameter="learning rate", column="pos").shown == best[1]
    assert find(table, parameter="grid search trials", column="pos").shown == "12"
    assert find(table, parameter="run time (min)", column="pos").value.mean == pytest.approx(11.5)


def test_gains_over_the_original_model(tables, folder):
    def seeds(model):
        return [
            score(folder, f"tuned/{model}/adjust-qa-squad_en/ref/seed{s}", "qa/tydiqa_ru/dev", "F1") for s in (1, 2)
        ]

    cell = find(tables["adjust/table5"], dataset="tydiqa", variant="size=100K")
    assert cell.value.mean == pytest.approx(mean(seeds("mbert+adjust-ru-100k-avg-all")) - mean(seeds("mbert")))
    assert cell.printed.text == "-1.09" and cell.shown == number(cell.value.mean, 2, True)


def test_only_one_reading_of_ner_is_judged(tables):
    for item in ("adjust/table3", "adjust/table9"):
        judged = Counter(
            cell.keys["metric"]
            for cell in tables[item].cells()
            if cell.keys["task"] == "ner" and cell.verdict.label in JUDGED
        )
        assert len(judged) == 1


def test_demo_numbers_are_not_judged(root, tmp_path):
    config = load(root, "config.yaml", "config.demo.yaml")
    make_results(tmp_path, config)
    context = Context(config, Results(tmp_path))
    for item in TABLES:
        labels = {row["verdict"] for row in make(item, context).tidy()}
        assert not labels & set(JUDGED), item
        assert labels <= {"", "left out", "not judged (artificial languages)", "not judged (not comparable)"}
    # The main setting of the demo stands beside the paper's main setting, other sizes beside nothing.
    assert (
        find(make("adjust/table2", context), language="hi", model="adjusted", setting="original").printed.text
        == "61.54"
    )


def test_partial_results_show_their_count(config, folder, tmp_path):
    shutil.copytree(folder / "tuned/mbert", tmp_path / "tuned/mbert")
    shutil.rmtree(tmp_path / "tuned/mbert/parsing-en_ewt/random-1-2/seed2")
    table = make("align-predict/table1", Context(config, Results(tmp_path)))
    cell = find(table, task="parsing", source="en", target="X", layers="1-2")
    assert (cell.value.n, cell.value.std, table.count_shown(cell)) == (1, None, "1/2")
    assert "1 of 2 runs" in cell.verdict.reason
    assert table.missing == ["tuned/mbert/parsing-en_ewt/random-1-2/seed2"]
    assert 'class="n">n=1/2<' in fragment(table) and r"\runs{1/2}" in document(table)


def test_csv_is_tidy(tables, tmp_path):
    rows = rows_of(tables["adjust/table4"], tmp_path)
    assert list(rows[0])[:9] == ["task", "dataset", "setting", "base", "model", "language", "variant", "metric", "kind"]
    assert len(rows) == 88
    first = rows[0]
    assert float(first["difference"]) == pytest.approx(float(first["mean"]) - float(first["printed"]), abs=2e-6)
    assert {row["n"] for row in rows} == {"2"}


class Structure(HTMLParser):
    """Tags that open and close, and the text between them."""

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.text, self.attributes = [], Counter(), "", []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags[tag] += 1
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def nasty_table():
    cell = Cell({"a": NASTY}, Value(1.0, 0.5, 2, 2), printed=published("adjust/table2").printed(0), mark="*")
    fact = Cell({"a": "b"}, text=NASTY, fact=True, printed=replace(cell.printed, text=NASTY))
    return Table(
        f"x/{NASTY}",
        NASTY,
        NASTY,
        [Column(NASTY, NASTY), Column("b")],
        [Row(NASTY, [cell, fact], NASTY)],
        [NASTY],
        PAIRS,
    )


def test_names_stay_text_in_html():
    parser = Structure()
    parser.feed(fragment(nasty_table()))
    parser.close()
    assert not parser.open and "script" not in parser.tags
    assert parser.text.count(NASTY) >= 6
    assert ("data-printed", NASTY) in parser.attributes


@pytest.mark.parametrize("item", TABLES)
def test_html_is_well_formed_and_square(item, tables):
    parser = Structure()
    html = fragment(tables[item])
    parser.feed(html)
    parser.close()
    assert not parser.open and parser.tags["td"] == len(tables[item].rows) * len(tables[item].columns)
    assert '</span><span class="printed' not in html, "without a style, ours and theirs would be one number"


def check_structure(text, columns):
    """What TeX would stumble over: braces, environments, and rows of the wrong length."""
    bare = re.sub(r"\\[\\{}&%$#_]", lambda found: "  " if found[0] != r"\\" else r"\\", text)
    bare = re.sub(r"(?<!\\)%.*", "", bare)
    depth = 0
    for char in bare:
        depth += (char == "{") - (char == "}")
        assert depth >= 0
    assert depth == 0
    assert Counter(re.findall(r"\\begin{(\w+)}", bare)) == Counter(re.findall(r"\\end{(\w+)}", bare))
    assert bare.count("$") % 2 == 0
    assert bare.isascii() or all(ord(char) < 0x180 for char in bare)
    for line in bare.splitlines():
        if "&" in line:
            spans = sum(int(width) - 1 for width in re.findall(r"\\multicolumn{(\d+)}", line))
            assert line.count("&") + spans == columns, line


@pytest.mark.parametrize("item", TABLES)
def test_latex_structure(item, tables):
    check_structure(document(tables[item]), len(tables[item].columns))


def test_names_stay_text_in_latex():
    check_structure(document(nasty_table()), 2)
    assert tex("50% & $x_1$ [a] é ə") == r"50\% \& $\mathdollar$x\_1$\mathdollar$ {[}a{]} é ?"
    assert tex("a\nb\x00c") == "a b c"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no pdflatex on PATH")
def test_latex_compiles(tables, tmp_path):
    for item, table in [*tables.items(), ("x/nasty", nasty_table())]:
        (tmp_path / "table.tex").write_text(document(table), encoding="utf-8")
        done = subprocess.run(
            ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "table.tex"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{item}: {done.stdout[-2000:]}"
        assert "Overfull" not in done.stdout or item == "x/nasty", item


def predictions(folder, model, init, seed, right):
    run = Tuned(model, "adjust-nli", "multinli_en", init, seed)
    rows = [{"id": str(place), "label": 0, "right": int(right(place))} for place in range(200)]
    write_predictions(folder / run.path() / "predictions.jsonl.gz", "nli", ["a", "b"], {"nli/xnli_hi/test": rows})
    return run


def test_significance_marks(tmp_path):
    data = DataSet("nli", "xnli_hi", "test")
    worse = [predictions(tmp_path, "mbert", "ref", seed, lambda place: place % 2) for seed in (1, 2)]
    better = [
        predictions(tmp_path, "mbert+adjust-hi-30k-avg-all", "ref", seed, lambda place: place % 4) for seed in (1, 2)
    ]
    results = Results(tmp_path)
    assert marks(results, better, worse, data).differs is True
    assert marks(results, worse, worse, data).differs is False
    absent = marks(results, better, worse, DataSet("nli", "xnli_ru", "test"))
    assert absent.differs is None and absent.reason == "predictions are missing"


def test_marks_say_the_smallest_p_that_the_test_can_give(tmp_path):
    runs = [predictions(tmp_path, "mbert", "ref", seed, lambda place: place % 2) for seed in (1, 2)]
    tested = marks(Results(tmp_path), runs, runs, DataSet("nli", "xnli_hi", "test"))
    assert (tested.smallest_p, tested.seeds) == (0.0, 2)
    note = mark_note([tested])
    assert "a paired t-test over examples, whose p has no lower bound" in note
    assert "a test of the seeds alone (n = 2) could give no less than 0.5." in note
    note = mark_note([Mark(True, p=0.001, smallest_p=1 / 1001, seeds=5), Mark(None, "predictions are missing")])
    assert "a permutation test over sentences, whose p cannot fall below 0.0010" in note
    assert "(n = 5) could give no less than 0.0625." in note and "predictions are missing." in note


def test_marks_say_why_they_are_missing(tables):
    for item in ("adjust/table2", "adjust/table3", "adjust/table4"):
        assert any("not all could be tested: predictions are missing" in note for note in tables[item].notes)


def test_models_are_counted_in_their_files(config, tmp_path):
    model = tmp_path / "xlmr-base"
    model.mkdir()
    (model / "config.json").write_text('{"num_hidden_layers": 3, "hidden_size": 8}')
    head = json.dumps({"roberta.a": {"shape": [3, 4]}, "lm_head.b": {"shape": [5]}, "__metadata__": {}}).encode()
    (model / "model.safetensors").write_bytes(len(head).to_bytes(8, "little") + head)
    table = make("anc/table2", Context(config | {"models": str(tmp_path)}, Results(tmp_path)))
    shown = {cell.keys["field"]: cell.shown for cell in table.rows[0].cells}
    assert shown == {
        "objective": "MLM",
        "parameters": "12",
        "layers": "3",
        "neurons_per_layer": "8",
        "languages": "100",
    }


def test_printed_values_keep_their_form(tables):
    cells = [
        find(tables["align-predict/table3"], parameter="learning rate", column="ner"),
        find(tables["anc/table2"], model="xglm-7.5B", field="parameters"),
        find(tables["align-predict/table8"], source="en", target="fr", layers="1-2"),
        find(tables["talk/table1"], target="fr"),
    ]
    assert [cell.printed_shown for cell in cells] == ["3.5e-5", "7,500,000,000", "", "74.0"]


def test_raw_sentences_are_counted(tables):
    assert find(tables["talk/table3"], language="Wolof", field="raw_sentences").shown == "1,000"


def test_numbers_for_people():
    assert [number(v, 2, s) for v, s in ((-0.001, True), (1.0, True), (-1.5, False), (2.0, False))] == [
        *("0.00", "+1.00", "−1.50", "2.00")
    ]
    assert number(1234567.0, 0, False) == "1,234,567"
