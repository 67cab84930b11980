"""Which languages and indexes the chosen tables and figures want of one model, so that no job compares more.

The largest models are where it counts: only their ANC is asked for, and the CCA family of 4,096 neurons takes hours on
a CPU. Plain Python over the catalog, for the rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crossalign.catalog.addresses import Run
    from crossalign.catalog.runs import Catalog

# What an item draws, and what its paper or its authors' code offers beside it.
_CKA = ("cka", "cka-uncentred")
_ANC = ("anc", "anc-signed")
_CCA = ("cca", "cca-squared", "cca-ecco", "svcca", "pwcca", "pwcca-ecco")
_ITEMS = {
    "anc/figure1": _CKA,
    "anc/figure2": ("matching",),
    "anc/figure3": _ANC,
    "anc/figure4": _ANC,
    "anc/figure5": _ANC,
    "anc/figure6": _ANC,
    "anc/figure7": _CKA,
    "anc/figure8": (*_CKA, *_ANC),
    "anc/figure9": _CCA,
}
# `align-predict`, and the talk that shows it again: the printed formula, the standard form and the authors' code.
_OTHERS = (*_CKA, "cka-rbf")
# As `similarity.INDEXES`, which would bring numpy along.
_ORDER = (*_CKA, "cka-rbf", *_ANC, *_CCA, "matching")


def wanted_languages(catalog: Catalog, run: Run, corpus: str) -> list[str]:
    """The languages of a corpus that some item compares in this model, sorted; English is always among them."""
    found = {"en"}
    for item in catalog.items:
        needs = catalog.needs(item)
        if run in needs.runs:
            found |= {data.split for data in needs.sets if data.kind == "parallel" and data.name == corpus}
    return sorted(found)


def wanted_indexes(catalog: Catalog, run: Run, corpus: str) -> list[str]:
    """The indexes that some item asks of this model on this corpus, in the order of the indexes."""
    found: set[str] = set()
    for item in catalog.items:
        needs = catalog.needs(item)
        if run in needs.runs and any(data.kind == "parallel" and data.name == corpus for data in needs.sets):
            found |= {*_ITEMS[item]} if item in _ITEMS else {*_OTHERS, catalog.config["similarity"]["index"]}
    return [name for name in _ORDER if name in found]
