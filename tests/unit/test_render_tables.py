"""Every table renders from a results folder, whole or partial, and says what the papers print beside it."""

import json
import re
import shutil
import subprocess
from collections import Counter
from dataclasses import replace
from statistics import mean, stdev

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import save_file
from scipy.stats import spearmanr
from tests.made_report import Elements

from crossalign.analysis.correlations import spearman_interval
from crossalign.catalog.addresses import Base, Tuned
from crossalign.catalog.sets import DataSet, text_set
from crossalign.papers import all_of, make
from crossalign.papers.adjust.arms import Mark, mark_note, marks
from crossalign.papers.all_items import ITEMS, catalog_of
from crossalign.papers.common.context import Context
from crossalign.papers.common.table import PAIRS, SETS, Cell, Column, Row, Table, write_csv
from crossalign.papers.common.table_html import html_page
from crossalign.papers.common.table_latex import document, tex
from crossalign.results.published import Printed, published
from crossalign.results.reading import Results
from crossalign.results.values import Value
from crossalign.results.verdict import JUDGED, LABELS
from crossalign.tasks.predictions import write_predictions

TABLES = all_of("tables")
NASTY = "<script>alert('x')</script> & \"q\" \\ $_{}#%~^"


@pytest.fixture(scope="module")
def tables(made):
    return {item: make(item, made) for item in TABLES}


@pytest.fixture(scope="module")
def score(made):
    """Scores of both seeds of a model, read by hand."""

    def read(address, data, metric):
        paths = [made.results.folder / address / f"seed{seed}/scores.json" for seed in (1, 2)]
        return [json.loads(path.read_text(encoding="utf-8"))[data][metric] for path in paths]

    return read


def find(table, **keys):
    (found,) = [cell for cell in table.cells() if all(cell.keys.get(k) == v for k, v in keys.items())]
    return found


def check_latex(text, columns):
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
    assert all(ord(char) < 0x180 for char in bare)
    for line in bare.splitlines():
        if "&" in line:
            spans = sum(int(width) - 1 for width in re.findall(r"\\multicolumn{(\d+)}", line))
            assert line.count("&") + spans == columns, line


def test_every_item_has_a_declaration():
    assert sorted(all_of("tables")) == sorted(item for item in ITEMS if "/table" in item)
    assert sorted(all_of("figures")) == sorted(item for item in ITEMS if "/figure" in item)


@pytest.mark.parametrize("item", TABLES)
def test_tables_of_finished_runs(item, made):
    """Runs, verdicts, and the structure of HTML and LaTeX."""
    context = Context(made.config, Results(made.results.folder))
    table = make(item, context)
    needed, asked = catalog_of(made.config).needs(item).runs, context.results.asked
    # The talk shows the fine-tuned half of a table that needs the pretrained model too; models are no results.
    spared = needed if "model" in ITEMS[item].reads else {Base("mbert")} if item == "talk/table5" else set()
    assert asked <= needed and needed - asked <= spared
    assert not table.missing
    assert [*table.published.rest()] == [], "every printed number stands beside one of ours"
    for cell in table.cells():
        assert cell.verdict.label in ("", *LABELS)
        assert bool(cell.verdict.label) == (cell.printed is not None)
    html = html_page(table)
    cells = [tag for tag, _ in Elements(html).found if tag == "td"]
    assert len(cells) == len(table.rows) * len(table.columns)
    assert '</span><span class="printed' not in html, "without a style, ours and theirs would be one number"
    assert html.startswith("<!doctype html>") and ".item .printed {" in html, "it opens by itself"
    assert ("what the paper printed" in html) == any(cell.printed for cell in table.cells())
    check_latex(document(table), len(table.columns))


@pytest.mark.parametrize("item", TABLES)
def test_tables_without_results_say_not_run(item, made, tmp_path):
    table = make(item, Context(made.config, Results(tmp_path)))
    for cell in table.cells():
        if not cell.fact:
            assert cell.shown == "not run" and cell.verdict.label in ("", "not run")
    runs = [run for run in catalog_of(made.config).needs(item).runs if isinstance(run, Tuned)]
    if runs:
        stems = {address.rpartition("/seed")[0] for address in table.missing}
        assert {run.path().rpartition("/seed")[0] for run in runs} <= stems
        assert "Not run:" in html_page(table) and "Not run:" in document(table)


def test_scores_and_differences_by_hand(tables, score):
    table = tables["align-predict/table6"]
    ref, changed = (
        score(f"tuned/mbert/parsing-en_ewt/{init}", "trees/de_pud/test", "LAS") for init in ("ref", "random-3-4")
    )
    cell = find(table, source="en", target="de", layers="ref")
    assert cell.value.mean == pytest.approx(mean(ref)) and cell.value.std == pytest.approx(stdev(ref))
    assert (cell.value.n, cell.keys["kind"]) == (2, "score")
    cell = find(table, source="en", target="de", layers="3-4")
    assert cell.value.mean == pytest.approx(mean(changed) - mean(ref))
    assert cell.value.std == pytest.approx((stdev(changed) ** 2 + stdev(ref) ** 2) ** 0.5)
    assert cell.shade == PAIRS.classify(cell.value.mean)
    assert cell.printed.text == "-9.26" and cell.keys["kind"] == "delta"


def test_mean_rows_leave_out_the_source_and_the_languages_beside(tables, score, made):
    paper = made.config["align-predict"]
    others = [lang for lang in paper["languages"] if lang not in ("ru", "sv")]
    assert len(others) == 16
    sets = [f"trees/{paper['test_treebanks'].get(lang, lang + '_pud')}/test" for lang in others]
    each = [score("tuned/mbert/pos-ru_gsd/ref", data, "accuracy") for data in sets]
    seeds = [mean(values) for values in zip(*each, strict=True)]
    for item in ("align-predict/table1", "align-predict/table7"):
        cell = find(tables[item], task="pos", source="ru", target="X", layers="ref")
        assert cell.value.mean == pytest.approx(mean(seeds)) and cell.value.std == pytest.approx(stdev(seeds))
        # The notes on the paper give the mean of its rows as 77.94.
        assert cell.printed.text == "79.25" and cell.printed.recomputed == pytest.approx(77.94, abs=0.005)


@pytest.mark.parametrize(
    ("shading", "classes"),
    [
        (
            PAIRS,
            {"atleast": (0.0, 3.0), "small": (-0.01, -1.99), "medium": (-2.0, -4.99), "large": (-5.0,), "": (None,)},
        ),
        (SETS, {"atleast": (0.0,), "small": (-4.99,), "medium": (-5.0, -9.99), "large": (-10.0,)}),
    ],
)
def test_colour_classes(shading, classes):
    for name, differences in classes.items():
        assert {shading.classify(each) for each in differences} == {name}
    assert shading.classify(None) == ""


def test_correlations_by_hand(tables, score, made):
    languages = [lang for lang in made.config["align-predict"]["languages"] if lang not in ("en", "sl")]
    address = "tuned/mbert/ner-wikiann_en/ref"
    frame = pd.concat(pd.read_csv(made.results.folder / f"similarity/{address}/seed{seed}/pud.csv") for seed in (1, 2))
    frame = frame[(frame["index"] == "cka") & (frame["control"] == "none") & (frame["layer"] > 0)]
    by_pair = frame.groupby("pair")["value"]
    assert set(by_pair.count()) == {24}
    alike = [by_pair.mean()[f"en-{lang}"] for lang in languages]
    english = mean(score(address, "ner/wikiann_en/test", "F1"))
    transfer = [mean(score(address, f"ner/wikiann_{lang}/test", "F1")) - english for lang in languages]
    cells = {
        (metric, count): find(
            tables["align-predict/table4"], task="ner", model="fine-tuned", metric=metric, languages=count
        )
        for metric, count in (("spearman", "16"), ("p", "16"), ("spearman", "17"))
    }
    expected = spearmanr(alike, transfer)
    assert cells["spearman", "16"].value.mean == pytest.approx(expected.statistic)
    assert cells["p", "16"].value.mean == pytest.approx(expected.pvalue)
    cell = cells["spearman", "17"]
    assert cell.value.mean == pytest.approx(spearmanr([*alike, 1.0], [*transfer, 0.0]).statistic)
    assert cell.printed is None
    assert (cell.value.low, cell.value.high) == spearman_interval([*alike, 1.0], [*transfer, 0.0])


def test_grid_finds_the_best_setting(tables, score, made):
    settings = [(b, r) for b in made.config["align-predict"]["grid"]["batch"] for r in ("1e-5", "2.5e-5", "5e-5")]
    trained = "tuned/mbert/pos-en_ewt/grid-{}-{}"
    batch, rate = max(settings, key=lambda each: mean(score(trained.format(*each), "trees/en_ewt/dev", "accuracy")))
    shown = {"batch size": str(batch), "learning rate": rate, "grid search trials": "12", "run time (min)": "11.5"}
    for parameter, text in shown.items():
        assert find(tables["align-predict/table3"], parameter=parameter, column="pos").shown == text


def test_an_unfinished_search_is_not_judged(made, tmp_path):
    """Half of the trials of a setting are enough to name a best one, and not to say that it is the best."""
    shutil.copytree(made.results.folder / "tuned/mbert", tmp_path / "tuned/mbert")
    for path in tmp_path.glob("tuned/mbert/pos-en_ewt/grid-*/seed2"):
        shutil.rmtree(path)
    table = make("align-predict/table3", Context(made.config, Results(tmp_path)))
    for parameter in ("batch size", "learning rate", "grid search trials"):
        cell = find(table, parameter=parameter, column="pos")
        assert cell.shown and (cell.verdict.label, cell.verdict.reason) == ("not run", "6 of 12 trials")
        assert find(table, parameter=parameter, column="ner").verdict.label in JUDGED


def test_partial_results_show_their_count(made, tmp_path):
    shutil.copytree(made.results.folder / "tuned/mbert", tmp_path / "tuned/mbert")
    shutil.rmtree(tmp_path / "tuned/mbert/parsing-en_ewt/random-1-2/seed2")
    table = make("align-predict/table1", Context(made.config, Results(tmp_path)))
    cell = find(table, task="parsing", source="en", target="X", layers="1-2")
    assert (cell.value.n, cell.value.std, table.count_shown(cell)) == (1, None, "1/2")
    assert "1 of 2 runs" in cell.verdict.reason
    assert table.missing == ["tuned/mbert/parsing-en_ewt/random-1-2/seed2"]
    assert 'class="n">n=1/2<' in html_page(table) and r"\runs{1/2}" in document(table)


def test_csv_is_tidy(tables, tmp_path):
    write_csv(tables["adjust/table4"], tmp_path / "table.csv")
    frame = pd.read_csv(tmp_path / "table.csv")
    keys = ["task", "dataset", "setting", "base", "model", "language", "variant", "metric", "kind"]
    assert list(frame)[:9] == keys and len(frame) == 88
    assert list(frame["difference"]) == pytest.approx(list(frame["mean"] - frame["printed"]), abs=2e-6, nan_ok=True)
    assert set(frame["n"]) == {2}


def nasty_table():
    cell = Cell({"a": NASTY}, Value(1.0, 0.5, 2, 2), printed=Printed.of(published("adjust/table2").rows[0]), mark="*")
    fact = Cell({"a": "b"}, text=NASTY, fact=True, printed=replace(cell.printed, text=NASTY))
    rows = [Row(NASTY, [cell, fact], NASTY)]
    return Table(f"x/{NASTY}", NASTY, NASTY, [Column(NASTY, NASTY), Column("b")], rows, [NASTY], PAIRS)


def test_names_stay_text():
    html = Elements(html_page(nasty_table()))
    assert "script" not in dict(html.found) and html.text.count(NASTY) >= 6
    assert NASTY in [attributes.get("data-printed") for _, attributes in html.found]
    check_latex(document(nasty_table()), 2)
    assert tex("50% & $x_1$ [a] é ə") == r"50\% \& $\mathdollar$x\_1$\mathdollar$ {[}a{]} é ?"
    assert tex("a\nb\x00c") == "a b c"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no pdflatex on PATH")
def test_latex_compiles(tables, tmp_path):
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "table.tex"]
    for item, table in [*tables.items(), ("x/nasty", nasty_table())]:
        (tmp_path / "table.tex").write_text(document(table), encoding="utf-8")
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, f"{item}: {done.stdout[-2000:]}"
        assert "Overfull" not in done.stdout or item == "x/nasty", item


@pytest.fixture
def predicted(tmp_path):
    """Predictions of two seeds of a model, right where a function says so."""

    def write(model, right, count=200):
        runs = [Tuned(model, "adjust-nli", "multinli_en", "ref", seed) for seed in (1, 2)]
        rows = [{"id": str(place), "label": 0, "right": int(right(place))} for place in range(count)]
        for run in runs:
            path = tmp_path / run.path() / "predictions.jsonl.gz"
            write_predictions(path, "nli", ["a", "b"], {"nli/xnli_hi/test": rows})
        return runs

    return write


def test_significance_marks(predicted, tables, tmp_path):
    data = DataSet("nli", "xnli_hi", "test")
    worse = predicted("mbert", lambda place: place % 2)
    better = predicted("mbert+adjust-hi-30k-avg-all", lambda place: place % 4)
    results = Results(tmp_path)
    assert marks(results, better, worse, data, "accuracy").differs is True
    absent = marks(results, better, worse, DataSet("nli", "xnli_ru", "test"), "accuracy")
    assert absent.differs is None and absent.reason == "predictions are missing"
    for item in ("adjust/table2", "adjust/table3", "adjust/table4"):
        assert any("not all could be tested: predictions are missing" in note for note in tables[item].notes)
    fewer = marks(results, better, predicted("embert-hi", lambda place: place % 2, 199), data, "accuracy")
    assert (fewer.differs, fewer.reason.partition(";")[0]) == (None, "the predictions are of different examples")
    same = marks(results, worse, worse, data, "accuracy")
    assert (same.differs, same.smallest_p, same.seeds) == (False, 0.0, 2)
    note = mark_note([same])
    assert "a paired t-test over examples, whose p has no lower bound" in note
    assert "a test of the seeds alone (n = 2) could give no less than 0.5." in note
    note = mark_note([Mark(True, smallest_p=1 / 1001, seeds=5), absent])
    assert "a permutation test over sentences, whose p cannot fall below 0.0010" in note
    assert "(n = 5) could give no less than 0.0625." in note and "predictions are missing." in note


def test_a_table_says_what_was_tested_and_found_no_different(predicted, made, tmp_path):
    """Two models that are right on the same examples: a test was made, and gives no mark."""
    for model in ("mbert", "mbert+adjust-hi-30k-avg-all"):
        predicted(model, lambda place: place % 2)
    table = make("adjust/table2", Context(made.config, Results(tmp_path)))
    tested = [cell.keys for cell in table.cells() if cell.tested]
    assert [(keys["model"], keys["language"], keys["setting"]) for keys in tested] == [("adjusted", "hi", "original")]
    assert not any(cell.mark for cell in table.cells())
    write_csv(table, tmp_path / "table2.csv")
    frame = pd.read_csv(tmp_path / "table2.csv", dtype=str, keep_default_na=False)
    assert list(frame.query("tested == 'yes'")["language"]) == ["hi"]
    write_csv(make("adjust/table4", Context(made.config, Results(tmp_path))), tmp_path / "table4.csv")
    assert "tested" not in pd.read_csv(tmp_path / "table4.csv")


def test_models_are_counted_in_their_files(made, tmp_path):
    model = tmp_path / "xlmr-base"
    model.mkdir()
    (model / "config.json").write_text('{"num_hidden_layers": 3, "hidden_size": 8}')
    tensors = {"roberta.a": np.zeros((3, 4)), "lm_head.b": np.zeros(5), "roberta.embeddings.position_ids": np.zeros(7)}
    save_file(tensors, model / "model.safetensors")
    (model / "more.safetensors").write_bytes(b"cut short")
    table = make("anc/table2", Context(made.config | {"models": str(tmp_path)}, Results(tmp_path)))
    shown = {cell.keys["field"]: cell.shown for cell in table.rows[0].cells}
    counted = {"parameters": "12", "layers": "3", "neurons_per_layer": "8"}
    assert shown == {"objective": "MLM", "languages": "100"} | counted


def test_raw_data_are_counted_with_the_held_out_part(made, tmp_path):
    for split, size in (("train", 3_000_000), ("dev", 1_500_000)):
        path = tmp_path / text_set(made.config, "wo", split).path()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * size)
    table = make("talk/table4", Context(made.config, Results(tmp_path)))
    assert find(table, language="Wolof", field="raw data").shown == "4.5 MB"
    assert find(table, language="Uyghur", field="raw data").shown == "–"
