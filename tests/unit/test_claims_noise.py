"""How certain the numbers behind a claim are: spread, degrees of freedom, and tests over examples."""

import json
from dataclasses import replace
from math import hypot, sqrt
from statistics import stdev

import pytest
from tests.unit.claim_mutants import both, fits, put, verdict

from crossalign.papers import make
from crossalign.papers.adjust.claims_studies import Gain, apart, variants
from crossalign.papers.all_claims import evidence_of
from crossalign.papers.common.table import Cell, Row, Table, write_csv
from crossalign.results.claims.claim import FAILS, HOLDS, UNCLEAR
from crossalign.results.claims.values import Number
from crossalign.results.values import Value

T4, T5 = "adjust/table4", "adjust/table5"


def test_the_noise_of_the_original_model_cancels():
    """Two gains over it: its spread of 3 points stands in both, and has no part in their difference."""
    arms = [Number(mean, "points", std, n=5, wanted=5) for mean, std in ((70.0, 0.4), (68.0, 0.3))]
    first, second = (Gain(arm.value - 60.0, "points", hypot(arm.std, 3.0), 5, 5, 2, adjusted=arm) for arm in arms)
    found = apart(first, second)
    assert found.value == pytest.approx(2.0) and (found.n, found.wanted, found.terms) == (5, 5, 2)
    assert found.seed_error == pytest.approx(0.5 / sqrt(5)) and found.freedom == pytest.approx(
        arms[0].minus(arms[1]).freedom
    )
    # Without the scores the spread of the gains is all that is known.
    alone = apart(replace(first, adjusted=None), second)
    assert alone.seed_error == pytest.approx(hypot(first.std, second.std) / sqrt(5))
    # A single run has the spread that is declared, once for each arm.
    single = [replace(gain, std=None, n=1, wanted=1) for gain in (first, second)]
    assert apart(*single).std is None and apart(*single).terms == 2


def test_gains_know_the_scores_behind_them(made, tmp_path):
    (tmp_path / "tuned").symlink_to(made.results.folder / "tuned")
    write_csv(make(T5, made), tmp_path / f"tables/{T5}.csv")
    evidence = evidence_of(made.config, tmp_path)
    columns = variants(evidence, T5, "nli", "qa")
    assert set(columns) == {"xnli", "xquad", "tydiqa"}
    for name, data, source in (
        ("xnli", "nli/xnli_ru/test", "adjust-nli-multinli_en"),
        ("xquad", "qa/xquad_ru/test", "adjust-qa-squad_en"),
    ):
        metric = "accuracy" if name == "xnli" else "F1"
        stds = {}
        for size in ("5k", "250k"):
            paths = [
                tmp_path / f"tuned/mbert+adjust-ru-{size}-avg-all/{source}/ref/seed{seed}/scores.json"
                for seed in (1, 2)
            ]
            stds[size] = stdev(json.loads(path.read_text(encoding="utf-8"))[data][metric] for path in paths)
        found = apart(columns[name].members["5K"], columns[name].members["250K"])
        assert found.seed_error == pytest.approx(hypot(*stds.values()) / sqrt(2))
    # A table of further runs than those whose scores are there.
    path = tmp_path / f"tables/{T5}.csv"
    path.write_text(path.read_text(encoding="utf-8").replace(",2,2,", ",3,3,"), encoding="utf-8")
    numbers = [
        number
        for group in variants(evidence_of(made.config, tmp_path), T5, "qa").values()
        for number in group.numbers()
    ]
    assert numbers and all(number.n == 3 and number.adjusted is None for number in numbers)


def told(tested):
    """As tables of today say it; the papers' own have no such column."""

    def edit(item, row):
        return row | {"tested": tested, "mark": "", "std": "0.1"} if item == T4 and row.get("mean") else row

    return edit


def test_a_test_that_finds_nothing_is_a_test(paper):
    """With so small a spread two gains would be beyond noise; the tests, which were made, find none."""
    assert verdict(("adjust", "qa-gains"), paper, told("yes")).verdict == HOLDS
    assert verdict(("adjust", "qa-gains"), paper, told("")).verdict == FAILS


def test_a_mark_elsewhere_in_the_table_tells_nothing_of_a_cell(paper):
    cross = {"setting": ["question target, paragraph en", "question en, paragraph target"]}

    def mark(item, row):
        return row | {"mark": "*", "tested": "yes"} if item == T4 and fits(row, cross) else row

    assert verdict(("adjust", "qa-gains"), paper, both(told(""), mark)).verdict == FAILS


def test_tables_of_earlier_versions_are_read_by_their_marks(paper):
    def unmarked(item, row):
        return row | {"mark": "", "std": "0.1"} if item == T4 and row.get("mean") else row

    assert verdict(("adjust", "qa-gains"), paper).verdict == HOLDS
    assert verdict(("adjust", "qa-gains"), paper, unmarked).verdict == FAILS
    one = both(unmarked, put(T4, 1.0, "**", model="adjusted+continual", language="es", dataset="mlqa"))
    assert verdict(("adjust", "qa-gains"), paper, one).verdict in (HOLDS, UNCLEAR)


def test_the_column_is_there_where_a_test_was_made(tmp_path):
    cells = [
        Cell({"model": name}, Value(1.0, None, 1, 1), tested=tested) for name, tested in (("a", False), ("b", True))
    ]
    for name, rows in (("with", cells), ("without", cells[:1])):
        write_csv(Table("x/table1", rows=[Row("r", rows)]), tmp_path / f"{name}.csv")
    head, first, second = (tmp_path / "with.csv").read_text().splitlines()
    place = head.split(",").index("tested")
    assert (first.split(",")[place], second.split(",")[place]) == ("", "yes")
    assert "tested" not in (tmp_path / "without.csv").read_text()
