"""Labelled sets of the config may not have the name of a set that the workflow has: theirs would take its place."""

import copy

import pytest

from crossalign.catalog.config import check, load
from crossalign.runtime.errors import UserError

ENTRY = {"hub": "own/set", "revision": "1" * 40, "splits": {"test": "{lang}/test*"}}


@pytest.fixture(scope="module")
def config():
    return load([])


@pytest.mark.parametrize(
    ("family", "task", "languages", "taken"),
    [
        ("pud", "pos", ["de"], "de_pud"),
        ("ewt", "pos", {"wo": "wol", "en": "eng"}, "en_ewt"),
        ("mix", "nli", ["wo", "en"], "mix_en"),
        ("conll2003", "ner", ["de"], "conll2003_de"),
        ("pud", "pos", ["wo"], ""),
        ("pud", "ner", ["de"], ""),
    ],
)
def test_no_language_of_an_entry_takes_the_place_of_a_set(config, family, task, languages, taken):
    config = copy.deepcopy(config) | {"datasets": {family: ENTRY | {"task": task, "languages": languages}}}
    if not taken:
        check(config)
        return
    with pytest.raises(UserError) as error:
        check(config)
    told = f"datasets.{family}: this is the name of a set that the workflow has already ({taken}); choose another"
    assert told in str(error.value)
