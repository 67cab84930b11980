"""The page at work in a real browser: search, filters, views, sorting, curves, mouse and keys."""

import pytest
from tests.browser.devtools import Page


def shown(page: Page, selector: str) -> int:
    return page.run(f"[...document.querySelectorAll('{selector}')].filter((node) => node.checkVisibility()).length")


def choose(page: Page, field: str, value: str) -> None:
    page.run(
        f"(() => {{ const field = document.querySelector('#{field}'); field.value = '{value}';"
        " field.dispatchEvent(new Event('input', { bubbles: true }));"
        " field.dispatchEvent(new Event('change', { bubbles: true })); })()"
    )


def test_search_finds_words_in_titles_tables_and_claims(page):
    choose(page, "search", "normformer CKA")
    page.wait("document.querySelector('#found').textContent.startsWith('2 of 48')")
    assert page.run("[...document.querySelectorAll('article:not([hidden])')].map((item) => item.dataset.item)") == [
        "anc/figure7",
        "anc/figure8",
    ]
    choose(page, "search", "no such words at all")
    page.wait("!document.querySelector('#nothing').hidden")
    page.run("document.querySelector('#show-all').click()")
    page.wait("document.querySelector('#found').textContent === '48 of 48 tables and figures, 20 of 20 claims'")


@pytest.mark.parametrize(
    ("field", "value", "items", "claims"),
    [
        ("filter-paper", "anc", 11, 5),
        ("filter-state", "made", 4, 16),
        ("filter-verdict", "claim holds", 4, 4),
        ("filter-task", "qa", 7, 0),
        ("filter-language", "de", 17, 5),
    ],
)
def test_filters(page, field, value, items, claims):
    choose(page, field, value)
    assert (shown(page, "article.item"), shown(page, "tr.claim")) == (items, claims)


def test_one_table_shows_ours_theirs_or_the_difference(page):
    first = "#align-predict-table1 tbody tr:nth-child(3) td:nth-of-type(2)"
    parts = f"[...document.querySelector('{first}').children]"
    text = f"{parts}.filter((part) => part.checkVisibility()).map((part) => part.textContent)"
    assert page.run(text) == ["55.75", "±0.40", "55.25"]
    for view, expected in (("ours", ["55.75", "±0.40"]), ("theirs", ["55.25"]), ("difference", ["+0.50"])):
        page.run(f"document.querySelector('#align-predict-table1 [data-view={view}]').click()")
        assert page.run(text) == expected
        assert page.run("document.querySelector('#align-predict-table1 [aria-pressed=true]').dataset.view") == view
    assert page.run("document.querySelector('#anc-table1').dataset.view ?? 'both'") == "both"
    choose(page, "all-views", "theirs")
    assert page.run("document.querySelector('#anc-table1').dataset.view") == "theirs"


def test_a_figure_shows_the_readings_of_the_paper(page):
    picture, drawing = "#anc-figure1 img", "#anc-figure1 .readings svg path.curve"
    assert (shown(page, picture), shown(page, drawing)) == (1, 0)
    page.run("document.querySelector('#anc-figure1').scrollIntoView()")
    for view, curves in (("both", 2), ("theirs", 1), ("difference", 1)):
        page.run(f"document.querySelector('#anc-figure1 [data-view={view}]').click()")
        page.wait(f"document.querySelectorAll('#anc-figure1 .readings .chart > svg path.curve').length === {curves}")
        assert shown(page, picture) == 0


def test_columns_are_sorted_by_what_is_shown_and_back(page):
    table = "#align-predict-table1"
    labels = f"[...document.querySelectorAll('{table} tbody tr:not(.group) th')].map((head) => head.textContent)"
    original = page.run(labels)
    button = f"document.querySelector('{table} thead tr:last-child th:nth-child(2) button')"
    state = f"{button}.closest('th').getAttribute('aria-sort')"
    page.run(f"{button}.click()")
    assert page.run(state) == "descending"
    assert page.run(labels) == original  # made to fall from row to row
    page.run(f"{button}.click()")
    assert (page.run(state), page.run(labels)) == ("ascending", original[::-1])
    page.run(f"{button}.click()")
    assert (page.run(state), page.run(labels)) == (None, original)
    page.run(f"document.querySelector('{table} [data-view=difference]').click()")
    page.run(f"{button}.click()")
    assert page.run(labels) == original[::-1]  # the differences rise instead


def test_a_cell_tells_both_numbers_and_the_verdict_to_the_mouse(page):
    page.run("document.querySelector('#align-predict-table1').scrollIntoView()")
    cell = "document.querySelector('#align-predict-table1 tbody tr:nth-child(4) td:nth-of-type(3)')"
    for step in range(20):
        # What scrolls under a resting mouse takes the tip away, so the mouse keeps moving until the page has settled.
        corner = page.run(f"(() => {{ const box = {cell}.getBoundingClientRect(); return [box.x + 5, box.y + 5]; }})()")
        page.move(corner[0] + step, corner[1])
        if page.run("!document.querySelector('#tip').hidden"):
            break
    told = page.run("document.querySelector('#tip').textContent")
    assert "language 2, 2-3" in told
    for part in ("ours61.50 ±0.40", "paper60.50", "difference+1.00", "runs2 of 2", "verdict"):
        assert part in told
    page.press("Escape", 27)
    assert page.run("document.querySelector('#tip').hidden")


def test_curves_are_drawn_for_the_chosen_model_languages_and_index(page):
    page.wait("document.querySelectorAll('#curve-chart path.curve').length > 0")
    page.run("document.querySelector('#curve-none').click()")
    assert "choose a language" in page.run("document.querySelector('#curve-chart').textContent")
    page.run("document.querySelectorAll('#curve-languages input')[1].click()")
    assert page.run("document.querySelectorAll('#curve-chart path.curve').length") == 1
    before = page.run("document.querySelector('#curve-chart path.curve').getAttribute('d')")
    choose(page, "curve-index", "cka-rbf")
    assert page.run("document.querySelector('#curve-chart path.curve').getAttribute('d')") != before
    choose(page, "curve-other", "mBERT, Parsing on en_ewt, layers 1-2 re-initialised")
    assert page.run("document.querySelectorAll('#curve-chart path.curve.dashed').length") == 1


def test_curves_are_drawn_under_a_control_where_there_are_any(page):
    page.wait("document.querySelectorAll('#curve-chart path.curve').length > 0")
    options = "[...document.querySelector('#curve-control').options].map((option) => option.textContent)"
    assert page.run(options) == ["as measured", "minus strangers of the same length", "length taken out"]
    assert shown(page, "#curve-control") == shown(page, "#curve-why") == 1
    page.run("document.querySelector('#curve-table').open = true")
    cell = "Number(document.querySelector('#curve-table tbody tr:nth-child(6) td').textContent)"
    page.wait(f"{cell} > 0")
    measured = page.run(cell)
    named = "document.querySelector('#curve-chart svg').getAttribute('aria-label')"
    assert page.run(named).startswith("CKA by layer")
    for control, share, name in (
        ("strangers", 0.3, "minus strangers of the same length"),
        ("length", 0.7, "length taken out"),
    ):
        choose(page, "curve-control", control)
        assert abs(page.run(cell) - share * measured) < 0.002
        assert page.run(named).startswith(f"CKA, {name}, by layer: ")
    # The kernel has no controls: what is shown is as measured again, and there is nothing to choose.
    choose(page, "curve-index", "cka-rbf")
    assert page.run("document.querySelector('#curve-control').value") == "none"
    assert shown(page, "#curve-control") == shown(page, "#curve-why") == 0
    assert page.run(named).startswith("CKA, RBF kernel by layer")


def test_the_control_is_chosen_with_the_keyboard(page):
    page.wait("document.querySelectorAll('#curve-chart path.curve').length > 0")
    before = page.run("document.querySelector('#curve-chart path.curve').getAttribute('d')")
    page.run("document.querySelector('#curve-index').focus()")
    page.press("Tab", 9)
    assert page.run("document.activeElement.id") == "curve-control"
    page.press("ArrowDown", 40)
    page.wait("document.querySelector('#curve-control').value === 'strangers'")
    assert page.run("document.querySelector('#curve-chart path.curve').getAttribute('d')") != before


def test_everything_can_be_reached_with_the_tab_key(page):
    focus = "(() => { const at = document.activeElement; return at.id || at.getAttribute('class') || at.tagName; })()"
    page.press("Tab", 9)
    assert page.run(focus) == "skip"
    assert page.run("document.activeElement.getBoundingClientRect().top >= 0")
    reached = set()
    for _ in range(160):
        page.press("Tab", 9)
        reached.add(page.run(focus))
        outline = page.run("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none" or page.run("document.activeElement.matches('input[type=checkbox], body')")
    wanted = {"theme", "tile yes", "curve-model", "search", "filter-verdict", "filter-language", "copy", "sort"}
    assert wanted <= reached


def test_cells_are_walked_with_the_arrow_keys(page):
    page.run("document.querySelector('#align-predict-table1 td').focus()")
    for key, code in (("ArrowRight", 39), ("ArrowDown", 40), ("ArrowDown", 40), ("ArrowLeft", 37), ("ArrowLeft", 37)):
        page.press(key, code)
    place = "[document.activeElement.cellIndex, document.activeElement.parentElement.cells[0].textContent]"
    assert page.run(place) == [1, "language 2"]
    assert "language 2, REF" in page.run("document.querySelector('#tip').textContent")
    assert page.run("document.querySelectorAll('#align-predict-table1 td[tabindex]').length") == 1


def test_provenance_is_told_when_it_is_asked_for(page):
    fold = "document.querySelector('#align-predict-table1 details[data-provenance]')"
    assert page.run(f"{fold}.querySelector('.filled').children.length") == 0
    page.run(f"{fold}.open = true")
    page.wait(f"{fold}.querySelector('dl')")
    told = page.run(f"{fold}.textContent")
    for part in (
        "NVIDIA H200 (4 runs)",
        "torch 2.13.0",
        "learning_rate",
        "ud/en_ewt/train.conllu",
        "4 of 126 are there",
    ):
        assert part in told


def test_a_link_leads_to_its_item_over_those_not_laid_out(browser, full):
    tab = browser.page()
    tab.size(1200, 900)
    tab.open(full)
    choose(tab, "filter-paper", "anc")
    tab.run("document.querySelector('a.tile[href=\"#talk-figure3\"]').click()")
    tab.wait("Math.abs(document.querySelector('#talk-figure3').getBoundingClientRect().top - 170) < 40")
