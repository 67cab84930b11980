"""A second reading of what alpha weighs: runs of their own, a row of its own, and nothing else changes."""

import pytest
from tests.unit.made_results import load, make_results

from crossalign.catalog.addresses import Tuned
from crossalign.catalog.config import check
from crossalign.catalog.trainings import finetune_settings
from crossalign.papers import make
from crossalign.papers.common.context import Context
from crossalign.results.reading import Results
from crossalign.runtime.errors import UserError

BOTH = "adjusted+continual, alpha on both terms"
TABLES = {"adjust/table2": 8, "adjust/table3": 8, "adjust/table4": 22}
RUN = Tuned("mbert+adjust-hi-30k-avg-all", "adjust-nli", "multinli_en", "continual-both", 2)


@pytest.fixture(scope="module")
def one(root):
    return load(root, adjust={"further_alpha_scopes": []})


@pytest.fixture(scope="module")
def two(root):
    return load(root, adjust={"further_alpha_scopes": ["both"]})


@pytest.fixture(scope="module")
def rendered(one, two, tmp_path_factory):
    """Tables without and with the second reading, from the same results."""
    folder = tmp_path_factory.mktemp("results")
    make_results(folder, two | {"items": list(TABLES)})
    return [{item: make(item, Context(config, Results(folder))) for item in TABLES} for config in (one, two)]


def continual(config, run):
    return finetune_settings(config, run)["continual"]


def test_the_settings_say_what_alpha_weighs(two):
    assert continual(two, RUN)["alpha_scope"] == "both"
    main = Tuned(RUN.model, RUN.preset, RUN.source, "continual", RUN.seed)
    assert continual(two, main)["alpha_scope"] == "alignment"
    other = two | {"pull": two["pull"] | {"continual": two["pull"]["continual"] | {"alpha_scope": "both"}}}
    assert continual(other, main)["alpha_scope"] == "both"
    turned = Tuned(RUN.model, RUN.preset, RUN.source, "continual-alignment", RUN.seed)
    assert continual(other, turned)["alpha_scope"] == "alignment"
    # Nothing else of the two trainings differs.
    assert finetune_settings(two, RUN) | {"continual": continual(two, main)} == finetune_settings(two, main)


@pytest.mark.parametrize("item", TABLES)
def test_the_row_stands_below_the_papers_and_beside_nothing_printed(rendered, item):
    plain, wider = (tables[item] for tables in rendered)
    further = [cell for cell in wider.cells() if cell.keys["model"] == BOTH]
    assert len(further) == TABLES[item] and all(cell.value.mean is not None for cell in further)
    assert {(cell.printed, cell.verdict.label) for cell in further} == {(None, "")}
    # All other numbers, marks and verdicts are as without it.
    assert [cell for cell in wider.cells() if cell.keys["model"] != BOTH] == list(plain.cells())
    labels = [row.label for row in wider.rows]
    assert labels[:4] == ["original", "adjusted", "adjusted+continual", BOTH]
    main = [cell for cell in wider.cells() if cell.keys["model"] == "adjusted+continual"]
    assert [cell.value for cell in main] != [cell.value for cell in further]
    assert any("the authors' scripts the alignment term alone" in note for note in wider.notes)
    assert not any("alpha" in note for note in plain.notes)


def test_the_scope_of_the_rows_above_is_refused(root):
    with pytest.raises(UserError, match="further_alpha_scopes: .alignment. is that of pull"):
        check(load(root, adjust={"further_alpha_scopes": ["alignment"]}))
