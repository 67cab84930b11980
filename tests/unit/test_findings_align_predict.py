"""The findings of `align-predict` hold on the paper's own numbers, and not on numbers that say the opposite."""

import pytest
from tests.planted import as_printed, finding, judged, spread, verdict

from crossalign.papers.all_findings import findings
from crossalign.results.comparable import papers_config
from crossalign.results.findings.finding import FAILS, HOLDS, NOT_RUN, UNLEARNT, UNSURE
from crossalign.results.findings.views import from_records

PAPER = "align-predict"
SCORED = ["drop-en-parse", "drop-en-pos", "drop-en-ner", "drop-ru-ar", "upper-en-parse", "upper-en-pos", "upper-en-ner"]
SCORED += ["domain-parse", "domain-pos-ner", "sets-lower"]
TASKS = ("parsing", "pos", "ner")


def swapped(frames):
    """The source language loses what the others lost, and they what it lost; where nothing was lost, all lose."""
    scores = frames["scores"].copy()
    place = ["seed", "task", "source", "train", "target", "set", "metric"]
    ref = scores[scores["init"] == "ref"].set_index(place)["value"]
    change = scores["value"] - ref.reindex(scores.set_index(place).index).to_numpy()
    home = scores["target"] == scores["source"]
    keys = ["seed", "task", "source", "init", "train"]
    means = {
        side: change[home == side].groupby([scores[key] for key in keys]).mean().rename("change")
        for side in (True, False)
    }
    other = [means[not at_home].get(tuple(key)) for at_home, key in zip(home, scores[keys].to_numpy(), strict=True)]
    upper = scores["init"] == "random-11-12"
    scores["value"] = ref.reindex(scores.set_index(place).index).to_numpy() + other - 6.0 * upper
    return frames | {"scores": scores.dropna(subset="value")}


@pytest.mark.parametrize("name", SCORED)
def test_what_the_paper_prints(name):
    found = judged(name, as_printed(PAPER))
    assert found.verdict == HOLDS, found
    assert {one.over for one in found.estimates if one.rule} == {"seeds"}
    assert verdict(name, swapped(as_printed(PAPER))) == FAILS
    assert verdict(name, as_printed(PAPER, seeds=3, times=60)) == UNSURE


def curves(top, pretrained=True, drop=0.2):
    """CKA of six languages that rises up to a layer and falls; with random lower layers it is smaller by `drop`."""
    rows = []
    for language in papers_config()[PAPER]["similarity_languages"]:
        for layer in range(13):
            value = 0.8 - 0.03 * abs(layer - top)
            row = {"base": "mbert", "model": "mbert", "corpus": "pud", "pair": f"en-{language}", "language": language}
            row |= {"layer": layer, "measure": "cka"}
            rows.append(row | {"value": value})
            for task in TASKS:
                told = row | {"task": task, "source": "en"}
                rows += [told | {"init": "ref", "value": value}, told | {"init": "random-1-2", "value": value - drop}]
    return spread(from_records(similarity=rows))


@pytest.mark.parametrize("name", ["cka-peak-pretrained", "cka-peak-tuned"])
def test_where_languages_are_most_alike(name):
    found = judged(name, curves(5))
    assert found.verdict == HOLDS and {one.estimate for one in found.estimates if one.quantity == "layer"} == {5}
    assert [verdict(name, curves(top)) for top in (0, 1, 12)] == [FAILS, UNSURE, FAILS]


def test_what_fine_tuning_keeps_and_random_layers_take():
    frames = curves(5)
    assert [verdict(name, frames) for name in ("cka-preserved", "cka-lower-reinit")] == [HOLDS, HOLDS]
    assert verdict("cka-lower-reinit", curves(5, drop=-0.2)) == FAILS
    similarity = frames["similarity"]
    similarity.loc[similarity["task"] != "", "value"] *= 0.5
    assert verdict("cka-preserved", frames) == FAILS


def ranked(task, order=1.0):
    """REF scores of all languages, and a similarity that goes with them."""
    frames = as_printed(PAPER)
    scores = frames["scores"][lambda frame: (frame["init"] == "ref") & (frame["source"] == "en")]
    rows = []
    for row in scores[(scores["task"] == task) & (scores["target"] != "en")].to_dict("records"):
        told = {"base": "mbert", "model": "mbert", "corpus": "pud", "pair": f"en-{row['target']}", "measure": "cka"}
        told |= {"language": row["target"], "task": task, "source": "en", "init": "ref", "seed": row["seed"]}
        rows += [told | {"layer": layer, "value": 0.3 + order * row["value"] / 200} for layer in range(13)]
    return {"scores": scores} | {"similarity": from_records(similarity=rows)["similarity"]}


@pytest.mark.parametrize("task", TASKS)
def test_similarity_and_transfer(task):
    name = f"spearman-{task}"
    assert verdict(name, ranked(task)) == HOLDS
    assert verdict(name, ranked(task, -1.0)) == FAILS
    noisy = ranked(task)
    noisy["similarity"]["value"] = noisy["similarity"]["language"].map(hash_of)
    assert verdict(name, noisy) == UNSURE


def hash_of(language):
    """A number that has nothing to do with transfer."""
    return (7 * ord(language[0]) + 13 * ord(language[1])) % 17


def test_a_missing_seed_lowers_what_is_known_and_no_more():
    frames = as_printed(PAPER)
    scores = frames["scores"]
    gone = (scores["seed"] == 2) & (scores["init"] == "random-1-2")
    found = judged("drop-en-pos", frames | {"scores": scores[~gone]})
    assert found.verdict == HOLDS and {one.n for one in found.estimates if one.rule} == {4}


def test_a_task_that_is_not_learnt():
    frames = as_printed(PAPER)
    frames["scores"]["value"] /= 5
    assert [verdict(name, frames) for name in SCORED] == [UNLEARNT] * len(SCORED)


def test_nothing_is_there():
    few = papers_config()[PAPER] | {"sources": ["en"], "layer_sets": ["all", "1-2"]}
    for name in ("drop-ru-ar", "sets-lower"):
        assert verdict(name, as_printed(PAPER), papers_config() | {PAPER: few}) == NOT_RUN
    empty = from_records()
    assert {verdict(one.id, empty) for one in findings() if one.paper == PAPER} == {NOT_RUN}
    assert finding("drop-en-parse").items == ("align-predict/table6",)
