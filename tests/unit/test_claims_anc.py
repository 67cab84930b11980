"""The claims of `anc`: each fails where the numbers contradict its sentence, and is unclear where noise hides it."""

import pytest
from tests.unit.claim_mutants import Edited, kinds, level, put, same, swamped, verdict

from crossalign.papers.all_claims import declared
from crossalign.results.claims.claim import FAILS, HOLDS, UNCHECKED, UNCLEAR, judge

F1, F2, F3, F4, F5, F6, F7, F8, F9 = (f"anc/figure{place}" for place in range(1, 10))
T1 = "anc/table1"
DEEP = range(6, 13)
FRENCH = {"series": "English-French"}
NORMFORMER = {"panel": "NormFormer"}
SVCCA = {"panel": "SVCCA"}


# Claim, why the numbers contradict it, and the numbers.
CONTRADICTIONS = [
    ("anc-peak", "far from 0.7", level(F3, dict.fromkeys(range(13), 0.3), panel="mBERT")),
    ("match-fr", "below one half in one of the layers", level(F2, {12: 0.4}, **FRENCH)),
    ("match-deep", "as near zero as CKA", level(F2, dict.fromkeys(DEEP, 0.02))),
    ("match-deep", "CKA is higher there", level(F1, dict.fromkeys(DEEP, 0.95), **NORMFORMER)),
    ("match-deep", "no decline", level(F2, {12: 0.95}, **FRENCH)),
    ("cka-others", "low in one of the two models", level(F1, 0.1, panel="Post-LN")),
    (
        "cka-normformer-high",
        "falls from the first layer on",
        level(F1, dict.fromkeys(range(1, 6), 0.2), **FRENCH),
    ),
    ("cka-normformer-drop", "a gentle fall", level(F1, {6: 0.5}, **NORMFORMER, **FRENCH)),
    ("cka-normformer-zero", "high in one layer of one language", level(F1, {9: 0.5}, **NORMFORMER, **FRENCH)),
    ("cka-normformer-v2", "not near zero", level(F7, {8: 0.3}, **FRENCH)),
    ("cka-normformer-v2", "not the same curve", level(F7, dict.fromkeys(range(6), 0.3))),
    ("cka-tuned", "CKA captures the middle", level(F8, {8: 0.4}, panel="CKA", **FRENCH)),
    ("cka-tuned", "CKA fails at the last layer", level(F8, {12: 0.05}, panel="CKA", **FRENCH)),
    ("cka-tuned", "ANC fails at one layer", level(F8, {3: 0.1}, panel="ANC", **FRENCH)),
    ("ccas", "far above 0.8", level(F9, {7: 0.95}, **SVCCA, **FRENCH)),
    ("cca-passes", "SVCCA near zero as well", level(F9, dict.fromkeys(DEEP, 0.05), **SVCCA)),
    ("cca-passes", "CKA shows as much", level(F1, dict.fromkeys(DEEP, 0.9), **NORMFORMER)),
    ("transfer-gap", "one language as good as English", put(T1, 0.83, model="scale_pre", target="bg")),
    ("norm-transfer", "a loss by one scheme", put(T1, 0.60, model="scale_normformer", target=("fr", "bg"))),
    ("norm-transfer", "a gain by one scheme", put(T1, 0.85, model="scale_pre", target=("fr", "bg"))),
    ("scaling-pattern", "one model aligns to its end", level(F5, {48: 0.9}, panel="XLM-R XXL")),
    ("scaling-pattern", "one model only falls", level(F6, {0: 0.9, 1: 0.8}, panel="XGLM 1.7B")),
    ("clm-pattern", "a causal model peaks at layer 1", level(F6, {1: 0.9}, panel="XGLM 7.5B")),
    ("mbert-vs-xlmr", "mBERT is nearer to English", level(F3, 0.9, panel="mBERT")),
    ("anc-known", "XLM-R aligns to its end", level(F3, {12: 0.9}, panel="XLM-R base", **FRENCH)),
    ("anc-normformer", "no divergence", level(F4, {12: 0.9}, **NORMFORMER, **FRENCH)),
    ("anc-deep", "near zero like CKA", level(F4, dict.fromkeys(DEEP, 0.05), **NORMFORMER)),
    ("anc-others", "Pre-LN has no such pattern", level(F4, {12: 0.9}, panel="Pre-LN")),
]
IN_KIND = kinds("anc")
# What is said in amount alone.
AMOUNTS = ("anc-peak", "match-fr", "ccas")


def judged(paper, name, edit=same):
    return verdict("anc", name, paper, edit, amounts=name in AMOUNTS)


def test_no_claim_is_left_out():
    assert {name for name, _, _ in CONTRADICTIONS} == {*IN_KIND, *AMOUNTS}


@pytest.mark.parametrize(
    ("name", "reason", "edit"), CONTRADICTIONS, ids=lambda value: value if isinstance(value, str) else ""
)
def test_contradictions(paper, name, reason, edit):
    assert judged(paper, name).verdict == HOLDS
    assert judged(paper, name, edit).verdict == FAILS, reason


@pytest.mark.parametrize("name", IN_KIND)
def test_noise(paper, name):
    assert judged(paper, name, swamped).verdict == UNCLEAR


def test_the_authors_library_is_judged(paper):
    """The plain formula of PWCCA gives other values, which decide nothing."""
    plain = level(F9, 0.0, panel="PWCCA")
    assert all(judged(paper, name, plain).verdict == HOLDS for name in ("ccas", "cca-passes"))
    lacking = judged(paper, "ccas", lambda item, row: [] if "library" in row.get("panel", "") else row)
    assert lacking.verdict == UNCHECKED and "has no PWCCA (authors' library)" in lacking.detail


def test_a_peak_in_the_last_layer_but_one_is_still_the_pattern(paper):
    """Languages "diverge slightly only at deep layers"."""
    late = level(F4, {11: 0.75}, **NORMFORMER)
    assert judged(paper, "anc-normformer", late).verdict == HOLDS
    assert judged(paper, "anc-normformer", level(F4, {2: 0.75}, **NORMFORMER)).verdict == FAILS


def test_the_band_of_a_mean_over_languages_is_no_noise(paper):
    """A single model's curve has the spread over language pairs for its `std`."""
    assert judged(paper, "scaling-pattern", lambda item, row: row | {"std": "0.2", "n": "1"}).verdict == HOLDS


def test_transfer_that_was_not_learnt(paper):
    guessed = put(T1, 0.34, model="scale_post", target="bg")
    for name in ("transfer-gap", "norm-transfer"):
        found = judged(paper, name, guessed)
        assert found.verdict == UNCHECKED and found.detail.startswith("not learnt: NLI scale_post bg 34.00 ±")


def test_shapes_are_judged_again_with_length_taken_out(paper):
    """Without the part that length has in it, similarity of this made-up model only falls."""
    config, folder = paper
    row, claim = next(pair for pair in declared("anc") if pair[0]["id"] == "anc-normformer")
    falls = level(F4, {layer: 0.5 - 0.03 * layer for layer in range(13)})
    controlled = Edited(config, folder, falls)
    found = judge("anc", row, claim, Edited(config, folder, same), controlled)
    assert (found.verdict, found.controlled) == (HOLDS, FAILS)
