"""The findings of `anc` hold on what the paper prints, and on nothing that was turned round."""

import pandas as pd
import pytest
from tests.planted import as_printed, judged, verdict

from crossalign.papers.all_findings import findings
from crossalign.results.comparable import papers_config
from crossalign.results.findings.finding import FAILS, HOLDS, NOT_RUN, UNLEARNT, UNSURE

PAPER, NORMFORMER = "anc", "scale-normformer"
NAMES = [one.id for one in findings() if one.paper == PAPER]


def planted(times=1.0):
    """The paper's numbers by five seeds, among numbers of the same models that no finding is about."""
    frames = as_printed(PAPER, times=times)
    curves = frames["similarity"]
    away = curves.assign(value=0.5)
    others = [away.assign(task="nli"), away.assign(corpus="pud"), away.assign(measure="svcca")]
    others.append(away[away["pair"] != "mean"].assign(pair="en-ja", language="ja"))
    words = frames["scores"].assign(metric="cut_tokens", value=0.0)
    return frames | {
        "similarity": pd.concat([curves, *others], ignore_index=True),
        "scores": pd.concat([frames["scores"], words], ignore_index=True),
    }


def curves(change, **chosen):
    """A mutant that changes the numbers of some curves."""

    def mutant(frames):
        similarity = frames["similarity"].copy()
        own = (similarity[list(chosen)] == pd.Series(chosen)).all(axis=1) & similarity["task"].eq("")
        own &= similarity["corpus"].eq("xnliext") & similarity["language"].ne("ja")
        keys = ["seed", "model", "pair", "measure"]
        similarity.loc[own, "value"] = similarity[own].groupby(keys)["value"].transform(change)
        return frames | {"similarity": similarity}

    return mutant


def shifted(curve):
    """Every layer has what the one below it had."""
    return curve.shift(1, fill_value=curve.iloc[0])


def in_order(curve):
    return sorted(curve)


def falling(curve):
    return sorted(curve, reverse=True)


def upside_down(curve):
    return 1 - curve


def backwards(curve):
    return curve.to_numpy()[::-1]


def by(amount):
    return lambda values: values + amount


def exchanged(frames):
    """CKA and the two others change places."""
    names = {"cka": "anc", "anc": "cka"}
    return frames | {"similarity": frames["similarity"].assign(measure=lambda own: own["measure"].replace(names))}


def scores(amount, **chosen):
    """A mutant that adds points to some scores."""

    def mutant(frames):
        found = frames["scores"].copy()
        found.loc[(found[list(chosen)] == pd.Series(chosen)).all(axis=1), "value"] += amount
        return frames | {"scores": found}

    return mutant


PATTERNS = [in_order, falling, upside_down]
SECOND = {"model": "scale-normformer-v2"}
MATCHING = {"measure": "matching"}
MUTANTS = {
    "cka-normformer-zero": [*(curves(one, measure="cka") for one in (shifted, backwards, upside_down)), exchanged],
    "cka-normformer-v2": [curves(one, **SECOND) for one in (shifted, backwards, by(0.08), by(-0.08))],
    "anc-normformer": [curves(one, model=NORMFORMER, measure="anc") for one in PATTERNS],
    "anc-deep": [curves(by(-0.3), model=NORMFORMER, measure="anc"), exchanged],
    "match-deep": [curves(one, **MATCHING) for one in (by(-0.5), in_order)] + [curves(by(0.8), measure="cka")],
    "norm-transfer": [
        scores(5, model="scale-post"),
        scores(-5, model="scale-post"),
        scores(-8, model="scale-pre", target="fr"),
        scores(8, model=NORMFORMER, target="bg"),
    ],
    "anc-known": [curves(one, measure="anc") for one in PATTERNS],
    "scaling-pattern": [curves(one, model="xglm-7.5b") for one in PATTERNS],
    "anc-peak": [curves(by(-0.2), measure="anc"), curves(by(-0.2), model="xlmr-base")],
}


@pytest.mark.parametrize("name", NAMES)
def test_a_finding_holds_in_its_own_paper(name):
    assert verdict(name, planted()) == HOLDS


@pytest.mark.parametrize(("name", "mutant"), [(name, one) for name in NAMES for one in MUTANTS[name]])
def test_nothing_is_found_where_the_effect_is_turned_round(name, mutant):
    assert verdict(name, mutant(planted())) == FAILS


# The highest of many noisy numbers is high.
@pytest.mark.parametrize("name", [name for name in NAMES if name != "anc-peak"])
def test_noise_leaves_a_finding_open(name):
    assert UNSURE in {verdict(name, planted(times)) for times in (20, 50, 150)}


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_seed_is_missed_by_all_that_is_compared_with_it(name):
    frames = planted()
    for key in ("scores", "similarity"):
        own = frames[key]
        lost = (own["seed"] == 5) & own["model"].isin([NORMFORMER, "scale-post", "mbert", "xglm-7.5b"])
        frames[key] = own[~lost]
    found = judged(name, frames)
    assert found.verdict == HOLDS
    assert min(one.n for one in found.estimates if one.rule) == 4


def test_a_model_near_guessing_is_not_learnt_also_in_english():
    frames = planted()
    low = judged("norm-transfer", scores(-48, model=NORMFORMER, target="en")(frames))
    assert low.verdict == UNLEARNT and "nli english reaches 3" in low.reason
    # One language may be near it, as long as the mean is not.
    one = scores(-39, target="bg")(frames)
    assert verdict("norm-transfer", one) == HOLDS
    assert verdict("norm-transfer", scores(-42)(frames)) == UNLEARNT


def test_the_mean_over_the_pairs_is_what_sizes_are_compared_by():
    frames = planted()
    own = frames["similarity"]
    mean = own[own["pair"] == "mean"]
    # One pair alone has no peak, and the mean has one.
    pairs = [mean.assign(pair=f"en-{lang}", language=lang) for lang in ("de", "ru", "et")]
    rising = mean.assign(pair="en-fr", language="fr", value=mean["layer"] / 1000)
    frames["similarity"] = pd.concat([own[~own["model"].isin(mean["model"])], *pairs, rising], ignore_index=True)
    assert verdict("scaling-pattern", frames) == HOLDS
    falls = frames["similarity"]["language"] == "ru"
    frames["similarity"].loc[falls, "value"] = -3 * frames["similarity"].loc[falls, "value"]
    assert verdict("scaling-pattern", frames) == FAILS


@pytest.mark.parametrize(
    ("name", "schemes"), [*((name, ["other"]) for name in NAMES), ("norm-transfer", ["other", NORMFORMER])]
)
def test_without_its_models_a_finding_is_not_run(name, schemes):
    study = papers_config()[PAPER]
    lists = {key: ["other"] for key in ("known_models", "xlmr", "xglm")} | {"schemes": schemes}
    found = judged(name, planted(), papers_config() | {PAPER: study | lists})
    assert found.verdict == NOT_RUN and found.reason.startswith(
        ("no results yet for ", "needs three models that differ")
    )


def test_every_known_model_is_judged():
    assert judged("anc-known", planted()).agreement == "6 of 6 cases"
