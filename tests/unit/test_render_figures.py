"""Every figure renders, can be read, and is the same every time."""

import shutil

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.figure_check import overlaps
from tests.unit.made_results import load

from crossalign.papers import all_of, make
from crossalign.papers.all_items import catalog_of
from crossalign.papers.common import colours
from crossalign.papers.common.context import Context
from crossalign.papers.common.draw import draw, spread
from crossalign.papers.common.figure import Figure, Panel, Point, Series
from crossalign.papers.common.figure_files import write_figure
from crossalign.papers.talk.figures import category
from crossalign.results.reading import Results
from crossalign.results.values import Value

FIGURES = all_of("figures")
WITH_CONTROLS = [
    *(f"align-predict/figure{place}" for place in (1, 2, 4, 5, 6, 7, 8)),
    *(f"anc/figure{place}" for place in (1, 3, 4, 5, 6, 7, 8)),
    "talk/figure1",
]


def legend(canvas):
    return [text.get_text() for each in canvas.legends for text in each.get_texts()]


def lines(canvas):
    """Of every panel the colours of its curves, and those of the dotted lines beside them."""
    found = []
    for axes in canvas.axes:
        dotted = [line for line in axes.lines if line.get_dash_capstyle() == "round"]
        found.append(([line.get_color() for line in axes.lines if line not in dotted], [d.get_color() for d in dotted]))
    return found


def check_asked(item, config, folder):
    """A figure asks for the runs that the catalog declares, and finds them."""
    context = Context(config, Results(folder))
    figure = make(item, context)
    assert context.results.asked == catalog_of(context.config).needs(item).runs
    assert not figure.missing
    return figure


@pytest.mark.parametrize("item", FIGURES)
def test_figures_of_finished_runs(item, made):
    """Runs, texts, controls, and the second line with the length of sentences taken out."""
    figure = check_asked(item, made.config, made.results.folder)
    plain = draw(figure)
    assert overlaps(plain) == [] and "length taken out" not in legend(plain)
    controls = {}
    for row in figure.tidy():
        controls.setdefault((row["panel"], row["series"]), []).append((row["control"], row["x"]))
    for found in controls.values():
        xs = [x for control, x in found if control == "none"]
        names = ("none", "strangers", "length") if item in WITH_CONTROLS else ("none",)
        assert found == [(control, x) for control in names for x in xs]
    drawing = {"similarity": made.config["similarity"] | {"draw_control": True}}
    canvas = draw(make(item, Context(made.config | drawing, made.results)))
    assert overlaps(canvas) == []
    assert ("length taken out" in legend(canvas)) == (item in WITH_CONTROLS)
    for (curves, dotted), (before, none) in zip(lines(canvas), lines(plain), strict=True):
        assert curves == before and not none
        assert set(dotted) == (set(curves) if item in WITH_CONTROLS else set())


@pytest.mark.parametrize("item", FIGURES)
def test_figures_without_results_say_not_run(item, made, tmp_path):
    figure = make(item, Context(made.config, Results(tmp_path)))
    canvas = draw(figure)
    assert overlaps(canvas) == []
    if item != "talk/figure4":
        assert figure.missing
        assert [text.get_text() for axes in canvas.axes for text in axes.texts] == ["not run"] * len(figure.panels)


@pytest.mark.parametrize("item", ["align-predict/figure4", "talk/figure2"])
def test_the_same_data_give_the_same_bytes(item, made, tmp_path):
    written = []
    for name in ("first", "second"):
        paths = {form: tmp_path / name / f"figure.{form}" for form in ("svg", "pdf", "png", "csv")}
        write_figure(make(item, made), paths)
        written.append({form: path.read_bytes() for form, path in paths.items()})
    assert written[0] == written[1]
    assert written[0]["svg"].startswith(b"<?xml") and written[0]["pdf"].startswith(b"%PDF")
    assert written[0]["png"].startswith(b"\x89PNG")


def test_the_data_of_a_figure_stand_beside_it(made, tmp_path):
    write_figure(make("align-predict/figure1", made), {"csv": tmp_path / "figure.csv"})
    rows = pd.read_csv(tmp_path / "figure.csv").query("series == 'NER' and x == 5")
    assert list(rows["control"]) == ["none", "strangers", "length"]
    paths = [f"similarity/tuned/mbert/ner-wikiann_en/ref/seed{seed}/pud.csv" for seed in (1, 2)]
    frame = pd.concat(pd.read_csv(made.results.folder / path) for path in paths)
    frame = frame.query("pair == 'en-ru' and layer == 5 and index == 'cka' and control == 'none'", engine="python")
    assert len(frame) == 2
    mean = frame["value"].mean()
    assert list(rows["y"]) == pytest.approx([mean, 0.3 * mean, 0.7 * mean], abs=2e-6)
    assert (rows[["n", "wanted"]] == 2).all(axis=None) and rows["printed"].isna().all()


def test_a_curve_that_was_not_run_has_a_line_in_the_data(made, tmp_path):
    shutil.copytree(made.results.folder / "similarity", tmp_path / "similarity")
    shutil.rmtree(tmp_path / "similarity/models/mbert")
    figure = make("align-predict/figure1", Context(made.config, Results(tmp_path)))
    assert figure.missing == ["models/mbert"]
    rows = [row for row in figure.tidy() if row["series"] == "pretrained"]
    named = {"panel": "English-Russian", "series": "pretrained", "control": "none"}
    assert rows == [named | {"wanted": "1", "missing": "models/mbert"}]
    assert overlaps(draw(figure)) == []


def test_the_authors_indexes_have_panels_where_they_were_computed(made, tmp_path):
    titles = [panel.title for panel in make("anc/figure9", made).panels]
    assert titles == ["PWCCA", "SVCCA", *(f"{name} (authors' library)" for name in ("PWCCA", "CCA"))]
    path = tmp_path / "similarity/models/scale-normformer/xnliext.csv"
    path.parent.mkdir(parents=True)
    whole = (made.results.folder / path.relative_to(tmp_path)).read_text(encoding="utf-8")
    kept = [line for line in whole.splitlines() if ",pwcca-ecco," not in line]
    path.write_text("\n".join(kept) + "\n", encoding="utf-8")
    figure = make("anc/figure9", Context(made.config, Results(tmp_path)))
    assert [panel.title for panel in figure.panels] == [*titles[:2], titles[3]] and not figure.missing
    assert overlaps(draw(figure)) == []


def test_readings_of_the_paper_stand_beside_ours_but_not_in_the_demo(made, root):
    for item, count in (("anc/figure1", 117), ("anc/figure3", 78), ("anc/figure5", 124), ("anc/figure8", 0)):
        rows = list(make(item, made).tidy())
        assert sum(bool(row["printed"]) for row in rows) == count
        assert all(bool(row["verdict"]) == bool(row["printed"]) for row in rows)
    demo = Context(load(root, "config.yaml", "config/demo.yaml"), made.results)
    assert not any(row.get("printed") for row in make("anc/figure1", demo).tidy())


def test_histograms_are_densities_on_common_bins(made):
    edges = set()
    for panel in make("adjust/figure1", made).panels:
        for series in panel.series:
            xs = [point.x for point in series.points]
            edges.add(tuple(xs))
            assert sum(point.value.mean for point in series.points) * (xs[1] - xs[0]) == pytest.approx(1.0)
        assert panel.inset.startswith("AUC 0.") or panel.inset == "AUC 1.00"
    assert len(edges) == 1


def test_kinds_of_unseen_languages():
    cases = {"Easy": [(50, 51, 40), (50, 51, None)], "Intermediate": [(50, 50, 51)], "Hard": [(50, 49, 50)]}
    for expected, scores in (cases | {"": [(50, 49, None), (None, 49, 51)]}).items():
        assert {category(*map(Value, each)) for each in scores} == {expected}


def test_names_that_look_like_markup_stay_text(tmp_path):
    name = "<script>alert(1)</script> & $x_{$ _y_"
    series = Series(name, colours.TASKS["pos"], [Point(layer, Value(0.5, None, 1, 1)) for layer in range(3)])
    write_figure(Figure("x/y", name, [Panel(name, [series, series])]), {"svg": tmp_path / "figure.svg"})
    text = (tmp_path / "figure.svg").read_text(encoding="utf-8")
    assert "<script" not in text and "&lt;script&gt;" in text


@given(st.lists(st.floats(0, 1), max_size=20).map(sorted))
def test_labels_are_spread(values):
    places = spread(values, 0.04, 0.0, 1.0)
    assert len(places) == len(values) and places == sorted(places)
    assert all(-1e-9 <= place <= 1 + 1e-9 for place in places)
    assert all(b - a >= 0.04 - 1e-9 for a, b in zip(places, places[1:], strict=False))
