"""What the tests in a browser share: the browser, a page at paper scale, and one of a run in its middle."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.browser.devtools import Browser, Page, find_browser
from tests.made_report import make_run

from crossalign.report.gather import gather
from crossalign.report.overview import overview as overview_of
from crossalign.report.page import page as page_of
from crossalign.report.page import write_page

# Eight numbers a row: more than 5,000 in all.
ROWS = 28


@pytest.fixture(scope="session")
def browser():
    program = find_browser()
    if program is None:
        pytest.skip("no Chromium or Chrome on the PATH (Debian: apt-get install chromium; or set CROSSALIGN_BROWSER)")
    with Browser(program) as started:
        yield started


def make_page(root: Path, folder: Path, **options) -> Path:
    config = make_run(folder, root, **options)
    results = folder / "results" / config["run"]
    out = results / "report" / "index.html"
    write_page(page_of(gather(config, results, out)), out)
    return out


@pytest.fixture(scope="session")
def full(root, tmp_path_factory):
    """All 48 items with 5,000 numbers, as at paper scale."""
    return make_page(root, tmp_path_factory.mktemp("full"), rows=ROWS, demo=False)


@pytest.fixture(scope="session")
def partial(root, tmp_path_factory):
    """A demo run in its middle."""
    items = ["align-predict/table1", "anc/table1", "anc/figure1", "talk/figure2"]
    return make_page(root, tmp_path_factory.mktemp("partial"), items=items)


@pytest.fixture(scope="session")
def overview(partial):
    """The overview of that run and of the same one again."""
    results = partial.parents[2]
    shutil.copytree(results / "demo", results / "other")
    out = results / "overview.html"
    write_page(overview_of([results], out), out)
    return out


@pytest.fixture
def page(browser, partial) -> Iterator[Page]:
    """The page of the run in its middle, on a desk."""
    tab = browser.page(partial)
    yield tab
    tab.call("Page.close")
