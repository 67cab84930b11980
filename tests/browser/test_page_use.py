"""The page at work in a real browser: search, filters, views, sorting, curves, mouse and keys."""

import pytest

TABLE = "#align-predict-table1"
PATH = "$('#curve-chart path.curve').getAttribute('d')"


def test_search_finds_words_in_titles_tables_and_findings(page):
    page.choose("search", "normformer CKA")
    page.wait("$('#found').textContent.startsWith('2 of 48')")
    assert page.run("$$('article:not([hidden])').map((item) => item.id)") == ["anc-figure7", "anc-figure8"]
    page.choose("search", "no such words at all")
    page.wait("!$('#nothing').hidden")
    page.click("#show-all")
    page.wait("$('#found').textContent === '48 of 48 tables and figures, 20 of 20 findings'")


@pytest.mark.parametrize(
    ("field", "value", "items", "findings"),
    [
        ("filter-paper", "anc", 11, 5),
        ("filter-state", "made", 4, 16),
        ("filter-verdict", "finding holds", 8, 4),
        ("filter-language", "de", 17, 5),
    ],
)
def test_filters(page, field, value, items, findings):
    page.choose(field, value)
    assert (page.shown("article.item"), page.shown("li.finding")) == (items, findings)


def test_one_table_shows_ours_theirs_or_the_difference(page):
    cell = f"[...$('{TABLE} tbody tr:nth-child(3) td:nth-of-type(2)').children]"
    text = f"{cell}.filter((part) => part.checkVisibility()).map((part) => part.textContent)"
    assert page.run(text) == ["55.75", "±0.40", "55.25"]
    for view, expected in (("ours", ["55.75", "±0.40"]), ("theirs", ["55.25"]), ("difference", ["+0.50"])):
        page.click(f"{TABLE} [data-view={view}]")
        assert page.run(text) == expected
        assert page.run(f"$('{TABLE} [aria-pressed=true]').dataset.view") == view
    assert page.run("$('#anc-table1').dataset.view ?? 'both'") == "both"
    page.choose("all-views", "theirs")
    assert page.run("$('#anc-table1').dataset.view") == "theirs"


def test_a_figure_shows_the_readings_of_the_paper(page):
    assert (page.shown("#anc-figure1 img"), page.shown("#anc-figure1 .readings svg path.curve")) == (1, 0)
    page.run("$('#anc-figure1').scrollIntoView()")
    for view, curves in (("both", 2), ("theirs", 1), ("difference", 1)):
        page.click(f"#anc-figure1 [data-view={view}]")
        page.wait(f"$$('#anc-figure1 .readings .chart > svg path.curve').length === {curves}")
        assert page.shown("#anc-figure1 img") == 0


def test_columns_are_sorted_by_what_is_shown_and_back(page):
    labels = f"$$('{TABLE} tbody tr:not(.group) th').map((head) => head.textContent)"
    original = page.run(labels)
    button = f"{TABLE} thead tr:last-child th:nth-child(2) button"
    # The numbers are made to fall from row to row.
    for state, rows in (("descending", original), ("ascending", original[::-1]), (None, original)):
        page.click(button)
        assert page.run(f"$('{button}').closest('th').getAttribute('aria-sort')") == state
        assert page.run(labels) == rows
    page.click(f"{TABLE} [data-view=difference]")
    page.click(button)
    assert page.run(labels) == original[::-1]  # the differences rise instead


def test_a_cell_tells_both_numbers_and_the_verdict_to_the_mouse(page):
    page.run(f"$('{TABLE}').scrollIntoView()")
    for step in range(20):
        # What scrolls under a resting mouse takes the tip away, so the mouse keeps moving until the page has settled.
        box = page.run(f"$('{TABLE} tbody tr:nth-child(4) td:nth-of-type(3)').getBoundingClientRect().toJSON()")
        page.move(box["x"] + 5 + step, box["y"] + 5)
        if page.shown("#tip"):
            break
    told = page.text("#tip")
    for part in ("language 2, 2-3", "ours61.50 ±0.40", "paper60.50", "difference+1.00", "runs2 of 2", "verdict"):
        assert part in told
    page.press("Escape", 27)
    assert not page.shown("#tip")


def test_curves_are_drawn_for_the_chosen_model_languages_and_index(page):
    page.wait("$('#curve-chart path.curve')")
    page.click("#curve-none")
    assert "choose a language" in page.text("#curve-chart")
    page.click("#curve-languages label:nth-child(2) input")
    assert page.count("#curve-chart path.curve") == 1
    before = page.run(PATH)
    page.choose("curve-index", "cka-rbf")
    assert page.run(PATH) != before
    page.choose("curve-other", "mBERT, Parsing on en_ewt, layers 1-2 re-initialised")
    assert page.count("#curve-chart path.curve.dashed") == 1


def test_curves_are_drawn_under_a_control_where_there_are_any(page):
    page.wait("$('#curve-chart path.curve')")
    names = ["as measured", "minus strangers of the same length", "length taken out"]
    assert page.run("$$('#curve-control option').map((option) => option.textContent)") == names
    assert page.shown("#curve-control") == page.shown("#curve-why") == 1
    page.run("$('#curve-table').open = true")
    cell = "Number($('#curve-table tbody tr:nth-child(6) td')?.textContent)"
    page.wait(f"{cell} > 0")
    measured = page.run(cell)
    named = "$('#curve-chart svg').getAttribute('aria-label')"
    assert page.run(named).startswith("CKA by layer")
    for control, share, name in (("strangers", 0.3, names[1]), ("length", 0.7, names[2])):
        page.choose("curve-control", control)
        assert abs(page.run(cell) - share * measured) < 0.002
        assert page.run(named).startswith(f"CKA, {name}, by layer: ")
    # The kernel has no controls: what is shown is as measured again, and there is nothing to choose.
    page.choose("curve-index", "cka-rbf")
    assert page.run("$('#curve-control').value") == "none"
    assert page.shown("#curve-control") == page.shown("#curve-why") == 0
    assert page.run(named).startswith("CKA, RBF kernel by layer")


def test_everything_can_be_reached_with_the_tab_key(page):
    focus = "((at) => at.id || at.getAttribute('class') || at.tagName)(document.activeElement)"
    page.press("Tab", 9)
    assert page.run(focus) == "skip"
    assert page.run("document.activeElement.getBoundingClientRect().top >= 0")
    reached = set()
    for _ in range(420):
        page.press("Tab", 9)
        reached.add(page.run(focus))
        outline = page.run("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none" or page.run("document.activeElement.matches('input[type=checkbox], body')")
    assert {
        "theme",
        "tile yes",
        "curve-model",
        "search",
        "filter-verdict",
        "filter-language",
        "copy",
        "sort",
    } <= reached


def test_cells_are_walked_with_the_arrow_keys(page):
    page.run(f"$('{TABLE} td').focus()")
    for key, code in (("ArrowRight", 39), ("ArrowDown", 40), ("ArrowDown", 40), ("ArrowLeft", 37), ("ArrowLeft", 37)):
        page.press(key, code)
    place = "((at) => [at.cellIndex, at.parentElement.cells[0].textContent])(document.activeElement)"
    assert page.run(place) == [1, "language 2"]
    assert "language 2, REF" in page.text("#tip")
    assert page.count(f"{TABLE} td[tabindex]") == 1


def test_provenance_is_told_when_it_is_asked_for(page):
    fold = f"{TABLE} details[data-provenance]"
    assert page.count(f"{fold} .filled > *") == 0
    page.run(f"$('{fold}').open = true")
    page.wait(f"$('{fold} dl')")
    told = page.text(fold)
    for part in (
        "NVIDIA H200 (4 runs)",
        "torch 2.13.0",
        "learning_rate",
        "ud/en_ewt/train.conllu",
        "4 of 48 are there",
    ):
        assert part in told
