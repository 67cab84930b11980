"""How findings are judged, on planted numbers: the effect is there, is not there, is there but noisy, was not run."""

import csv
import json
import math
from dataclasses import replace

import pandas as pd
import pytest
import yaml
from tests.planted import finding

from crossalign.papers import PAPERS
from crossalign.papers.all_findings import findings
from crossalign.papers.all_items import ITEMS
from crossalign.results.findings.comparison import comparisons
from crossalign.results.findings.files import read_findings, with_reasons, write_findings
from crossalign.results.findings.finding import FAILS, HOLDS, NOT_RUN, UNLEARNT, UNSURE, VERDICTS, Finding
from crossalign.results.findings.judge import judge
from crossalign.results.findings.views import views
from crossalign.runtime.errors import UserError

CONFIG = {"similarity": {"index": "cka"}}


def planted(holds, rows, index=("seed", "language"), **told):
    """A finding that finds just these rows, judged."""
    table = pd.DataFrame(rows).set_index(list(index))
    one = Finding("anc", "x", "figure 1", "", "anc-deep", holds, lambda scores: table, **told)
    empty = pd.DataFrame({"seed": [], "value": [], "error": []})
    return judge(one, {"scores": empty}, CONFIG)


def by_seed(*values, language="de"):
    return [{"seed": seed, "language": language, "a": value} for seed, value in enumerate(values, start=1)]


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ((-3.0, -3.2, -2.9), HOLDS),
        ((3.0, 3.2, 2.9), FAILS),
        ((-3.0, 2.0, -6.0), UNSURE),
        ((-0.5, -0.6, -0.4), FAILS),  # the size counts, not only the sign
        ((-2.2, -2.4, -1.9), UNSURE),
    ],
)
def test_seeds_decide(values, verdict):
    found = planted("a < -2", by_seed(*values))
    assert found.verdict == verdict
    (one,) = found.estimates
    assert one.n == 3 and one.over == "seeds"
    # Student's t with two degrees of freedom.
    mean = sum(values) / 3
    half = 4.302653 * math.sqrt(sum((value - mean) ** 2 for value in values) / 2 / 3)
    assert (one.estimate, one.low, one.high) == pytest.approx((mean, mean - half, mean + half))


def test_pairs_of_seeds_decide_and_not_their_spread():
    """Seeds differ by far more than the two quantities, and each seed says the same of these."""
    rows = [{"seed": k, "language": "de", "a": 10.0 * k, "b": 10.0 * k + 1 + 0.1 * (k % 2)} for k in range(1, 6)]
    assert planted("a < b", rows).verdict == HOLDS
    rows[0]["b"] = float("nan")
    found = planted("a < b", rows)
    assert found.verdict == HOLDS and found.estimates[0].n == 4


def test_one_seed_is_judged_over_languages():
    rows = [{"seed": 1, "language": f"l{k}", "a": -4.0 - k % 3} for k in range(9)]
    found = planted("a < -2", rows)
    assert (found.verdict, found.estimates[0].over, found.estimates[0].n) == (HOLDS, "languages", 9)
    assert planted("a < -5", rows).verdict == UNSURE and planted("a > -2", rows).verdict == FAILS


def test_languages_that_a_seed_lacks_do_not_shift_its_mean():
    rows = by_seed(-1.0, -1.1, -0.9) + by_seed(-9.0, -9.1, language="fr")
    assert planted("a < 0", rows).estimates[0].estimate == pytest.approx(-1.0)


@pytest.mark.parametrize(
    ("worse", "most", "verdict"),
    [(0, False, HOLDS), (1, False, FAILS), (1, True, HOLDS), (3, True, FAILS), (2, True, UNSURE)],
)
def test_each_language_must_or_most(worse, most, verdict):
    rows = []
    for place in range(4):
        sign = 1 if place < worse else -1
        rows += by_seed(3.0 * sign, 3.1 * sign, 2.9 * sign, language=f"l{place}")
    assert planted("a < 0", rows, each=("language",), most=most).verdict == verdict


def test_what_is_said_of_all_is_not_told_before_all_are_there():
    rows = by_seed(-3.0, -3.1, -2.9) + by_seed(None, None, None, language="fr")
    found = planted("a < 0", [row | {"b": 1.0} for row in rows], each=("language",))
    assert (found.verdict, found.agreement, found.reason) == (UNSURE, "1 of 2 languages", "no results yet for fr")
    assert planted("a < 0", rows[:3], each=("language",)).agreement == "1 of 1 languages"


def test_what_was_not_learnt_is_not_judged():
    rows = [row | {"score": 20.0} for row in by_seed(-3.0, -3.1, -2.9)]
    found = planted("a < 0", rows, task="pos")
    assert found.verdict == UNLEARNT and "34" in found.reason
    assert planted("a < 0", rows, task="parsing").verdict == HOLDS


def test_no_rows_no_verdict():
    assert planted("a < 0", [{"seed": 1, "language": "de", "a": float("nan")}]).verdict == NOT_RUN


def test_one_language_of_one_seed_is_judged_over_its_sentences():
    one = replace(
        finding("upper-en-pos"), id="y", function=lambda scores: scores.set_index("seed")[["value"]], holds="value > 0"
    )
    for error, verdict in ((0.5, HOLDS), (3.0, UNSURE), (float("nan"), UNSURE)):
        scores = pd.DataFrame({"seed": [1], "value": [2.0], "error": [error]})
        curves = pd.DataFrame(
            columns=["seed", "address", "corpus", "pair", "measure", "value", "error", "lead"], dtype=float
        )
        names = [f"{name}{end}" for name in ("related", "unrelated", "separation") for end in ("", "_error")]
        frames = {
            "scores": scores,
            "similarity": curves,
            "distances": pd.DataFrame(columns=["seed", *names], dtype=float),
        }
        found = judge(one, frames, CONFIG)
        assert (found.verdict, found.estimates[0].over) == (verdict, "test sentences")
        if error < 3:
            assert found.estimates[0].high - 2.0 == pytest.approx(1.96 * error, rel=0.2)


def test_rank_correlations_are_judged_over_languages():
    rows = [{"seed": seed, "language": f"l{k}", "a": k, "b": k + 0.1 * seed} for seed in (1, 2) for k in range(10)]
    one, *_ = planted("rho(a, b) > 0", rows).estimates
    assert (one.estimate, one.over, one.n, one.verdict) == (pytest.approx(1.0), "languages", 10, HOLDS)


@pytest.mark.parametrize(
    "text",
    [
        "a",
        "a < b < c",
        "a < 1 or b < 1",
        "f(a) < 1",
        "a == 1",
        "a <",
        "a ** 2 < 1",
        "rho(a, b) + a > 0",
        "0 < rho(a, b)",
    ],
)
def test_what_is_no_comparison(text):
    with pytest.raises(UserError):
        comparisons(text)


def test_every_finding_is_told_by_the_paper_and_rests_on_items():
    """Sentences are those of the printed register, whose claim a finding names."""
    assert 35 <= len(findings()) <= 45 and {one.paper for one in findings()} == set(PAPERS)
    for one in findings():
        assert len(one.sentence.split()) > 5, one.id
        assert one.items and set(one.items) <= set(ITEMS), one.id
        assert one.says and len(one.says) <= 110 and not one.says.endswith("."), one.id


def test_files(tmp_path):
    judged = [
        planted("a < -2", by_seed(-3.0, -3.2, -2.9)),
        planted("a < 0", [{"seed": 1, "language": "de", "a": None}]),
    ]
    counts = write_findings(judged, tmp_path / "findings.csv")
    assert counts == {HOLDS: 1, FAILS: 0, UNSURE: 0, UNLEARNT: 0, NOT_RUN: 1}
    read = read_findings(tmp_path / "findings.json")
    assert [one.verdict for one in read] == [HOLDS, NOT_RUN] and math.isnan(read[0].estimates[0].printed)
    assert read[0].estimates[0].estimate == judged[0].estimates[0].estimate
    rows = list(csv.DictReader((tmp_path / "findings.csv").open()))
    assert [row["rule"] for row in rows] == ["a < -2", ""] and rows[0]["printed"] == ""
    assert read_findings(tmp_path / "none.json") is None
    (tmp_path / "findings.json").write_text(json.dumps([{"id": "x"}]))
    with pytest.raises(UserError, match="make it again"):
        read_findings(tmp_path / "findings.json")


def test_reasons_are_told_of_what_does_not_come_out():
    (one,) = [planted("a < 0", by_seed(3.0, 3.1, 2.9))]
    one = replace(one, id="anc-deep")
    assert with_reasons([one], {"anc-deep": "why"})[0].why == "why"
    assert with_reasons([replace(one, verdict=HOLDS)], {"anc-deep": "why"})[0].why == ""
    with pytest.raises(UserError, match="'anc-dep' is no finding"):
        with_reasons([one], {"anc-dep": "why"})


def test_every_measured_reason_is_of_a_finding(root):
    files = [root / "resources/demo/reasons.yaml", *sorted((root / "docs/results").glob("*/reasons.yaml"))]
    names = {name for file in files for name in yaml.safe_load(file.read_text(encoding="utf-8"))}
    assert len(files) >= 2 and names <= {one.id for one in findings()}


def test_models_are_told_by_their_role(root):
    """Two pretrainings take the place of mBERT: each seed has one."""
    columns = ["paper", "model", "task", "set", "metric", "seed", "value", "low", "high"]
    rows = [("adjust", name, "nli", "nli/xnli_es/test", "accuracy", seed, 70.0, 69.02, 70.98) for name, seed in
            (("small", 1), ("small-2+adjust-es-10k-avg-all", 2), ("bilstm", 1))]  # fmt: skip
    scores = pd.DataFrame(rows, columns=columns)
    similarity = pd.DataFrame(
        [("adjust", name, "en-es", "cka", "none", None, 0.5) for name in ("small", "small-2")],
        columns=["paper", "model", "pair", "index", "control", "seed", "value"],
    )
    frames = {"scores": scores, "similarity": similarity, "distances": scores.assign(language="es").iloc[:0]}
    found = views(frames, "adjust", CONFIG | {"adjust": {"base": ["small", "small-2"]}})
    assert found["scores"]["base"].tolist() == ["mbert", "mbert", "bilstm"]
    assert found["scores"]["language"].tolist() == ["", "es", ""] and found["scores"]["family"].unique() == ["xnli"]
    assert found["scores"]["error"].tolist() == pytest.approx([0.5] * 3, rel=1e-3)
    assert found["similarity"]["seed"].tolist() == [1, 2] and found["similarity"]["language"].tolist() == ["es", "es"]


def test_the_readme_counts_what_the_published_files_say(root):
    """And every finding of the demo that does not hold has a measured reason."""
    readme = (root / "README.md").read_text(encoding="utf-8")
    assert len(findings()) == 42 and "**Forty-two findings" in readme
    rows = [line.split(" | ") for line in readme.splitlines()]
    told = {
        cells[0]: [int(cell.strip(" |")) for cell in cells[2:]]
        for cells in rows
        if len(cells) == 7 and cells[2].isdigit()
    }
    for folder, name in (("demo", "demo"), ("pretrained-here", "pretrained here")):
        judged = read_findings(root / "docs" / "results" / folder / "findings.json")
        counts = [sum(one.verdict == verdict for one in judged) for verdict in VERDICTS]
        assert [numbers for cell, numbers in told.items() if f"[{name}]" in cell] == [counts], folder
        assert {one.id for one in judged} == {one.id for one in findings()}, folder
    published = read_findings(root / "docs/results/demo/findings.json")
    assert [one.id for one in published if one.verdict in (FAILS, UNSURE, UNLEARNT) and not one.why] == []
