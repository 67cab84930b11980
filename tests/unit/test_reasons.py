"""Why claims do not come out in a run, as its config says."""

from dataclasses import replace

import pytest

from crossalign.catalog.config import ROOT, load
from crossalign.papers.all_claims import CLAIMS
from crossalign.results.claims.claim import FAILS, HOLDS, NOT_RUN, UNCHECKED, UNCLEAR, Judged, explained
from crossalign.runtime.errors import UserError

ROW = Judged("anc-deep", "anc", "anc/figure4", "", "qualitative", FAILS)
REASONS = {"anc/anc-*": "first", "anc/*": "second"}


def test_the_pattern_that_spells_out_most_of_a_name_tells_why():
    rows = [ROW, replace(ROW, id="cka-tuned"), replace(ROW, paper="talk")]
    for reasons in (REASONS, dict(reversed(REASONS.items()))):
        assert [claim.why for claim in explained(rows, reasons)] == ["first", "second", ""]
    assert explained(rows, {"anc/*-deep": "end", "anc/anc-*": "beginning", "anc/anc-deep": "all"})[0].why == "all"
    assert explained(rows, {"anc/*-deep": "end", "anc/anc-*": "beginning"})[0].why == "beginning"


@pytest.mark.parametrize(
    ("verdict", "detail", "told"),
    [
        (UNCLEAR, "", "first"),
        (HOLDS, "", ""),
        (NOT_RUN, "", ""),
        (UNCHECKED, "not judged: artificial", ""),
        (UNCHECKED, "not learnt: NLI", "first"),
    ],
)
def test_only_what_was_looked_at_and_did_not_come_out_has_a_reason(verdict, detail, told):
    rows = [replace(ROW, verdict=verdict, detail=detail), replace(ROW, id="cka-tuned")]
    assert explained(rows, REASONS)[0].why == told


def test_a_pattern_without_a_claim_is_refused():
    with pytest.raises(UserError, match=r"'anc/anc-dep' is no claim"):
        explained([ROW], {"anc/anc-dep": "typing error"})


def test_the_demo_explains_claims_that_there_are():
    rows = [Judged(name, paper, "", "", "", FAILS) for paper, claims in CLAIMS.items() for name in claims]
    told = {claim.id: claim.why for claim in explained(rows, load([ROOT / "config/demo.yaml"])["reasons"])}
    assert "length" in told["cka-peak-pos"] and "Hindi" in told["ner-langs"]
    assert not told["drop-en-pos"]
