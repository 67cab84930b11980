"""Claims on how experiments were made, and on what a run has: read where the sentence speaks of it."""

import copy

import pytest
from tests.unit.claim_mutants import verdict

from crossalign.catalog.layers import merge
from crossalign.results.claims.claim import FAILS, HOLDS, NOT_RUN

ALIGN = "align-predict"
T2, T5, T6, T7, T8 = (f"{ALIGN}/table{place}" for place in (2, 5, 6, 7, 8))


def asked(name, made, edit=lambda item, row: row):
    return verdict((ALIGN, name), made, edit, amounts=True)


def set_to(made, **presets):
    config, folder = made
    changed = copy.deepcopy(config)
    merge(changed["finetune"], presets)
    return changed, folder


def without(items, **keys):
    """Some tables without the rows that have these columns."""

    def edit(item, row):
        return None if item in items and all(row.get(name) == value for name, value in keys.items()) else row

    return edit


def test_sources_and_languages_are_those_of_all_tasks(paper):
    """As in the small run, where nothing is parsed from Arabic and nothing tagged with entities in Czech."""
    for name, edit, ours in (
        ("sources", without([T6], source="ar"), "3 source languages"),
        ("languages", without([T6], target="cs"), "17 languages"),
        ("languages", without([T8], target="cs"), "17 languages"),
        ("targets", without([T6], target="cs"), "14 languages"),
        ("targets", without([T8], task="ner"), "14 languages"),
    ):
        found = asked(name, paper, edit)
        assert found.verdict == HOLDS and found.measured.startswith(ours), (name, found)
    found = asked("targets", paper, without([T6, T7, T8], target="cs"))
    assert found.verdict == FAILS and found.measured.startswith("13 languages")


def test_a_table_that_is_left_out_is_not_waited_for(paper, tmp_path):
    config, folder = paper
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / ALIGN).mkdir()
    for item in (T6, T7):
        (tmp_path / f"tables/{item}.csv").write_bytes((folder / f"tables/{item}.csv").read_bytes())
    found = asked("languages", (config, tmp_path))
    assert (found.verdict, found.detail) == (NOT_RUN, f"{T8} was not made")
    skipped = config | {"skip": {T8: "no entities here"}}
    assert asked("languages", (skipped, tmp_path)).verdict == HOLDS


@pytest.mark.parametrize(
    ("name", "presets", "measured"),
    [
        ("warmup", {"pos": {"warmup": 0.0}}, "warm-up over 10;0;10 % of the steps, then linear decay"),
        ("warmup", {"defaults": {"warmup": 0.2}}, "warm-up over 20 % of the steps, then linear decay"),
        ("warmup", {"defaults": {"schedule": "constant"}}, "warm-up over 10 % of the steps, then constant decay"),
        ("warmup", {"ner": {"schedule": "cosine"}}, "warm-up over 10 % of the steps, then linear;linear;cosine decay"),
        ("epochs-parsing", {"parsing": {"selection": "last"}}, "last of 15 epochs"),
        ("epochs-parsing", {"parsing": {"epochs": 3}}, "best of 3 epochs"),
        ("epochs-pos-ner", {"ner": {"selection": "last"}}, "best;last of 6 epochs (POS and NER)"),
        ("epochs-pos-ner", {"pos": {"epochs": 3}}, "best of 3;6 epochs (POS and NER)"),
    ],
)
def test_settings_are_those_of_each_tasks_preset(paper, name, presets, measured):
    found = asked(name, set_to(paper, **presets))
    assert (found.verdict, found.measured) == (FAILS, measured)
