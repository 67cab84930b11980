"""Reading results: what is there, what is not, what is broken; and the tidy files of a whole run."""

import json
import re
from dataclasses import replace

import pandas as pd
import pytest
from tests.unit.made_results import load, make_results

from crossalign.catalog.addresses import Adapted, Mlm, Tuned
from crossalign.catalog.sets import DataSet
from crossalign.papers.all_items import catalog_of
from crossalign.results.frames import DISTANCES, SCORES, SIMILARITY, write_frames
from crossalign.results.published import Published, published
from crossalign.results.reading import Results
from crossalign.results.values import Value, brief
from crossalign.runtime.errors import UserError

PUD = [DataSet("trees", f"{lang}_pud", "test") for lang in ("fr", "de")]
HEAD = "pair,layer,index,control,value,sampling,lead_sampling\n"


def run(seed):
    return Tuned("mbert", "parsing", "en_ewt", "ref", seed)


@pytest.fixture
def scored(tmp_path):
    """Writes the scores.json of one run after the other, gives back the value of all of them on PUD."""

    def write(*contents, wanted=None):
        for seed, content in enumerate(contents, 1):
            path = tmp_path / run(seed).path() / "scores.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        runs = [run(seed) for seed in range(1, (wanted or len(contents)) + 1)]
        return Results(tmp_path).value(runs, PUD, "LAS")

    return write


@pytest.fixture
def compared(tmp_path):
    """Writes the similarities of one run after the other, gives back the results and the runs."""

    def write(*texts):
        runs = [Tuned("mbert", "ner", "wikiann_en", "ref", seed) for seed in range(1, len(texts) + 1)]
        for one, text in zip(runs, texts, strict=True):
            path = tmp_path / "similarity" / one.path() / "pud.csv"
            path.parent.mkdir(parents=True)
            path.write_text(text, encoding="utf-8")
        return Results(tmp_path), runs

    return write


def scores(fr, de, **further):
    """Scores on PUD; `further` are distances of other metrics from them."""
    levels = {"trees/fr_pud/test": fr, "trees/de_pud/test": de}
    return {
        name: {"LAS": level} | {metric: level + away for metric, away in further.items()}
        for name, level in levels.items()
    }


def test_sample_is_the_mean_over_sets_for_each_seed(scored):
    """A set that was not evaluated counts as not run, as in the third."""
    value = scored(scores(70, 60), scores(74, 62), {"trees/fr_pud/test": {"LAS": 70}}, wanted=4)
    assert value.mean == pytest.approx(66.5)
    assert value.std == pytest.approx(3 / 2**0.5)  # of 65 and 68
    assert (value.n, value.wanted, value.missing) == (2, 4, (run(3).path(), run(4).path()))
    assert value.low is None and value.high is None


def test_intervals_are_averaged_over_sets_and_seeds(scored):
    value = scored(*(scores(70 + shift, 60 + shift, LAS_low=-2, LAS_high=3) for shift in (0, 4)))
    assert (value.low, value.mean, value.high) == (65, 67, 70)
    assert scored(scores(70, 60, LAS_low=-2, LAS_high=3), scores(70, 60)).low is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "no JSON that can be read"),
        ([1], "expected scores by set and metric"),
        ({"trees/fr_pud/test": {"LAS": "high"}}, "'high' is no finite number"),
        ('{"trees/fr_pud/test": {"LAS": NaN}}', "nan is no finite number"),
    ],
)
def test_broken_scores_are_named(scored, tmp_path, content, message):
    path = re.escape(str(tmp_path / run(1).path() / "scores.json"))
    with pytest.raises(UserError, match=f"{path}: .*{message}"):
        scored(content)


def test_values():
    assert Value.over([5.0]) == Value(5.0, None, 1, 1)
    value = Value(60.0, 0.3, 5, 5).minus(Value(70.0, 0.4, 4, 5, ("a",)))
    assert (value.mean, value.std, value.n, value.missing) == (-10.0, 0.5, 4, ("a",))
    assert Value(60.0, None, 1, 1).minus(Value(70.0, 0.4, 5, 5)).std is None
    assert Value(wanted=5, missing=("b",)).minus(Value(70.0, 0.4, 5, 5)).mean is None
    assert Value(0.5, 0.1, 2, 2, ("a",), 0.4, 0.6).scaled(100) == Value(50.0, 10.0, 2, 2, ("a",), 40.0, 60.0)
    found = brief(["tuned/m/pos-en/ref/seed2", "tuned/m/pos-en/ref/seed1", "models/mbert"])
    assert found == ["models/mbert", "tuned/m/pos-en/ref/seed1,2"]


def test_a_curve_has_a_hole_where_there_is_no_similarity(compared):
    results, (there,) = compared(
        "pair,layer,index,value\nen-ru,0,cka,nan\nen-ru,1,cka,0.5\nen-ru,2,cka,\nen-ru,3,cka,inf\n"
    )
    absent = replace(there, seed=2)
    curve = results.curve([there, absent], "pud", ["en-ru"], "cka")
    assert {layer: value.mean for layer, value in curve.points.items()} == {1: 0.5}
    assert curve.missing == (absent.path(),)
    assert curve.points[1].n == 1 and curve.points[1].wanted == 2


def test_a_curve_over_pairs_has_their_spread(compared):
    rows = "en-ru,0,anc,none,{},0.1,\nen-ru,1,anc,none,{},0.1,\nen-fr,0,anc,none,{},0.3,\nen-fr,1,anc,none,{},0.1,\n"
    results, runs = compared(HEAD + rows.format(0.2, 0.6, 0.4, 0.8), HEAD + rows.format(0.5, 0.6, 0.3, 0.8))
    points = results.curve(runs, "pud", ["en-ru", "en-fr"], "anc").points
    assert (points[0].n, points[0].std) == (2, pytest.approx((0.05 / 3) ** 0.5))
    assert points[1].mean == pytest.approx(0.7)


def test_controls_are_curves_of_their_own(compared):
    new = HEAD + "en-ru,0,cka,none,0.6,0.01,0\nen-ru,0,cka,length,0.4,0.02,0\nen-ru,0,cka,strangers,-0.1,0.03,0\n"
    results, runs = compared(new, "pair,layer,index,value\nen-ru,0,cka,0.7\n")
    found = {name: results.curve(runs, "pud", ["en-ru"], "cka", name) for name in ("none", "length", "strangers", "x")}
    assert found["none"].points[0].mean == pytest.approx(0.65)
    for name, value in (("length", 0.4), ("strangers", -0.1)):
        assert found[name].points[0].mean == value
        assert (found[name].points[0].n, found[name].points[0].wanted, found[name].missing) == (1, 2, (runs[1].path(),))
    assert found["x"].points == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no CSV that can be read"),
        ("pair,layer\n", "the columns pair, layer, index, value are needed"),
        ("pair,layer,index,value\nen-ru,one,cka,0.5\n", "line 2: layer and value must be numbers"),
        (HEAD + "en-ru,1,cka,none,0.5,,\nen-ru,1,cka,none,0.5,little,\n", "line 3: layer and value must be numbers"),
    ],
)
def test_broken_similarities_are_named(compared, text, message):
    results, (one,) = compared(text)
    with pytest.raises(UserError, match=f"pud.csv: {message}"):
        results.similarity(one, "pud")


def test_printed_values_are_found_once():
    table = published("align-predict/table1")
    found = table.find({"task": "parsing", "source": "en", "target": "en", "layers": "1-2"})
    assert (found.text, found.number, found.half_unit) == ("-0.96", -0.96, pytest.approx(0.005))
    assert len([*table.rest()]) == 125
    assert table.find({"task": "parsing", "source": "xx"}) is None
    with pytest.raises(UserError, match="42 rows match"):
        table.find({"task": "parsing"})
    table = published("align-predict/table8")
    assert table.find({"source": "ar", "target": "sl", "layers": "5-6"}).doubt
    assert not table.find({"source": "en", "target": "de", "layers": "5-6"}).doubt
    assert Published([]).keys == []


def test_the_tidy_files_of_a_run(root, tmp_path):
    config = load(root, items=["align-predict/figure4", "talk/table1", "anc/figure3"])
    make_results(tmp_path / "run", config)
    needs = {item: catalog_of(config).needs(item) for item in config["items"]}
    papers = {item.partition("/")[0]: need.runs for item, need in needs.items()}
    papers["talk"] |= {*papers["align-predict"], Adapted("mbert", Mlm("wo"), 1)}
    frames = write_frames(tmp_path / "run", papers, ["pud", "xnliext"], tmp_path)
    assert {name: tuple(frame) for name, frame in frames.items()} == {
        "scores": SCORES,
        "similarity": SIMILARITY,
        "distances": DISTANCES,
    }
    for name in ("scores", "similarity"):
        frame = frames[name]
        pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / f"{name}.parquet"), frame)
        read = pd.read_csv(tmp_path / f"{name}.csv", keep_default_na=False, na_values=[""])
        assert list(read["value"]) == list(frame["value"]) and not frame.duplicated().any()
    chosen = frames["scores"].query(
        "paper == 'talk' and task == 'ner' and seed == 2 and target == 'ru' and metric == 'F1'"
    )
    (row,) = chosen.to_dict("records")
    stored = json.loads((tmp_path / "run/tuned/mbert/ner-wikiann_en/ref/seed2/scores.json").read_text(encoding="utf-8"))
    assert row["value"] == stored["ner/wikiann_ru/test"]["F1"] and row["n"] == 1000
    assert (row["source"], row["train"], row["preset"], row["init"]) == ("en", "wikiann_en", "ner", "ref")
    # A model that two papers show has a row for each; one that was not run has none.
    assert set(frames["scores"].groupby("address")["paper"].nunique()) == {1, 2}
    found = frames["similarity"].query("paper == 'anc' and model == 'mbert'")
    assert set(found["corpus"]) == {"xnliext"} and found["task"].isna().all() and found["seed"].isna().all()
    assert set(found["control"]) == {"none", "strangers", "length"}
