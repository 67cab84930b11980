"""Tests of differences between systems."""

import itertools

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from crossalign.analysis.significance import (
    example_counts,
    example_values,
    paired_t_test,
    permutation_test,
    score,
    smallest_p_paired_seeds,
    smallest_p_permutations,
    smallest_p_seeds,
    stack_seeds,
)
from crossalign.runtime.errors import UserError
from crossalign.tasks import get_task


def entity_counts(seed: int, seeds: int = 5, sentences: int = 200, skill: float = 0.7) -> np.ndarray:
    rng = np.random.default_rng(seed)
    gold = np.random.default_rng(99).integers(0, 4, sentences)
    right = rng.binomial(gold, skill, (seeds, sentences))
    predicted = right + rng.binomial(1, 0.2, (seeds, sentences))
    return np.stack([right, predicted, np.broadcast_to(gold, right.shape)], axis=-1)


def f1(right: float, predicted: float, gold: float) -> float:
    """In percent, by way of precision and recall."""
    if not right:
        return 0.0
    precision, recall = right / predicted, right / gold
    return 100 * 2 * precision * recall / (precision + recall)


@given(right=st.integers(0, 20), wrong=st.integers(0, 20), missed=st.integers(0, 20))
def test_f1(right, wrong, missed):
    counts = (right, right + wrong, right + missed)
    assert float(score(np.array(counts, dtype=float))) == pytest.approx(f1(*counts))


def test_share():
    assert score(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist() == [75.0, 0.0]


@given(st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_t_test_equals_scipy(seed):
    rng = np.random.default_rng(seed)
    first, second = rng.uniform(0, 100, (5, 40)), rng.uniform(0, 100, (3, 40))
    found = paired_t_test(first, second)
    want = scipy.stats.ttest_rel(first.mean(axis=0), second.mean(axis=0))
    assert found.p == pytest.approx(want.pvalue, rel=1e-9)
    assert found.difference == pytest.approx(first.mean() - second.mean())
    assert found.n == 40
    assert paired_t_test(second, first).p == pytest.approx(found.p)


def test_t_test_without_spread():
    values = np.random.default_rng(0).uniform(0, 100, (5, 30))
    assert (paired_t_test(values, values[::-1]).difference, paired_t_test(values, values[::-1]).p) == (0.0, 1.0)
    assert paired_t_test(values + 0.5, values).p == 0.0
    assert paired_t_test(np.zeros((1, 5)), np.zeros((2, 5))).p == 1.0


def test_t_test_refuses():
    with pytest.raises(UserError, match="the same examples: 4 against 5"):
        paired_t_test(np.ones((2, 4)), np.ones((2, 5)))
    with pytest.raises(UserError, match=r"seeds x examples, not an array of shape \(4,\)"):
        paired_t_test(np.ones(4), np.ones(4))
    with pytest.raises(UserError, match="at least two examples"):
        paired_t_test(np.ones((2, 1)), np.ones((2, 1)))
    with pytest.raises(UserError, match="finite"):
        paired_t_test(np.full((2, 3), np.nan), np.ones((2, 3)))


def all_permutations(first: np.ndarray, second: np.ndarray) -> float:
    """The exact p over all ways to swap, row by row."""
    rows = list(zip(first.reshape(-1, 3), second.reshape(-1, 3), strict=True))

    def difference(swaps):
        pairs = [(b, a) if swap else (a, b) for (a, b), swap in zip(rows, swaps, strict=True)]
        return abs(float(np.diff([f1(*sum(pair[k] for pair in pairs)) for k in (0, 1)])[0]))

    observed = difference([False] * len(rows))
    ways = list(itertools.product([False, True], repeat=len(rows)))
    return sum(difference(swaps) >= observed - 1e-9 for swaps in ways) / len(ways)


@pytest.mark.parametrize("seed", range(3))
def test_permutations_approach_the_exact_p(seed):
    first = entity_counts(seed, seeds=2, sentences=5, skill=0.9)
    second = entity_counts(seed + 50, seeds=2, sentences=5, skill=0.5)
    found = permutation_test(first, second, iterations=20_000)
    assert found.p == pytest.approx(all_permutations(first, second), abs=0.015)
    assert found.n == 10


def test_permutation_test_finds_what_is_there():
    better, worse, same = entity_counts(1, skill=0.8), entity_counts(2, skill=0.6), entity_counts(3, skill=0.6)
    found = permutation_test(better, worse)
    assert found.p == found.smallest_p == pytest.approx(1 / 1001)
    sums = [f1(*counts.sum(axis=(0, 1))) for counts in (better, worse)]
    assert found.difference == pytest.approx(sums[0] - sums[1])
    assert permutation_test(worse, same).p > 0.05
    assert permutation_test(better, better).p == 1.0
    assert permutation_test(better, worse) == permutation_test(better, worse)
    # Any order of the systems gives the same p: the same swaps, the absolute difference.
    assert permutation_test(worse, better).p == found.p


def test_swapping_all_seeds_of_a_sentence_together():
    # Five seeds that agree are one observation five times over; alone, each swap makes the test too sure.
    first = np.repeat(entity_counts(4, seeds=1, sentences=40, skill=0.8), 5, axis=0)
    second = np.repeat(entity_counts(5, seeds=1, sentences=40, skill=0.65), 5, axis=0)
    alone, together = permutation_test(first, second), permutation_test(first, second, together=True)
    assert (alone.n, together.n) == (200, 40)
    assert together.p > alone.p
    one = permutation_test(first[:1], second[:1])
    assert together.p == pytest.approx(one.p, abs=1e-12)


def test_permutation_test_refuses():
    with pytest.raises(UserError, match=r"same shape, not \(5, 200, 3\) and \(5, 199, 3\)"):
        permutation_test(entity_counts(0), entity_counts(0)[:, 1:])
    with pytest.raises(UserError, match="of 0 iterations: at least 1"):
        permutation_test(entity_counts(0), entity_counts(0), iterations=0)


def test_permutation_p_is_even_under_the_null():
    rng = np.random.default_rng(0)
    values = []
    for _ in range(200):
        pool = np.stack([entity_counts(int(rng.integers(1e9)), seeds=1, sentences=30) for _ in range(2)])
        values.append(permutation_test(*pool, iterations=99).p)
    assert 0.01 <= np.mean(np.array(values) <= 0.05) <= 0.10
    assert 0.4 < np.mean(values) < 0.62


def test_smallest_p():
    assert smallest_p_permutations(1000) == pytest.approx(1 / 1001)
    # Five seeds against five, paired: 32 sign patterns, two of them as extreme as can be.
    assert smallest_p_paired_seeds(5) == 0.0625
    assert smallest_p_seeds(5) == pytest.approx(2 / 252)
    assert smallest_p_seeds(5, 1) == pytest.approx(2 / 6)
    assert (smallest_p_paired_seeds(1), smallest_p_seeds(1)) == (1.0, 1.0)


ROWS = {
    "pos": {"id": "a", "tags": [1, 2, 3], "right": 2},
    "ner": {"id": "a", "tags": [0, 1], "entities": [1, 2, 3], "tokens": [4, 5, 6]},
    "parsing": {"id": "a", "heads": [0, 1, 1, 2], "labels": [], "right": [3, 1]},
    "nli": {"id": "a", "label": 1, "right": 1},
    "qa": {"id": "a", "f1": 40.0, "exact": 100.0, "span": [0, 1]},
}


@pytest.mark.parametrize(
    ("task", "metric", "want"),
    [
        ("pos", "accuracy", [2, 3]),
        ("ner", "F1", [1, 2, 3]),
        ("ner", "token_F1", [4, 5, 6]),
        ("parsing", "UAS", [3, 4]),
        ("parsing", "LAS", [1, 4]),
        ("nli", "accuracy", [1, 1]),
        ("qa", "F1", [0.4, 1]),
        ("qa", "EM", [1, 1]),
    ],
)
def test_counts_of_predictions(task, metric, want):
    assert example_counts(get_task(task), [ROWS[task]], metric).tolist() == [want]


def test_counts_refuse():
    with pytest.raises(UserError, match="no counts of 'LAS' for task 'pos'; there are accuracy"):
        example_counts(get_task("pos"), [ROWS["pos"]], "LAS")
    with pytest.raises(UserError, match="no predictions to take nli accuracy from"):
        example_counts(get_task("nli"), [], "accuracy")


def test_seeds_are_aligned_by_id():
    first = [{"id": name, "right": value} for name, value in (("a", 1), ("b", 0), ("c", 1))]
    second = [{"id": name, "right": value} for name, value in (("c", 0), ("a", 1), ("b", 0))]
    counts = stack_seeds(get_task("nli"), [first, second], "accuracy")
    assert example_values(counts).tolist() == [[100.0, 0.0, 100.0], [100.0, 0.0, 0.0]]
    for other in (second[:2], [*second[:2], {"id": "x", "right": 1}], [*second, second[0]]):
        with pytest.raises(UserError, match="run 2 predicts other examples than run 1"):
            stack_seeds(get_task("nli"), [first, other], "accuracy")
