"""Captions of Snakemake's own report: sound for every item, with the claims of the run, and of no effect on any job."""

import csv
import re
from types import SimpleNamespace

import pytest
from docutils.core import publish_parts
from jinja2 import Environment

from crossalign.papers.all_items import ITEMS, PAPERS
from crossalign.report.captions import JUDGED, PAGE, STUDIES, caption_of, category_of, labels_of, name_of
from crossalign.report.summary_html import PAPER_SOURCES, PAPER_TITLES
from crossalign.results.claims.claim import FAILS, HOLDS, UNCLEAR

OUTPUT = SimpleNamespace(csv="a/b.csv", tex="a/b.tex", pdf="a/b.pdf", page="results/demo/report/index.html")


@pytest.fixture
def claims(tmp_path):
    """claims.csv of a run; its text is full of what reStructuredText takes for markup."""
    path = tmp_path / "claims.csv"
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, ["id", "item", "claim", "verdict", "measured"])
        writer.writeheader()
        for number, item in enumerate(ITEMS):
            rows = [
                ("*all* of `it_ |rises| [1]_", HOLDS, "3 < 4_"),
                ("It falls", FAILS, ""),
                ("Who knows", "not run", ""),
            ]
            writer.writerows(
                {"id": f"{number}-{place}", "item": item, "claim": claim, "verdict": verdict, "measured": measured}
                for place, (claim, verdict, measured) in enumerate(rows)
            )
    return path


def render(root, name, config, **context):
    """A caption as Snakemake makes it; markup that docutils cannot read is an error."""
    environment = Environment(trim_blocks=True, lstrip_blocks=True)
    template = (root / "resources" / "captions" / name).read_text(encoding="utf-8")
    text = environment.from_string(template).render(snakemake=SimpleNamespace(config=config, output=OUTPUT, **context))
    return publish_parts(text, writer="html", settings_overrides={"halt_level": 2})["body"]


@pytest.mark.parametrize("item", ITEMS)
def test_every_item_has_a_sound_caption(root, claims, item):
    template = f"{item.partition('/')[2].rstrip('0123456789')}.rst"
    for file in (claims, claims.with_name("none.csv")):
        params = SimpleNamespace(caption=caption_of(item, file))
        html = render(root, template, {"run": "paper"}, params=params)
        assert f"<strong>{name_of(item)}: " in html
        assert ("*all* of `it_ |rises| [1]_: <strong>holds</strong>; 3 &lt; 4_" in html) == (file == claims)
        assert "Who knows" not in html
        assert "artificial" not in html
        assert "artificial" in render(root, template, {"run": "demo", "world": "world.yaml"}, params=params)


def test_the_description_and_the_caption_of_the_page(root):
    assert "artificial" in render(root, "workflow.rst", {"run": "demo", "world": "world.yaml"})
    html = render(root, "workflow.rst", {"run": "paper"})
    assert "artificial" not in html
    assert "paper" in html
    assert "open this first" in render(root, "page.rst", {})


def test_labels(claims, tmp_path):
    item = "align-predict/table1"
    labels = {"item": "Table 1", "paper": "align-predict", "title": "RANDOM-INIT on pairs of layers"}
    assert labels_of(item, claims) == labels | {"verdicts": "1 of 2 claims hold"}
    assert labels_of(item, tmp_path / "none.csv") == labels | {"verdicts": "no claim judged"}
    assert list(labels_of(item, claims)) == sorted(labels_of(item, claims)), "the report orders them by name"


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"id,paper\n1,anc\n", b'item,claim\nanc/table1\n"'])
def test_a_broken_file_of_claims_stops_no_plan(tmp_path, content):
    path = tmp_path / "claims.csv"
    path.write_bytes(content)
    assert caption_of("anc/table1", path).claims == []
    assert labels_of("anc/table1", path)["verdicts"] == "no claim judged"


def test_the_page_comes_first_then_the_studies_in_their_order():
    names = [PAGE, *map(category_of, PAPERS)]
    assert names == sorted(names, key=str.lower)


def test_titles_and_verdicts_are_those_of_the_page():
    assert {paper: title for paper, (title, _) in STUDIES.items()} == PAPER_TITLES
    assert {paper: source for paper, (_, source) in STUDIES.items()} == PAPER_SOURCES
    assert set(JUDGED) == {HOLDS, FAILS, UNCLEAR}


@pytest.mark.parametrize("rules", ["tables.smk", "figures.smk"])
def test_captions_are_derived_from_the_output(root, rules):
    """Snakemake compares only params that are not: a new verdict must not make a table again."""
    text = (root / "rules" / rules).read_text(encoding="utf-8")
    assert re.search(r"^        caption=lambda wildcards, output: caption_of\(", text, re.MULTILINE)


def test_no_program_imports_captions(root):
    """Otherwise a new caption would change the hash of its code."""
    sources = [file for file in (root / "scripts").rglob("*.py") if "crossalign.report.captions" in file.read_text()]
    assert sources == []
