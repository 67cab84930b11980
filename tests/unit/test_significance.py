"""Tests of differences between systems."""

import itertools
import time

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
    score_intervals,
    smallest_p_paired_seeds,
)
from crossalign.runtime.errors import UserError
from crossalign.tasks import declared, get_task


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


def test_permutation_test_refuses():
    with pytest.raises(UserError, match=r"same shape, not \(5, 200, 3\) and \(5, 199, 3\)"):
        permutation_test(entity_counts(0), entity_counts(0)[:, 1:])
    with pytest.raises(UserError, match="of 0 iterations: at least 1"):
        permutation_test(entity_counts(0), entity_counts(0), iterations=0)


def test_smallest_p():
    assert permutation_test(entity_counts(0), entity_counts(1), iterations=50).smallest_p == 1 / 51
    # Five seeds against five, paired: 32 sign patterns, two of them as extreme as can be.
    assert smallest_p_paired_seeds(5) == 0.0625
    assert smallest_p_paired_seeds(1) == 1.0


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
    counts = example_counts(get_task(task), [ROWS[task]], metric)
    assert counts.tolist() == [want]
    assert example_values(counts[None]).shape == (1, 1)
    assert example_values(counts[None])[0, 0] == score(counts[0])


def test_counts_refuse():
    with pytest.raises(UserError, match="no counts of 'LAS' for task 'pos'; there are accuracy"):
        example_counts(get_task("pos"), [ROWS["pos"]], "LAS")
    with pytest.raises(UserError, match="no predictions to take nli accuracy from"):
        example_counts(get_task("nli"), [], "accuracy")


def plain_interval(counts, iterations, seed):
    """One resample after another; draws come in the blocks of `resamples`."""
    rng, examples, values = np.random.default_rng(seed), len(counts), []
    for _ in range(iterations):
        values.append(float(score(counts[rng.integers(0, examples, examples)].sum(axis=0))))
    return tuple(np.quantile(values, (0.025, 0.975)))


def rows_of(task: str, count: int, seed: int) -> list[dict]:
    """Made-up predictions of a task."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(count):
        words = int(rng.integers(1, 30))
        right = int(rng.integers(0, words + 1))
        made = {
            "pos": {"tags": [0] * words, "right": right},
            "parsing": {"heads": [0] * words, "right": [right, int(rng.integers(0, right + 1))]},
            "ner": {"entities": [right, words, right + 2], "tokens": [right, words + 1, right + 1]},
            "nli": {"right": right % 2},
            "qa": {"f1": float(rng.uniform(0, 100)), "exact": 100 * (right % 2)},
        }
        rows.append(made[task])
    return rows


@pytest.mark.parametrize("task", list(map(get_task, declared())))
def test_every_metric_has_the_interval_of_its_counts(task):
    sets = {"one": rows_of(task.name, 40, 1), "two": rows_of(task.name, 40, 2), "other size": rows_of(task.name, 25, 3)}
    found = score_intervals(task, sets, iterations=200, seed=5)
    assert list(found) == list(sets)
    for name, rows in sets.items():
        assert list(found[name]) == [f"{metric}_{end}" for metric in task.counts for end in ("low", "high")]
        for metric in task.counts:
            counts = example_counts(task, rows, metric)
            low, high = found[name][f"{metric}_low"], found[name][f"{metric}_high"]
            assert (low, high) == pytest.approx(plain_interval(counts, 200, seed=5))
            assert low < float(score(counts.sum(axis=0))) < high


def test_a_wider_confidence_is_a_wider_interval():
    rows = {"a": rows_of("ner", 60, 4)}
    narrow, wide = (score_intervals(get_task("ner"), rows, confidence)["a"] for confidence in (0.5, 0.99))
    assert wide["F1_low"] < narrow["F1_low"] < narrow["F1_high"] < wide["F1_high"]


def test_one_example_and_none():
    assert score_intervals(get_task("nli"), {"a": [ROWS["nli"]], "b": []}) == {
        "a": {"accuracy_low": 100.0, "accuracy_high": 100.0},
        "b": {},
    }


def test_eighteen_sets_of_a_thousand_sentences_take_a_fraction_of_a_second():
    sets = {str(place): rows_of("ner", 1000, place) for place in range(18)}
    start = time.process_time()
    score_intervals(get_task("ner"), sets)
    # Measured: 0.15 s on one core.
    assert time.process_time() - start < 2.0
