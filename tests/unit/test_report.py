"""The page as a file: what enters it and how, what a partial run shows, and what the program says."""

import base64
import hashlib
import html
import json
import re
import subprocess
import sys

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.made_report import NASTY, NASTY_ATTRIBUTE, Elements, make_run

from crossalign.papers.all_findings import findings
from crossalign.papers.all_items import ITEMS
from crossalign.papers.common.table_html import environment, render
from crossalign.report.gather import content_of, gather, read_table
from crossalign.report.page import page
from crossalign.runtime.errors import UserError

KNOWN = {*("div", "table", "caption", "thead", "tbody", "tr", "th", "td"), *("span", "sup", "ul", "li")}
KNOWN |= {"details", "summary", "code"}
MADE = ["align-predict/table1", "align-predict/figure1", "anc/figure1"]


@pytest.fixture(scope="module")
def partial(root, tmp_path_factory):
    """A demo run of which three items are made: the folder of its results."""
    folder = tmp_path_factory.mktemp("partial")
    make_run(folder, root, MADE)
    return folder / "results" / "demo"


@pytest.fixture(scope="module")
def content(partial):
    config = json.loads((partial / "config.json").read_text(encoding="utf-8"))
    return page(gather(config, partial, partial / "report" / "index.html"))


@given(st.recursive(st.text() | st.integers() | st.none(), lambda inner: st.dictionaries(st.text(), inner)))
def test_inline_json_cannot_end_its_element_and_keeps_what_it_says(data):
    shown = environment().from_string("{{ data | tojson }}").render(data=data)
    assert not set("<>&") & set(shown)
    assert json.loads(shown) == data
    with pytest.raises(ValueError):
        environment().from_string("{{ data | tojson }}").render(data=[data, float("nan")])


@pytest.mark.parametrize("harm", [NASTY, NASTY_ATTRIBUTE, "</td></table>", "' onclick=alert(1) x='"])
def test_whatever_a_table_file_holds_stays_text(partial, tmp_path, harm):
    """Every text of the file is replaced, those for classes and numbers, too."""

    def spoil(value):
        if isinstance(value, dict):
            return {name: spoil(inner) for name, inner in value.items()} | {"onclick": harm}
        return [spoil(inner) for inner in value] if isinstance(value, list) else harm

    path = tmp_path / "table1.json"
    original = json.loads((partial / "tables/align-predict/table1.json").read_text(encoding="utf-8"))
    path.write_text(json.dumps(spoil(original)), encoding="utf-8")
    shown, printed = read_table(path)
    found = Elements(shown)
    assert printed
    assert {tag for tag, _ in found.found} <= KNOWN
    assert not [name for _, attributes in found.found for name in attributes if name.startswith("on") or name == "id"]
    assert html.unescape(shown).count(harm) > 100


@pytest.mark.parametrize("text", ["", "[1]", "{}", '{"title": "x"}', '{"bodies": 3}', b"\xff".decode("latin-1")])
def test_a_file_without_a_table_is_named(tmp_path, text):
    path = tmp_path / "table1.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=r"table1\.json: .*; delete it and make "):
        read_table(path)
    with pytest.raises(UserError, match=r"resources/report/no\.html: a part of the page cannot be read"):
        render("no.html")


def test_a_picture_keeps_its_drawing_and_loses_what_readers_do_not_see(tmp_path):
    path = tmp_path / "javascript:alert(1).svg"
    drawing = '<path d="M 0 0\nL 1 1"/><text>a b</text>'
    head = '<?xml version="1.0"?><!DOCTYPE svg><svg width="20pt" viewBox="0 0 20 10.5"><metadata><a/></metadata>'
    path.write_text(f"{head}{drawing}</svg>\n", encoding="utf-8")
    shown = content_of("figure", {"svg": path}, tmp_path / "page.html")
    picture = shown["picture"]
    assert (picture.width, picture.height) == (20, 10.5)
    kind, _, data = picture.address.partition(",")
    assert kind == "data:image/svg+xml;base64"
    kept = base64.b64decode(data).decode()
    assert kept == '<svg width="20pt" viewBox="0 0 20 10.5"><path d="M 0 0 L 1 1"/><text>a b</text></svg>'
    assert shown["files"] == {"svg": "./javascript:alert(1).svg"}, "a link never has a scheme"


def test_every_item_is_shown_and_those_not_made_name_their_command(content):
    assert "<b>3</b> made" in content and "<b>45</b> not made yet" in content
    items = [found for tag, found in Elements(content).found if tag == "article"]
    assert [found["data-item"] for found in items] == list(ITEMS)
    assert [found["data-item"] for found in items if found["data-state"] == "made"] == MADE
    for item in ITEMS:
        folder, form = ("tables", "html") if "/table" in item else ("figures", "svg")
        again = "--force " if item in MADE else ""
        assert f"snakemake --profile profiles/demo {again}results/demo/{folder}/{item}.{form}</code>" in content


def test_what_was_made_from_some_of_its_runs_says_so(root, tmp_path):
    config = make_run(tmp_path, root, MADE)
    results = tmp_path / "results" / "demo"
    table = results / f"tables/{MADE[0]}.csv"
    rows = pd.read_csv(table, dtype=str)
    rows.loc[0, "missing"] = "tuned/mbert/parsing-en_ewt/ref/seed2"
    rows.to_csv(table, index=False)
    report = gather(config, results, results / "report" / "index.html")
    assert report.states == {"made": len(MADE) - 1, "in part": 1, "not made yet": 48 - len(MADE), "left out": 0}
    content = page(report)
    for words in (f"<b>{len(MADE) - 1}</b> made", "(in part)", "Made in part.", 'data-state="in part"'):
        assert words in content


def test_the_page_needs_nothing_from_outside_and_holds_nothing_harmful(content, partial):
    found = Elements(content).found
    for tag, attributes in found:
        for value in map(attributes.get, {"src", "href", "srcset", "action", "data", "style"} & attributes.keys()):
            assert value.startswith(("#", "data:image/svg+xml;base64,", "../", "provenance.json")), (tag, value)
        assert not [name for name in attributes if name.startswith("on")], (tag, attributes)
    links = [attributes["href"] for tag, attributes in found if tag == "a" and attributes["href"].startswith("../")]
    assert len(links) == 3 + 4 + 4 + 1  # of the coverage
    assert all((partial / "report" / name).resolve().is_file() for name in links)
    assert [tag for tag, _ in found].count("script") == 2
    assert "<script>alert" not in content and "<img src=x" not in content
    assert html.unescape(content).count(NASTY) > 10


def test_the_policy_allows_the_page_s_own_script_and_style_alone(content):
    policy = next(found["content"] for _, found in Elements(content).found if "http-equiv" in found)
    for name, tag in (("script-src", "script"), ("style-src", "style")):
        (inner,) = re.findall(rf"<{tag}>(.*?)</{tag}>", content, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(inner.encode()).digest()).decode()
        assert f"{name} 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy and "unsafe" not in policy


def run_program(root, results, out):
    config = results / "config.json" if results.is_dir() else out
    command = [sys.executable, root / "scripts/make_report.py", "--results", results, "--config", config, "--out", out]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_program_writes_the_page_and_says_what_is_in_it_even_if_nothing_is_made(root, partial, tmp_path):
    empty = tmp_path / "results" / make_run(tmp_path, root, [])["run"]
    (empty / "findings.json").unlink()
    all_five = (
        "4 hold, 4 do not hold, 4 cannot be told either way, 4 rest on a task that was not learnt, 4 were not run"
    )
    for results, held, made in ((partial, all_five, 3), (empty, f"{len(findings())} were not run", 0)):
        out = tmp_path / "report" / "index.html"
        done = run_program(root, results, out)
        assert done.returncode == 0, done.stderr
        told = [f"findings: {held}", f"tables and figures: {made} of 48 made", f"page: {out}"]
        assert done.stdout.splitlines() == told
        text = out.read_text(encoding="utf-8")
        assert text.startswith("<!DOCTYPE html>") and ("nothing is made yet" in text) == (not made)
        assert json.loads(out.with_name("provenance.json").read_text(encoding="utf-8"))["items"].keys() == set(ITEMS)
    done = run_program(root, tmp_path / "no", tmp_path / "x")
    assert done.returncode == 1
    assert re.fullmatch(r"error: --results .*/no: no such folder; .*\n", done.stderr)


def test_the_coverage_stands_below_the_unseen_languages_the_worst_first(root, tmp_path):
    config = make_run(tmp_path, root, ["talk/table3"])
    results = tmp_path / "results" / "demo"
    report = gather(config, results, results / "report" / "index.html")
    (entry,) = (entry for entry in report.entries if entry.coverage)
    title = "How well the vocabulary of mBERT covers these languages"
    assert (entry.name, entry.coverage.title) == ("talk/table3", title)
    assert entry.coverage.file == "../coverage.csv" and "coverage.csv" in entry.provenance.inputs
    text = Elements(entry.coverage.table).text
    # Equally many words of the second and third have unknown pieces: the one of more pieces stands first.
    places = [text.index(name) for name in ("Uyghur", NASTY, "Wolof", "Faroese")]
    assert places == sorted(places)
    for shown in ("53.1", "120,000", "3.12", "а б в г д е ж з и й к л and 2 more", "none"):
        assert shown in text
    assert page(report).count(f"{title}</h5>") == 1
    (results / "coverage.csv").unlink()
    early = page(gather(config, results, results / "report" / "index.html"))
    assert "the vocabulary of mBERT" not in early
