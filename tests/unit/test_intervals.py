"""Bootstrap intervals of scores."""

import time

import numpy as np
import pytest
from test_significance import ROWS, entity_counts, f1

from crossalign.analysis.intervals import bootstrap_interval, score_intervals
from crossalign.analysis.significance import example_counts, score
from crossalign.runtime.errors import UserError
from crossalign.tasks import declared, get_task


def test_bootstrap_equals_a_plain_loop():
    counts = entity_counts(6, seeds=3, sentences=50).astype(float)
    rng = np.random.default_rng(7)
    values = []
    for _ in range(300):
        chosen = rng.integers(0, 50, 50)
        values.append(np.mean([f1(*seed[chosen].sum(axis=0)) for seed in counts]))
    want = np.quantile(values, (0.05, 0.95))
    assert bootstrap_interval(counts, 0.9, 300, seed=7) == pytest.approx(tuple(want))


def test_bootstrap_of_a_share_is_the_binomial_interval():
    right = np.zeros((1000, 2))
    right[:, 1] = 1
    right[:700, 0] = 1
    low, high = bootstrap_interval(right, iterations=4000)
    deviation = 100 * (0.7 * 0.3 / 1000) ** 0.5
    assert (low, high) == pytest.approx((70 - 1.96 * deviation, 70 + 1.96 * deviation), abs=0.25)
    assert bootstrap_interval(np.ones((5, 2))) == (100.0, 100.0)


def test_bootstrap_refuses():
    with pytest.raises(UserError, match=r"not an array of shape \(1, 0, 2\)"):
        bootstrap_interval(np.zeros((0, 2)))
    with pytest.raises(UserError, match=r"confidence 1\.5"):
        bootstrap_interval(np.ones((3, 2)), 1.5)


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


@pytest.mark.parametrize("task", map(get_task, declared()))
def test_every_metric_has_the_interval_of_its_counts(task):
    sets = {"one": rows_of(task.name, 40, 1), "two": rows_of(task.name, 40, 2), "other size": rows_of(task.name, 25, 3)}
    found = score_intervals(task, sets, iterations=200, seed=5)
    assert list(found) == list(sets)
    for name, rows in sets.items():
        assert list(found[name]) == [f"{metric}_{end}" for metric in task.counts for end in ("low", "high")]
        for metric in task.counts:
            counts = example_counts(task, rows, metric)
            low, high = found[name][f"{metric}_low"], found[name][f"{metric}_high"]
            assert (low, high) == pytest.approx(bootstrap_interval(counts, iterations=200, seed=5))
            assert low < float(score(counts.sum(axis=0))) < high


def test_sets_do_not_touch_each_other():
    sets = {name: rows_of("parsing", 30, seed) for seed, name in enumerate("abc")}
    together = score_intervals(get_task("parsing"), sets)
    assert together == {name: score_intervals(get_task("parsing"), {name: rows})[name] for name, rows in sets.items()}
    assert together != score_intervals(get_task("parsing"), sets, seed=2)


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
