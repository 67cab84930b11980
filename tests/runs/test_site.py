"""`make docs`: the site builds offline in strict mode, has a page for each item, and a dead link stops it."""

import logging
import re
import shutil

import pytest

pytest.importorskip("material", reason="no mkdocs-material (make dev-environment)")

from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.exceptions import Abort

from crossalign.catalog.config import load
from crossalign.papers.all_items import catalog_of


def make(root, out, **changes):
    config = load_config(str(root / "mkdocs.yml"), site_dir=str(out), **changes)
    config.plugins.on_startup(command="build", dirty=False)
    build(config)


@pytest.fixture(scope="module")
def site(root, tmp_path_factory):
    out = tmp_path_factory.mktemp("site")
    make(root, out)
    return out


def test_there_is_a_page_for_each_item_with_its_jobs(site):
    for item in catalog_of(load([])).items:
        text = (site / "understand" / "studies" / f"{item}.html").read_text(encoding="utf-8")
        assert f"/{item}." in text and ("make_table" in text or "make_figure" in text)
    table = (site / "understand/studies/align-predict/table1.html").read_text(encoding="utf-8")
    assert "<td>315</td>" in table and "-15.77" in table
    figure = (site / "understand/studies/anc/figure3.html").read_text(encoding="utf-8")
    assert "notes/small-run/outcome/figures/anc/figure3.png" in figure


def test_documents_outside_docs_are_pages(site):
    home = (site / "index.html").read_text(encoding="utf-8")
    assert 'href="use/settings.html"' in home
    assert (site / "extend/contributing.html").is_file() and (site / "notes/changelog.html").is_file()


def test_nothing_is_fetched_from_elsewhere(site):
    for file in site.rglob("*.html"):
        if "outcome" not in file.parts:
            text = file.read_text(encoding="utf-8")
            assert not re.search(r'<(?:script|img|iframe)[^>]+src="(?:https?:)?//', text), file
            assert not re.search(r'<link[^>]+rel="(?:stylesheet|preconnect)"[^>]+href="(?:https?:)?//', text), file


def test_a_dead_link_and_a_dead_anchor_stop_it(root, tmp_path, caplog):
    docs = shutil.copytree(root / "docs", tmp_path / "docs")
    with (docs / "use" / "offline.md").open("a", encoding="utf-8") as page:
        page.write("\n[One](nowhere.md), [two](run.md#nothing).\n")
    with caplog.at_level(logging.INFO, "mkdocs"), pytest.raises(Abort):
        make(root, tmp_path / "site", docs_dir=str(docs), strict=True)
    assert "'nowhere.md'" in caplog.text and "'run.md#nothing'" in caplog.text
