"""Captions of Snakemake's own report: sound for every item, with the claims of the run, and of no effect on any job."""

import csv
import re
from types import SimpleNamespace

import pytest
from docutils.core import publish_parts
from jinja2 import Environment

from crossalign.papers.all_items import ITEMS, PAPERS
from crossalign.report.captions import JUDGED, PAGE, caption_of, category_of, labels_of, name_of
from crossalign.results.claims.claim import FAILS, HOLDS, UNCLEAR

OUTPUT = SimpleNamespace(csv="a/b.csv", tex="a/b.tex", pdf="a/b.pdf", page="results/demo/report/index.html")
DEMO, PAPER = {"run": "demo", "world": "world.yaml"}, {"run": "paper"}
# Full of what reStructuredText takes for markup.
ROWS = [("*all* of `it_ |rises| [1]_", HOLDS, "3 < 4_"), ("It falls", FAILS, ""), ("Who knows", "not run", "")]


@pytest.fixture
def claims(tmp_path):
    """claims.csv of a run."""
    path = tmp_path / "claims.csv"
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["item", "claim", "verdict", "measured"])
        writer.writerows([item, *row] for item in ITEMS for row in ROWS)
    return path


def render(root, name, config, **context):
    """A caption as Snakemake makes it; markup that docutils cannot read is an error."""
    environment = Environment(trim_blocks=True, lstrip_blocks=True)
    template = (root / "resources" / "captions" / name).read_text(encoding="utf-8")
    text = environment.from_string(template).render(snakemake=SimpleNamespace(config=config, output=OUTPUT, **context))
    return publish_parts(text, writer="html", settings_overrides={"halt_level": 2})["body"]


def test_every_item_has_a_sound_caption(root, claims):
    for item in ITEMS:
        template = f"{item.partition('/')[2].rstrip('0123456789')}.rst"
        for file in (claims, claims.with_name("none.csv")):
            params = SimpleNamespace(caption=caption_of(item, file))
            html = render(root, template, PAPER, params=params)
            assert f"<strong>{name_of(item)}: " in html
            assert ("*all* of `it_ |rises| [1]_: <strong>holds</strong>; 3 &lt; 4_" in html) == (file == claims)
            assert "Who knows" not in html and "artificial" not in html
        assert "artificial" in render(root, template, DEMO, params=params)


def test_the_description_and_the_caption_of_the_page(root):
    assert "artificial" in render(root, "workflow.rst", DEMO)
    html = render(root, "workflow.rst", PAPER)
    assert "artificial" not in html and "paper" in html
    assert "open this first" in render(root, "page.rst", {})


def test_labels(claims):
    labels = {"item": "Table 1", "paper": "align-predict", "title": "RANDOM-INIT on pairs of layers"}
    assert labels_of("align-predict/table1", claims) == labels | {"verdicts": "1 of 2 claims hold"}
    assert list(labels_of("anc/table1", claims)) == sorted([*labels, "verdicts"]), "the report orders them by name"


@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe\x00", b"id,paper\n1,anc\n", b'item,claim\nanc/table1\n"'])
def test_a_missing_or_broken_file_of_claims_stops_no_plan(tmp_path, content):
    path = tmp_path / "claims.csv"
    if content is not None:
        path.write_bytes(content)
    assert caption_of("anc/table1", path).claims == []
    assert labels_of("anc/table1", path)["verdicts"] == "no claim judged"


def test_studies_and_verdicts_are_those_of_the_catalog_in_its_order():
    headings = [PAGE, *map(category_of, PAPERS)]
    assert headings == sorted(headings, key=str.lower)
    assert set(JUDGED) == {HOLDS, FAILS, UNCLEAR}


def test_captions_cause_no_job(root):
    """Snakemake compares only params that are not derived from the output, and code that programs import."""
    for rules in ("tables.smk", "figures.smk"):
        text = (root / "rules" / rules).read_text(encoding="utf-8")
        assert re.search(r"^        caption=lambda wildcards, output: caption_of\(", text, re.MULTILINE)
    sources = [file for file in (root / "scripts").rglob("*.py") if "crossalign.report.captions" in file.read_text()]
    assert sources == []
