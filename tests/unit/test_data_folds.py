"""Folds: every sentence tested once, equal sentences together, the same everywhere."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from crossalign.data.conllu import assign_folds, part_of


@settings(deadline=None)
@given(st.lists(st.integers(0, 30), min_size=1, max_size=60), st.integers(3, 7), st.integers(0, 99))
def test_equal_items_share_a_fold_and_folds_are_even(keys, folds, seed):
    assigned = assign_folds(keys, folds, seed)
    assert len({(key, fold) for key, fold in zip(keys, assigned, strict=True)}) == len(set(keys))
    sizes = Counter(dict(zip(keys, assigned, strict=True)).values())
    assert max(sizes.values()) - min(sizes[fold] for fold in range(folds)) <= 1


def test_rotations_test_each_fold_once_and_hold_out_the_next():
    rotations = [[part_of(fold, rotation, 5) for fold in range(5)] for rotation in range(1, 6)]
    assert rotations[0] == ["test", "dev", "train", "train", "train"]
    assert rotations[4] == ["dev", "train", "train", "train", "test"]
    for fold in range(5):
        assert Counter(rotation[fold] for rotation in rotations) == {"test": 1, "dev": 1, "train": 3}


def test_the_draw_is_fixed_for_ever():
    assert assign_folds(range(10), 5, 1) == [2, 4, 0, 1, 1, 4, 3, 0, 2, 3]
    assert assign_folds(range(10), 5, 2) != assign_folds(range(10), 5, 1)
