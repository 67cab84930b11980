"""Findings in words, on the page of a run and in the overview of all runs."""

import json
import re
import subprocess
import sys
from dataclasses import replace

import pytest
from tests.made_report import NASTY, Elements, made_findings, make_run
from tests.unit.made_results import write_json

from crossalign.papers.all_findings import findings
from crossalign.report.findings import Told, counted, tell
from crossalign.report.gather import gather
from crossalign.report.overview import overview, read_columns, rows
from crossalign.report.page import page
from crossalign.results.findings.files import write_findings
from crossalign.results.findings.finding import FAILS, HOLDS, NOT_RUN, UNSURE, VERDICTS
from crossalign.results.findings.judge import Estimate
from crossalign.runtime.errors import UserError

PAPERS = ("align-predict", "anc", "adjust", "talk")


def test_without_a_file_all_findings_of_the_papers_are_not_run(tmp_path):
    told = tell(tmp_path, ["align-predict"])
    assert [one.id for one in told] == [one.id for one in findings() if one.paper == "align-predict"]
    assert counted(told) == {NOT_RUN: f"{len(told)} were not run"}


def judged(*estimates, **told):
    facts = {
        "id": "drop-ru-ar",
        "paper": "align-predict",
        "says": "It falls",
        "sentence": "",
        "where": "table 6, figure 1",
    }
    return Told(**facts | {"verdict": HOLDS} | told, estimates=list(estimates))


def test_one_line_says_number_interval_bounds_and_the_paper_s_own():
    lower = Estimate(
        "",
        "score_home - rho(cka, ru)",
        "score_home - rho(cka, ru) > -0.05",
        0.012,
        -0.0311,
        0.049,
        3,
        "seeds",
        HOLDS,
        -0.5,
    )
    upper = replace(lower, rule="score_home - rho(cka, ru) < 0.04", verdict=UNSURE)
    beside = Estimate("", "layer", "", 7, n=1)
    one = judged(lower, upper, beside)
    assert one.items == ["align-predict/table6", "align-predict/figure1"]
    (line,) = one.lines
    assert line == (
        *("score home minus rank correlation of CKA with Russian", "0.01", "−0.03 to 0.05", "3 seeds"),
        *("between −0.05 and 0.04", "−0.50", UNSURE),
    )
    assert [line.ours for line in one.groups[""]] == ["0.01", "7.0"]
    assert (one.agreement, one.decides) == ("", None)
    other = judged(lower, replace(lower, quantity="ru", rule="ru > 2", estimate=1, verdict=FAILS), verdict=FAILS)
    assert (other.decides.words, other.decides.ours, other.decides.bound) == ("Russian", "1.00", "above 2")


def test_groups_are_told_by_their_mean_and_the_paper_s_only_where_it_has_all():
    ones = [Estimate(group, "gain", "gain > 0", value, value - 1, value + 1, 5, "languages", HOLDS, printed)
            for group, value, printed in (("parsing ru", 3, 4.0), ("pos ru", -1, float("nan")))]  # fmt: skip
    one = judged(*ones, reason="ner reaches 3.0", agreement="1 of 3 cases")
    (line,) = one.lines
    assert (line.ours, line.ends, line.printed, line.verdict) == ("1.0", "−1.0 to 3.0", "", "")
    assert list(one.groups) == ["Parsing, Russian", "POS, Russian"]


@pytest.fixture(scope="module")
def two(root, tmp_path_factory):
    """A demo run, a published one of another world, and a rehearsal; the second lacks a finding and fails another."""
    folder = tmp_path_factory.mktemp("two")
    config = make_run(folder, root, [])
    (folder / "results/demo/report").mkdir()
    (folder / "results/demo/report/index.html").write_text("", encoding="utf-8")
    found = made_findings()
    other = [replace(found[0], verdict=FAILS, estimates=found[1].estimates), *found[2:]]
    base = config | {"align-predict": {"base": "xlmr-base"}, "world": None}
    # A published run may have its config in the record beside its page alone.
    write_json(folder / "docs/results/other/report/provenance.json", {"config": base})
    write_json(folder / "results/trial/config.json", config | {"rehearsal": {"steps": 1}})
    for run in ("docs/results/other", "results/trial"):
        write_findings(other, folder / run / "findings.csv")
    # The same run, published before: the local one is shown.
    write_json(folder / "docs/results/demo/findings.json", {"findings": []})
    return folder


def test_the_overview_has_a_row_a_finding_and_a_column_a_run(two):
    folders = [two / "results", two / "docs/results"]
    columns = read_columns(folders, two / "results/overview.html")
    assert [(column.run, column.about, column.page) for column in columns] == [
        ("other", "XLM-R base", ""),
        ("demo", "artificial languages", "./demo/report/index.html"),
    ]
    found = rows(columns)
    assert list(found) == list(PAPERS) and [len(found[paper]) for paper in PAPERS] == [5, 5, 5, 5]
    first, second = (next(row for row in found["align-predict"] if row.cells[1][1].id == name) for name in ("f0", "f1"))
    assert [one.verdict for _, one in first.cells] == [FAILS, HOLDS]
    assert (first.printed, first.unit) == ("−17.5", "elsewhere minus home, expected below −2")
    assert [one and one.verdict for _, one in second.cells] == [None, FAILS]


def test_the_overview_says_marks_in_words_links_the_pages_and_lets_nothing_in(two):
    content = overview([two / "results", two / "docs/results"], two / "results/overview.html")
    parsed = Elements(content)
    links = [attributes["href"] for tag, attributes in parsed.found if tag == "a"]
    assert links.count("./demo/report/index.html") == 1
    assert "./demo/report/index.html#finding-align-predict-f0" in links
    assert content.count("#mark-holds") >= 4 and "in 1 of 2" in parsed.text and "no part of this run" in parsed.text
    drawn = {attributes.get("id") for tag, attributes in parsed.found if tag == "symbol"}
    used = {attributes["href"][1:] for tag, attributes in parsed.found if tag == "use"}
    assert used == drawn and len(drawn) == len(VERDICTS)
    for words in ("holds: ", "does not hold: ", "−7.8 to −5.1", "not learnt", NASTY):
        assert words in parsed.text
    policy = next(attributes["content"] for _, attributes in parsed.found if "http-equiv" in attributes)
    assert "<script>" not in content and "default-src 'none'" in policy
    assert not [name for _, attributes in parsed.found for name in attributes if name.startswith("on") or name == "src"]


def test_the_program_writes_the_overview_and_names_a_broken_file(root, two, tmp_path):
    def run(results, out, published=two / "docs/results"):
        command = [sys.executable, root / "scripts/make_overview.py", "--results", results, "--published", published]
        return subprocess.run([*command, "--out", out], capture_output=True, text=True, check=False)

    out = tmp_path / "overview.html"
    done = run(two / "results", out)
    assert (done.returncode, done.stdout) == (0, f"overview: {out}\n"), done.stderr
    assert out.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    for text, message in (("[]", "expected findings"), ('{"findings": [{"id": 1}]}', "no findings .*; make it again")):
        broken = tmp_path / "results/demo/findings.json"
        broken.parent.mkdir(parents=True, exist_ok=True)
        broken.write_text(text, encoding="utf-8")
        with pytest.raises(UserError, match=rf"demo/findings\.json: {message}"):
            overview([tmp_path / "results"], out)
    done = run(tmp_path / "none", tmp_path / "no.html", published=tmp_path)
    assert done.stdout.startswith("overview: none, as no run in ") and not (tmp_path / "no.html").exists()


def test_the_page_leads_from_findings_to_items_and_back_and_to_the_overview(two):
    results = two / "results/demo"
    out = results / "report" / "index.html"
    config = json.loads((results / "config.json").read_text(encoding="utf-8"))
    assert "overview.html" not in page(gather(config, results, out))
    (results.parent / "overview.html").write_text("", encoding="utf-8")
    content = page(gather(config, results, out))
    parsed = Elements(content)
    ids = {attributes.get("id") for _, attributes in parsed.found}
    links = [attributes["href"] for tag, attributes in parsed.found if tag == "a"]
    assert "../../overview.html" in links
    assert {link[1:] for link in links if link.startswith("#")} <= ids
    # From the overview of items and its own heading, and from each of five findings.
    assert links.count("#anc-table1") == links.count("#anc-figure1") == 2 + 5
    assert links.count("#finding-anc-f0") == 2
    text = re.sub(r"\s+", " ", parsed.text)
    assert "Holds in 1 of 2 cases; on average" in text and "With the length of sentences taken out: holds" in text
    # Neither the names of findings nor their rules are shown.
    assert "elsewhere - home" not in text and not re.search(r"\bf[0-4]\b", text)
