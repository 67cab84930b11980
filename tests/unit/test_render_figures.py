"""Every figure renders, can be read, and is the same every time."""

import csv
import shutil
import subprocess
import sys
from statistics import stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure as Canvas
from tests.unit.made_results import load, make_results

from crossalign.analysis.correlations import bootstrap_spearman
from crossalign.catalog.addresses import Base
from crossalign.papers.all_figures import FIGURES, make
from crossalign.papers.all_items import ITEMS
from crossalign.papers.common import colours
from crossalign.papers.common.context import Context
from crossalign.papers.common.correlation import Correlations, spearman
from crossalign.papers.common.figure import Figure, Panel, Point, Series
from crossalign.papers.common.figure_check import overlaps
from crossalign.papers.common.figure_draw import draw
from crossalign.papers.common.figure_labels import spread
from crossalign.papers.common.figure_write import write_figure
from crossalign.papers.talk.figures import category
from crossalign.results.reading import Results
from crossalign.results.values import Value


@pytest.fixture(scope="module")
def config(root):
    return load(root)


@pytest.fixture(scope="module")
def folder(config, tmp_path_factory):
    path = tmp_path_factory.mktemp("results")
    make_results(path, config)
    return path


@pytest.fixture(scope="module")
def context(config, folder):
    return Context(config, Results(folder))


def test_every_figure_has_a_declaration():
    assert sorted(FIGURES) == sorted(item for item in ITEMS if "/figure" in item)


@pytest.mark.parametrize("item", FIGURES)
def test_figures_ask_for_the_runs_of_the_catalog(item, config, folder):
    results = Results(folder)
    context = Context(config, results)
    figure = make(item, context)
    assert results.asked == context.catalog.needs(item).runs
    assert not figure.missing


@pytest.mark.parametrize("item", FIGURES)
def test_texts_can_be_read(item, context):
    assert overlaps(draw(make(item, context))) == []


@pytest.mark.parametrize("item", ["talk/figure2", "talk/figure3"])
def test_texts_of_the_full_studies_can_be_read(item, root, tmp_path):
    config = load(root, items=[item], talk={"scope": "full"})
    make_results(tmp_path, config)
    results = Results(tmp_path)
    context = Context(config, results)
    figure = make(item, context)
    assert results.asked == context.catalog.needs(item).runs and not figure.missing
    assert overlaps(draw(figure)) == []


@pytest.mark.parametrize("item", FIGURES)
def test_figures_without_results_say_not_run(item, config, tmp_path):
    figure = make(item, Context(config, Results(tmp_path)))
    canvas = draw(figure)
    assert overlaps(canvas) == []
    if item != "talk/figure4":
        assert figure.missing
        assert [text.get_text() for axes in canvas.axes for text in axes.texts] == ["not run"] * len(figure.panels)


@pytest.mark.parametrize("item", ["align-predict/figure4", "talk/figure2", "adjust/figure1"])
def test_the_same_data_give_the_same_bytes(item, context, tmp_path):
    written = []
    for name in ("first", "second"):
        paths = {form: tmp_path / name / f"figure.{form}" for form in ("svg", "pdf", "png", "csv")}
        write_figure(make(item, context), paths)
        written.append({form: path.read_bytes() for form, path in paths.items()})
    assert written[0] == written[1]
    assert written[0]["svg"].startswith(b"<?xml") and written[0]["pdf"].startswith(b"%PDF")
    assert written[0]["png"].startswith(b"\x89PNG")


def test_the_data_of_a_figure_stand_beside_it(context, folder, tmp_path):
    write_figure(make("align-predict/figure1", context), {"csv": tmp_path / "figure.csv"})
    with (tmp_path / "figure.csv").open(encoding="utf-8", newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if row["series"] == "NER" and row["x"] == "5"]
    assert [row["control"] for row in rows] == ["none", "strangers", "length"]
    values = []
    for seed in (1, 2):
        path = folder / f"similarity/tuned/mbert/ner-wikiann_en/ref/seed{seed}/pud.csv"
        with path.open(encoding="utf-8", newline="") as stream:
            values += [
                float(row["value"])
                for row in csv.DictReader(stream)
                if (row["pair"], row["layer"], row["index"], row["control"]) == ("en-ru", "5", "cka", "none")
            ]
    assert len(values) == 2
    assert float(rows[0]["y"]) == pytest.approx(sum(values) / 2, abs=1e-6)
    assert float(rows[2]["y"]) == pytest.approx(0.7 * sum(values) / 2, abs=2e-6)
    for row in rows:
        assert (row["n"], row["wanted"], row["sampling"], row["lead_sampling"]) == ("2", "2", "0.01", "0.005")
        assert float(row["lead_std"]) >= 0 and not row["printed"]


def test_a_curve_that_was_not_run_has_a_line_in_the_data(config, folder, tmp_path):
    shutil.copytree(folder / "similarity", tmp_path / "similarity")
    shutil.rmtree(tmp_path / "similarity/models/mbert")
    figure = make("align-predict/figure1", Context(config, Results(tmp_path)))
    assert figure.missing == [Base("mbert").path()]
    rows = [row for row in figure.tidy() if row["series"] == "pretrained"]
    named = {"panel": "English-Russian", "series": "pretrained", "control": "none"}
    assert rows == [named | {"wanted": "1", "missing": "models/mbert"}]
    assert overlaps(draw(figure)) == []


WITH_CONTROLS = [
    *(f"align-predict/figure{place}" for place in (1, 2, 4, 5, 6, 7, 8)),
    *(f"anc/figure{place}" for place in (1, 3, 4, 5, 6, 7, 8)),
    "talk/figure1",
]


@pytest.mark.parametrize("item", FIGURES)
def test_controls_follow_the_curve_that_they_belong_to(item, context):
    rows = list(make(item, context).tidy())
    controls = {}
    for row in rows:
        controls.setdefault((row["panel"], row["series"]), []).append((row["control"], row["x"]))
    for found in controls.values():
        xs = [x for control, x in found if control == "none"]
        names = ("none", "strangers", "length") if item in WITH_CONTROLS else ("none",)
        assert found == [(control, x) for control in names for x in xs]


@pytest.mark.parametrize("item", ["align-predict/figure1", "anc/figure5", "anc/figure9"])
def test_results_made_before_there_were_controls(item, config, context, folder, tmp_path):
    for path in (folder / "similarity").rglob("*.csv"):
        with path.open(encoding="utf-8", newline="") as stream:
            rows = [row for row in csv.DictReader(stream) if row["control"] == "none" and "-ecco" not in row["index"]]
        out = tmp_path / path.relative_to(folder)
        out.parent.mkdir(parents=True, exist_ok=True)
        with out.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, ("pair", "layer", "index", "value"), extrasaction="ignore")
            writer.writeheader()
            writer.writerows(rows)
    old = list(make(item, Context(config, Results(tmp_path))).tidy())
    assert old and all(row["sampling"] == row["lead_sampling"] == "" for row in old)
    new = [row for row in make(item, context).tidy() if row["control"] == "none" and "library" not in row["panel"]]
    assert old == [row | {"sampling": "", "lead_sampling": ""} for row in new]


def lines(canvas):
    """Of every panel: colour and kind of each line."""
    found = []
    for axes in canvas.axes:
        dotted = [line for line in axes.lines if line.get_dash_capstyle() == "round"]
        found.append(([line.get_color() for line in axes.lines if line not in dotted], [d.get_color() for d in dotted]))
    return found


@pytest.mark.parametrize("item", [*WITH_CONTROLS, "align-predict/figure3", "anc/figure9", "talk/figure2"])
def test_a_second_line_shows_the_curve_with_length_taken_out(item, config, context):
    drawing = {"similarity": config["similarity"] | {"draw_control": True}}
    figure = make(item, Context(config | drawing, context.results))
    canvas = draw(figure)
    assert overlaps(canvas) == []
    legend = [text.get_text() for each in canvas.legends for text in each.get_texts()]
    assert ("length taken out" in legend) == (item in WITH_CONTROLS)
    plain = draw(make(item, context))
    assert "length taken out" not in [text.get_text() for each in plain.legends for text in each.get_texts()]
    for (curves, dotted), (before, none) in zip(lines(canvas), lines(plain), strict=True):
        assert curves == before and not none
        assert set(dotted) == (set(curves) if item in WITH_CONTROLS else set())
    if item in WITH_CONTROLS:
        held = figure.panels[0].series[0].controls["length"]
        (line,) = [line for line in canvas.axes[0].lines if line.get_dash_capstyle() == "round"][:1]
        assert list(line.get_ydata()) == [point.value.mean for point in held]


@pytest.mark.parametrize("item", ["align-predict/figure3", "talk/figure5"])
def test_correlations_by_layer_have_errors_by_a_bootstrap_over_languages(item, context):
    rows = [row for row in make(item, context).tidy() if row["series"] == "NER, fine-tuned"]
    found = Correlations(context, "ner", pretrained=False)
    transfer = [side for side, _ in found.means([0])]
    drawn = bootstrap_spearman(transfer, [[alike for _, alike in found.means([layer])] for layer in range(13)])
    rhos = [float(row["y"]) for row in rows]
    peak = rhos.index(max(rhos))
    for layer, row in enumerate(rows):
        assert float(row["sampling"]) == pytest.approx(stdev(drawn[layer]), abs=1e-6)
        assert float(row["lead_sampling"]) == pytest.approx(stdev(drawn[layer] - drawn[peak]), abs=1e-6)
        leads = [spearman(found.points(seed, [layer]))[0] - spearman(found.points(seed, [peak]))[0] for seed in (1, 2)]
        assert float(row["lead_std"]) == pytest.approx(stdev(leads), abs=1e-6)
    assert (rows[peak]["lead_sampling"], rows[peak]["lead_std"]) == ("0", "0")


def test_the_authors_indexes_have_panels_of_their_own(config, context, folder, tmp_path):
    titles = [panel.title for panel in make("anc/figure9", context).panels]
    assert titles[:2] == ["PWCCA", "SVCCA"]
    assert titles[2:] == [f"{name} (authors' library)" for name in ("PWCCA", "CCA")]
    shutil.copytree(folder / "similarity/models/scale-normformer", tmp_path / "similarity/models/scale-normformer")
    path = tmp_path / "similarity/models/scale-normformer/xnliext.csv"
    kept = [line for line in path.read_text(encoding="utf-8").splitlines() if ",pwcca-ecco," not in line]
    path.write_text("\n".join(kept) + "\n", encoding="utf-8")
    figure = make("anc/figure9", Context(config, Results(tmp_path)))
    assert [panel.title for panel in figure.panels] == [*titles[:2], titles[3]] and not figure.missing
    assert overlaps(draw(figure)) == []


def test_readings_of_the_paper_stand_beside_ours_but_not_in_the_demo(context, root, folder):
    for item, count in (("anc/figure1", 117), ("anc/figure3", 78), ("anc/figure5", 124), ("anc/figure8", 0)):
        rows = list(make(item, context).tidy())
        assert sum(bool(row["printed"]) for row in rows) == count
        assert all(bool(row["verdict"]) == bool(row["printed"]) for row in rows)
    demo = Context(load(root, "config.yaml", "config.demo.yaml"), Results(folder))
    assert not any(row.get("printed") for row in make("anc/figure1", demo).tidy())


def test_histograms_are_densities_on_common_bins(context):
    figure = make("adjust/figure1", context)
    edges = set()
    for panel in figure.panels:
        for series in panel.series:
            xs = [point.x for point in series.points]
            edges.add(tuple(xs))
            assert sum(point.value.mean for point in series.points) * (xs[1] - xs[0]) == pytest.approx(1.0)
        assert panel.inset.startswith("AUC 0.") or panel.inset == "AUC 1.00"
    assert len(edges) == 1


@pytest.mark.parametrize(
    ("bilstm", "mbert", "adapted", "expected"),
    [
        (50, 51, 40, "Easy"),
        (50, 50, 51, "Intermediate"),
        (50, 49, 50, "Hard"),
        (50, 49, None, ""),
        (None, 49, 51, ""),
        (50, 51, None, "Easy"),
    ],
)
def test_kinds_of_unseen_languages(bilstm, mbert, adapted, expected):
    assert category(*(Value(number) for number in (bilstm, mbert, adapted))) == expected


def test_the_check_finds_overlaps_and_cut_texts():
    canvas = Canvas(figsize=(2, 2))
    canvas.text(0.5, 0.5, "one")
    canvas.text(0.52, 0.5, "other")
    canvas.text(0.95, 0.1, "leaves the picture")
    found = overlaps(canvas)
    assert any("'one' and 'other' overlap" in sentence for sentence in found)
    assert any("'leaves the picture' is cut off" in sentence for sentence in found)
    assert len(found) == 2


def test_names_that_look_like_markup_stay_text(tmp_path):
    name = "<script>alert(1)</script> & $x_{$ _y_"
    series = Series(name, colours.TASKS["pos"], [Point(layer, Value(0.5, None, 1, 1)) for layer in range(3)])
    figure = Figure("x/y", name, [Panel(name, [series, series])])
    write_figure(figure, {"svg": tmp_path / "figure.svg"})
    text = (tmp_path / "figure.svg").read_text(encoding="utf-8")
    assert "<script" not in text and "&lt;script&gt;" in text


@given(st.lists(st.floats(0, 1), max_size=20))
def test_labels_are_spread(values):
    values.sort()
    gap = 0.04
    places = spread(values, gap, 0.0, 1.0)
    assert len(places) == len(values) and places == sorted(places)
    assert all(0 - 1e-9 <= place <= 1 + 1e-9 for place in places)
    assert all(b - a >= gap - 1e-9 for a, b in zip(places, places[1:], strict=False))


def contrast(colour):
    """WCAG contrast with white."""
    levels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [level / 12.92 if level <= 0.04045 else ((level + 0.055) / 1.055) ** 2.4 for level in levels]
    return 1.05 / (0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] + 0.05)


def test_looks_are_distinct_and_visible():
    for looks in (colours.TASKS, colours.LANGUAGES, colours.SYSTEMS, colours.SCRIPTS, colours.PAIRS):
        signs = [(look.colour, str(look.dash)) for look in looks.values()]
        assert len(set(signs)) == len(signs)
    for looks in (colours.TASKS, colours.LANGUAGES):
        assert all(contrast(look.colour) > 1.9 for look in looks.values())


def test_data_and_tables_do_not_load_matplotlib_or_torch(root):
    code = (
        "import sys; import crossalign.papers.all_tables, crossalign.papers.all_figures; "
        "import crossalign.papers.common.figure_write; "
        "print([name for name in ('matplotlib', 'torch', 'pandas', 'scipy', 'transformers') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={"PYTHONPATH": str(root / "scripts")}
    )
    assert done.stdout.strip() == "[]", done.stderr
