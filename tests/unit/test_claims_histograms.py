"""The claims of `adjust` on its histograms: each fails where they contradict its sentence, or is unclear in between."""

import math

import pytest
from tests.unit.claim_mutants import both
from tests.unit.test_claims_adjust import CONTINUAL, T2, T3, T4, gain, judged

from crossalign.papers.all_claims import declared
from crossalign.results.claims.claim import FAILS, HOLDS, UNCHECKED, UNCLEAR

F2 = "adjust/figure2"


def centres(name, related, unrelated, languages=("Spanish", "Russian", "Vietnamese", "Hindi")):
    """Other histograms for a model: the places of related and unrelated words; None leaves one as it is."""
    places = {"related words": related, "unrelated words": unrelated}

    def edit(item, row):
        place = places.get(row.get("series", ""))
        if item != F2 or place is None or row["panel"] not in {f"{lang}: {name}" for lang in languages}:
            return row
        return row | {"y": f"{math.exp(-((float(row['x']) - place) ** 2) / 20):.4f}"}

    return edit


# In the paper's shapes related and unrelated words lie at 20 and 24 in the original model, at 14 and 24 in the adjusted
# one, about 8 in tuned ones, and at 10 and 18 after continual learning.
CONTRADICTIONS = [
    ("hist-adjust", "unrelated words come closer, too", centres("adjusted", 10, 17)),
    ("hist-adjust", "related words do not come closer", centres("adjusted", 22, 30, ["Russian"])),
    ("hist-ft", "no overlap", centres("original, NLI", 8, 14, ["Hindi"])),
    ("hist-ft", "no overlap of the adjusted model", centres("adjusted, NLI", 8, 14)),
    ("hist-ft", "they overlapped before", both(centres("original", 20, 20.2), centres("original, NLI", 8, 9))),
    ("ft-closer", "unrelated words stay where they are", centres("original, NLI", None, 24)),
    ("ft-closer", "words of the adjusted model stay where they are", centres("adjusted, NLI", 14, 15)),
    ("ft-forgets", "one task keeps the separation", both(centres("adjusted", 14, 18), centres("adjusted, QA", 8, 20))),
    ("hist-adjusted-ft", "the original model separates better", centres("original, NLI", 8, 12)),
    ("hist-adjusted-ft", "no modest effect", centres("adjusted, NLI", 8, 18)),
    ("hist-cl", "one task separates worse", centres("continual, QA", 8, 8, ["Vietnamese"])),
    ("cl-keeps", "half of the separation is lost", centres("continual, NLI", 10, 13)),
    ("hist-ner-es", "Hindi separates best", centres("adjusted, NER", 8, 18, ["Hindi"])),
    (
        "separation-no-help",
        "scores grow wherever separation does",
        both(*(edit for item in (T2, T3, T4) for edit in (gain(item, 5, "*"), gain(item, 10, "**", CONTINUAL)))),
    ),
]
UNDECIDED = [
    ("hist-adjust", "related words as far as before", centres("adjusted", 20, 24)),
    ("hist-adjust", "unrelated words a tenth closer", centres("adjusted", 10, 21.6)),
    ("hist-ft", "four fifths in common", centres("original, NLI", 8, 9.6)),
    ("ft-closer", "a tenth closer", centres("original, NLI", 18, 18.3)),
    ("ft-forgets", "as before", centres("adjusted, NER", 14, 24)),
    ("hist-adjusted-ft", "no difference", centres("adjusted, NLI", 8, 8.3)),
    ("hist-cl", "no difference", centres("continual, NER", 8, 9, ["Hindi"])),
    ("cl-keeps", "four fifths are left", centres("continual, NLI", 10, 15.5)),
    ("hist-ner-es", "one language as good", centres("adjusted, NER", 8, 12, ["Hindi"])),
    (
        "separation-no-help",
        "no score changes",
        both(*(edit for item in (T2, T3, T4) for edit in (gain(item, 0, ""), gain(item, 0, "", CONTINUAL)))),
    ),
]
IN_KIND = [row["id"] for row, claim in declared("adjust") if claim.test and "figure" in claim.item]


def named(value):
    return value if isinstance(value, str) else ""


def test_no_claim_is_left_out():
    assert {name for name, _, _ in CONTRADICTIONS} == {name for name, _, _ in UNDECIDED} == set(IN_KIND)


@pytest.mark.parametrize(("name", "reason", "edit"), CONTRADICTIONS, ids=named)
def test_contradictions(paper, name, reason, edit):
    assert judged(paper, name).verdict == HOLDS
    assert judged(paper, name, edit).verdict == FAILS, reason


@pytest.mark.parametrize(("name", "reason", "edit"), UNDECIDED, ids=named)
def test_what_noise_could_turn_round(paper, name, reason, edit):
    """The spread of single runs is a declared one; it hides small differences."""
    assert judged(paper, name, edit).verdict == UNCLEAR, reason


def test_overlap_is_said_of_nli_alone(paper):
    apart = both(centres("original, NER", 8, 16), centres("adjusted, QA", 8, 18))
    assert judged(paper, "hist-ft", apart).verdict == HOLDS


def test_separation_that_grew_nowhere(paper):
    alike = [centres(f"{kind}, {task}", 8, 8.3) for kind in ("adjusted", "continual") for task in ("NLI", "NER", "QA")]
    found = judged(paper, "separation-no-help", both(*alike))
    assert found.verdict == UNCHECKED and "no model of this run separates related words better" in found.detail


def test_nothing_to_keep(paper):
    found = judged(paper, "cl-keeps", centres("adjusted", 20, 20))
    assert found.verdict == UNCHECKED and "no better than chance" in found.detail


def test_separation_needs_scores_that_were_learnt(paper):
    def edit(item, row):
        return row | ({"mean": "10"} if row.get("model") == "original" and row.get("task") == "qa" else {})

    found = judged(paper, "separation-no-help", edit)
    assert found.verdict == UNCHECKED and found.detail.startswith("not learnt: QA")
