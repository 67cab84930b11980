"""Reading results: what is there, what is not, and what is broken."""

import json

import pytest

from crossalign.catalog.addresses import Base, Tuned
from crossalign.catalog.sets import DataSet
from crossalign.results.published import Published, published
from crossalign.results.reading import Results
from crossalign.results.values import Sample, Value, brief
from crossalign.runtime.errors import UserError

PUD = [DataSet("trees", f"{lang}_pud", "test") for lang in ("fr", "de")]


def run(seed, init="ref"):
    return Tuned("mbert", "parsing", "en_ewt", init, seed)


def write(folder, one, content):
    path = folder / one.path() / "scores.json"
    path.parent.mkdir(parents=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def scores(fr, de):
    return {"trees/fr_pud/test": {"LAS": fr}, "trees/de_pud/test": {"LAS": de}}


def test_sample_is_the_mean_over_sets_for_each_seed(tmp_path):
    write(tmp_path, run(1), scores(70, 60))
    write(tmp_path, run(2), scores(74, 62))
    value = Results(tmp_path).sample([run(1), run(2), run(3)], PUD, "LAS").value()
    assert value.mean == pytest.approx(66.5)
    assert value.std == pytest.approx(3 / 2**0.5)  # of 65 and 68
    assert (value.n, value.wanted, value.missing) == (2, 3, (run(3).path(),))


def test_a_set_that_was_not_evaluated_counts_as_not_run(tmp_path):
    write(tmp_path, run(1), {"trees/fr_pud/test": {"LAS": 70}})
    value = Results(tmp_path).sample([run(1)], PUD, "LAS").value()
    assert value.mean is None and value.missing == (run(1).path(),)


def test_intervals_are_averaged_over_sets_and_seeds(tmp_path):
    for seed, shift in ((1, 0), (2, 4)):
        found = {
            name: {"LAS": level + shift, "LAS_low": level + shift - 2, "LAS_high": level + shift + 3}
            for name, level in (("trees/fr_pud/test", 70), ("trees/de_pud/test", 60))
        }
        write(tmp_path, run(seed), found)
    value = Results(tmp_path).sample([run(1), run(2)], PUD, "LAS").value()
    assert (value.low, value.mean, value.high) == (65, 67, 70)
    scaled = value.scaled(0.01)
    assert (scaled.low, scaled.high) == pytest.approx((0.65, 0.7))


def test_no_interval_where_a_run_has_none(tmp_path):
    write(tmp_path, run(1), scores(70, 60))
    value = Results(tmp_path).sample([run(1)], PUD, "LAS").value()
    assert value.mean == 65 and value.low is None and value.high is None
    assert Sample({1: 5.0, 2: 6.0}, intervals={1: (4.0, 7.0)}).value().low is None


def test_one_run_has_no_deviation():
    assert Sample({1: 5.0}).value() == Value(5.0, None, 1, 1)


def test_difference_of_means():
    value = Value(60.0, 0.3, 5, 5).minus(Value(70.0, 0.4, 4, 5, ("a",)))
    assert (value.mean, value.std, value.n, value.missing) == (-10.0, 0.5, 4, ("a",))
    assert Value(60.0, None, 1, 1).minus(Value(70.0, 0.4, 5, 5)).std is None
    assert Value(wanted=5, missing=("b",)).minus(Value(70.0, 0.4, 5, 5)).mean is None


def test_missing_runs_are_listed_briefly():
    found = brief(["tuned/m/pos-en/ref/seed2", "tuned/m/pos-en/ref/seed1", "models/mbert"])
    assert found == ["models/mbert", "tuned/m/pos-en/ref/seed1,2"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "no JSON that can be read"),
        ([1], "expected scores by set and metric"),
        ({"trees/fr_pud/test": {"LAS": "high"}}, "'high' is no finite number"),
        ('{"trees/fr_pud/test": {"LAS": NaN}}', "nan is no finite number"),
    ],
)
def test_broken_scores_are_named(tmp_path, content, message):
    path = write(tmp_path, run(1), content)
    with pytest.raises(UserError, match=message) as error:
        Results(tmp_path).score(run(1), PUD[:1], "LAS")
    assert str(path) in str(error.value)


def similarity(tmp_path, text):
    path = tmp_path / "similarity/models/mbert/pud.csv"
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    return Results(tmp_path)


def test_a_curve_has_a_hole_where_there_is_no_similarity(tmp_path):
    results = similarity(tmp_path, "pair,layer,index,value\nen-ru,0,cka,nan\nen-ru,1,cka,0.5\nen-ru,2,cka,\n")
    curve = results.curve([Base("mbert"), Base("other")], "pud", ["en-ru"], "cka")
    assert {layer: value.mean for layer, value in curve.points.items()} == {1: 0.5}
    assert curve.missing == ("models/other",)
    assert curve.points[1].n == 1 and curve.points[1].wanted == 2


def test_a_curve_over_pairs_has_their_spread(tmp_path):
    results = similarity(tmp_path, "pair,layer,index,value\nen-ru,1,anc,0.4\nen-fr,1,anc,0.6\n")
    value = results.curve([Base("mbert")], "pud", ["en-ru", "en-fr"], "anc").points[1]
    assert value.mean == pytest.approx(0.5) and value.std == pytest.approx(0.02**0.5)


HEAD = "pair,layer,index,control,value,sampling,lead_sampling\n"


def two_seeds(tmp_path, *files):
    runs = [Tuned("mbert", "ner", "wikiann_en", "ref", seed) for seed in range(1, len(files) + 1)]
    for one, text in zip(runs, files, strict=True):
        path = tmp_path / "similarity" / one.path() / "pud.csv"
        path.parent.mkdir(parents=True)
        path.write_text(text, encoding="utf-8")
    return Results(tmp_path), runs


def test_errors_of_a_curve_and_of_the_distance_to_its_peak(tmp_path):
    results, runs = two_seeds(
        tmp_path,
        HEAD + "en-ru,0,cka,none,0.2,0.03,0.05\nen-ru,1,cka,none,0.8,0.01,0\nen-ru,2,cka,none,0.5,0.02,0.01\n",
        HEAD + "en-ru,0,cka,none,0.4,0.04,0.07\nen-ru,1,cka,none,0.6,0.01,0.03\nen-ru,2,cka,none,0.7,0.02,0\n",
    )
    points = results.curve(runs, "pud", ["en-ru"], "cka").points
    # The means are 0.3, 0.7, 0.6: the peak is layer 1, also for the second seed, whose own peak is layer 2.
    assert [points[layer].mean for layer in range(3)] == pytest.approx([0.3, 0.7, 0.6])
    # Away from it: -0.6 and -0.2; 0 and 0; -0.3 and 0.1. Of two numbers the deviation is their distance over root two.
    assert [points[layer].lead_std for layer in range(3)] == pytest.approx([0.4 / 2**0.5, 0.0, 0.4 / 2**0.5])
    assert [points[layer].lead_sampling for layer in range(3)] == pytest.approx([0.06, 0.015, 0.005])
    assert points[0].sampling == pytest.approx((0.0025 / 2) ** 0.5)  # 0.03 and 0.04
    assert (points[1].sampling, points[2].sampling) == (pytest.approx(0.01), pytest.approx(0.02))


def test_one_seed_has_no_deviation_from_the_peak_and_a_hole_is_left_out_of_it(tmp_path):
    one, two = "en-ru,0,cka,none,0.2,,\nen-ru,1,cka,none,0.8,,\n", "en-ru,0,cka,none,nan,,\nen-ru,1,cka,none,0.6,,\n"
    results, runs = two_seeds(tmp_path, HEAD + one, HEAD + two)
    assert [value.lead_std for value in results.curve(runs[:1], "pud", ["en-ru"], "cka").points.values()] == [None] * 2
    points = results.curve(runs, "pud", ["en-ru"], "cka").points
    assert (points[0].lead_std, points[1].lead_std) == (None, 0.0)
    assert points[0].sampling is points[0].lead_sampling is None


def test_the_lead_of_a_curve_over_pairs_is_that_of_their_mean(tmp_path):
    rows = "en-ru,0,anc,none,{},0.1,\nen-ru,1,anc,none,{},0.1,\nen-fr,0,anc,none,{},0.3,\nen-fr,1,anc,none,{},0.1,\n"
    results, runs = two_seeds(tmp_path, HEAD + rows.format(0.2, 0.6, 0.4, 0.8), HEAD + rows.format(0.5, 0.6, 0.3, 0.8))
    points = results.curve(runs, "pud", ["en-ru", "en-fr"], "anc").points
    # Mean over the pairs: 0.3 and 0.7, then 0.4 and 0.7; so the seeds fall behind the peak by 0.4 and by 0.3.
    assert points[0].lead_std == pytest.approx(0.1 / 2**0.5)
    assert points[0].sampling == pytest.approx(0.05**0.5)  # of 0.01, 0.09, 0.01, 0.09
    assert (points[0].n, points[0].std) == (2, pytest.approx((0.05 / 3) ** 0.5))


def test_controls_are_curves_of_their_own(tmp_path):
    new = HEAD + "en-ru,0,cka,none,0.6,0.01,0\nen-ru,0,cka,length,0.4,0.02,0\nen-ru,0,cka,strangers,-0.1,0.03,0\n"
    old = "pair,layer,index,value\nen-ru,0,cka,0.7\n"
    results, runs = two_seeds(tmp_path, new, old)
    found = {name: results.curve(runs, "pud", ["en-ru"], "cka", name) for name in ("none", "length", "strangers", "x")}
    assert found["none"].points[0].mean == pytest.approx(0.65) and found["none"].points[0].sampling is None
    for name, value in (("length", 0.4), ("strangers", -0.1)):
        assert found[name].points[0].mean == value
        assert (found[name].points[0].n, found[name].points[0].wanted, found[name].missing) == (1, 2, (runs[1].path(),))
    assert found["x"].points == {}


def test_a_value_in_another_unit_takes_its_errors_along():
    value = Value(0.5, 0.1, 2, 2, ("a",), 0.4, 0.6, 0.01, None, 0.02)
    assert value.scaled(100) == Value(50.0, 10.0, 2, 2, ("a",), 40.0, 60.0, 1.0, None, 2.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("pair,layer\n", "the columns pair, layer, index, value are needed"),
        ("pair,layer,index,value\nen-ru,one,cka,0.5\n", "line 2: layer and value must be numbers"),
        (HEAD + "en-ru,1,cka,none,0.5,little,\n", "line 2: layer and value must be numbers"),
    ],
)
def test_broken_similarities_are_named(tmp_path, text, message):
    with pytest.raises(UserError, match=message):
        similarity(tmp_path, text).similarity(Base("mbert"), "pud")


def test_printed_values_are_found_once():
    table = published("align-predict/table1")
    found = table.find({"task": "parsing", "source": "en", "target": "en", "layers": "1-2"})
    assert (found.text, found.number, found.half_unit) == ("-0.96", -0.96, pytest.approx(0.005))
    assert len(table.rest()) == 125
    assert table.find({"task": "parsing", "source": "xx"}) is None
    with pytest.raises(UserError, match="42 rows match"):
        table.find({"task": "parsing"})


def test_a_doubtful_cell_carries_its_reason():
    table = published("align-predict/table8")
    assert table.find({"source": "ar", "target": "sl", "layers": "5-6"}).doubt
    assert not table.find({"source": "en", "target": "de", "layers": "5-6"}).doubt
    assert Published([]).keys == []
