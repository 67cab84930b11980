"""Amounts and cells are judged only where languages and data sets are the paper's; what a claim says in kind always."""

import copy

import pytest
from tests.unit.claim_mutants import verdict

from crossalign.catalog.layers import merge
from crossalign.catalog.sets import DataSet
from crossalign.papers import make
from crossalign.papers.common.context import Context
from crossalign.results.claims.claim import HOLDS, UNCHECKED
from crossalign.results.comparable import other_sets
from crossalign.results.verdict import JUDGED, OTHER

ALIGN = "align-predict"
NO_FINNISH = "other languages than the paper's: without Finnish"
GSD = "other data sets than the paper's: de_gsd"


def changed(config, **studies):
    found = copy.deepcopy(config)
    merge(found, studies)
    return found


def without(config, *langs):
    """A shorter list of languages."""
    kept = [lang for lang in config[ALIGN]["languages"] if lang not in langs]
    return changed(config, **{ALIGN: {"languages": kept}})


def lacking(config, *langs):
    """The same list, without data for them."""
    languages = dict.fromkeys(("parsing", "pos", "ner"), list(langs))
    return changed(config, **{ALIGN: {"lacking": {"languages": languages}}})


def replaced(config, key, **names):
    return changed(config, **{ALIGN: {key: names}})


@pytest.mark.parametrize("fewer", [without, lacking])
def test_a_mean_over_fewer_languages_is_no_amount_of_the_papers(paper, fewer):
    config, folder = paper
    run = (fewer(config, "fi"), folder)
    for key in ((ALIGN, "drop-en-x-parse"), (ALIGN, "spearman-ft-parsing"), ("talk", "spearman-pos")):
        found = verdict(key, run, amounts=True)
        assert found.detail.startswith(f"not judged in amount: {NO_FINNISH}") and found.verdict == HOLDS
        assert found.detail.count("Finnish") == 1
    # What English itself loses is measured as in the paper.
    home = verdict((ALIGN, "drop-en-en-parse"), run, amounts=True)
    assert (home.verdict, home.detail) == (HOLDS, NO_FINNISH)
    assert "not judged" not in verdict((ALIGN, "drop-en-x-parse"), paper, amounts=True).detail


def test_an_amount_on_other_treebanks_is_not_judged(paper):
    config, folder = paper
    for key, name, key_of_claim, told in (
        ("treebanks", {"en": "en_gum"}, "drop-en-en-parse", "en_gum"),
        ("treebanks", {"en": "en_gum"}, "cka-peak-pos", "en_gum"),
        ("test_treebanks", {"sl": "sl_sst"}, "drop-en-x-parse", "sl_sst"),
        ("own_treebanks", {"de": "de_pud"}, "std-pos-median", "de_pud"),
        ("domains", {"train": "en_gum"}, "domain-lit", "en_gum"),
    ):
        found = verdict((ALIGN, key_of_claim), (replaced(config, key, **name), folder), amounts=True)
        kind = "not judged" if key_of_claim.startswith("std-") else "not judged in amount"
        assert found.detail.startswith(f"{kind}: other data sets than the paper's: {told}"), found
    # Of NER no treebank is a part.
    found = verdict((ALIGN, "cka-peak-ner"), (replaced(config, "treebanks", en="en_gum"), folder), amounts=True)
    assert "not judged" not in found.detail
    # Table 5 has languages of its own.
    fewer = changed(config)
    del fewer[ALIGN]["own_treebanks"]["tr"]
    found = verdict((ALIGN, "std-ner-max"), (fewer, folder), amounts=True)
    assert found.verdict == UNCHECKED and found.detail == (
        "not judged: other languages than the paper's: without Turkish"
    )


def test_sets_are_told_by_their_language_or_else_by_name(root):
    def measured_on(config):
        return [DataSet("trees", name, "test") for name in config.get("sets", ["de_pud", "fi_pud"])]

    assert other_sets({}, measured_on) == ""
    assert other_sets({"sets": ["de_pud"]}, measured_on) == NO_FINNISH
    assert other_sets({"sets": ["de_gsd", "fi_pud"]}, measured_on) == GSD
    # A set of a further language is no replacement.
    both = "other languages than the paper's: without Finnish; with Wolof; other data sets than the paper's: de_gsd"
    assert other_sets({"sets": ["de_gsd", "wo_wtb"]}, measured_on) == both


def cells(made, config, item):
    context = Context(config, made.results)
    return [cell for cell in make(item, context).cells() if cell.printed is not None]


@pytest.mark.parametrize("item", ["align-predict/table1", "align-predict/table6", "talk/table1", "talk/table2"])
@pytest.mark.parametrize("fewer", [without, lacking])
def test_cells_that_are_means_over_fewer_languages(made, item, fewer):
    for cell in cells(made, fewer(made.config, "fi"), item):
        if cell.keys["target"] == "X":
            assert (cell.verdict.label, cell.verdict.reason) == (OTHER, NO_FINNISH)
        else:
            assert NO_FINNISH not in cell.verdict.reason
            assert cell.verdict.label in JUDGED or cell.verdict.label.startswith("not judged (doubtful)")
    assert all(NO_FINNISH not in cell.verdict.reason for cell in cells(made, made.config, item))
