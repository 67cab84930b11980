"""Metrics, tests of differences, correlations and distances, against other libraries and values worked out by hand."""

import itertools
import math
import warnings

import numpy as np
import pytest
import seqeval.metrics
from hypothesis import given, settings
from hypothesis import strategies as st
from seqeval.metrics.sequence_labeling import get_entities
from sklearn.metrics import roc_auc_score

from crossalign.analysis import distances
from crossalign.analysis.correlations import bootstrap_spearman, spearman, spearman_interval
from crossalign.analysis.distances import common_bins, measure, read_panel, write_panel
from crossalign.analysis.metrics import (
    EntityCounts,
    answer_scores,
    attachment,
    f1_scores,
    normalise_answer,
    token_counts,
)
from crossalign.analysis.significance import (
    example_counts,
    example_values,
    paired_t_test,
    permutation_test,
    resamples,
    score,
    score_intervals,
    smallest_p_paired_seeds,
)
from crossalign.runtime.errors import UserError
from crossalign.tasks import get_task
from crossalign.tasks.declared import TASKS

# I without B, I after another type, B after B: everything that IOB2 forbids or allows.
TAGS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC", "B-ORG", "I-ORG"]
sentence = st.lists(st.sampled_from(TAGS), min_size=1, max_size=12)


@st.composite
def corpora(draw):
    gold = draw(st.lists(sentence, min_size=1, max_size=8))
    guess = [draw(st.lists(st.sampled_from(TAGS), min_size=len(tags), max_size=len(tags))) for tags in gold]
    return gold, guess


@settings(max_examples=150, deadline=None)
@given(corpora())
def test_entity_scores_are_seqevals(corpus):
    gold, guess = corpus
    counts = EntityCounts(gold, guess)
    scores = counts.scores()
    spans = [(set(get_entities(a)), set(get_entities(b))) for a, b in zip(gold, guess, strict=True)]
    assert counts.by_sentence.tolist() == [[len(a & b), len(b), len(a)] for a, b in spans]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in ("precision", "recall", "F1"):
            theirs = getattr(seqeval.metrics, f"{name.lower()}_score")(gold, guess)
            assert scores[name] == pytest.approx(100 * theirs, abs=1e-9)
        report = seqeval.metrics.classification_report(gold, guess, output_dict=True)
    types = {key: value["f1-score"] for key, value in report.items() if not key.endswith(" avg")}
    assert {key: scores[f"F1_{key}"] for key in types} == {k: pytest.approx(100 * v) for k, v in types.items()}


def test_entities_that_are_none_or_wrong():
    assert EntityCounts([["O", "O"]], [["O", "O"]]).scores() == {"precision": 0.0, "recall": 0.0, "F1": 0.0}
    assert EntityCounts([], []).by_sentence.shape == (0, 3)
    with pytest.raises(ValueError, match="'PER' is no IOB2 tag"):
        EntityCounts([["PER"]], [["O"]])
    with pytest.raises(ValueError, match="differ in number"):
        EntityCounts([["O", "O"]], [["O"]])


def test_token_f1_by_hand():
    gold = [["B-PER", "I-PER", "O", "B-LOC"], ["O"], ["B-LOC"]]
    guess = [["I-PER", "B-PER", "B-LOC", "O"], ["O"], ["B-ORG"]]
    # B and I do not matter: both PER tokens are right; one LOC too many, one missed, one of the wrong class.
    assert token_counts(gold, guess).tolist() == [[2, 3, 3], [0, 0, 0], [0, 1, 1]]
    assert f1_scores(2, 4, 4) == {"precision": 50.0, "recall": 50.0, "F1": 50.0}


def test_attachment_by_hand():
    # Of five words (punctuation is one of them) four have the right head, three also the right relation.
    scores = attachment(
        np.array([2, 0, 2, 3, 2]), np.array([1, 0, 3, 4, 5]), np.array([2, 0, 2, 2, 2]), np.array([1, 0, 2, 4, 5])
    )
    assert scores == {"UAS": 80.0, "LAS": 60.0}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The  Cat, a dog and an owl!", "cat dog and owl"),
        ("U.S.A.", "usa"),
        ("  Theatre (an)  ", "theatre"),
        ("a-b", "ab"),
        ("the-end", "theend"),
        ("10%", "10"),
        ("naïve «the» école", "naïve « » école"),
        ("在1990年，", "在1990年，"),
        ("the", ""),
    ],
)
def test_normalisation_by_hand(text, expected):
    # Punctuation goes before articles do: "the-end" becomes one word and keeps its "the"; only ASCII is punctuation.
    assert normalise_answer(text) == expected


@pytest.mark.parametrize(
    ("guess", "answers", "f1", "exact"),
    [
        ("the Eiffel Tower", ["Eiffel tower."], 100.0, 100.0),
        ("tower", ["Eiffel Tower"], 200 / 3, 0.0),
        ("Eiffel Tower in Paris", ["Eiffel Tower"], 200 / 3, 0.0),
        ("x", ["y", "x y"], 200 / 3, 0.0),
        ("b b c", ["b c c"], 200 / 3, 0.0),
        ("Rome", ["Paris"], 0.0, 0.0),
        # The script of version 1.1 gives no overlap to answers of which nothing remains, but they are equal.
        ("the", ["a"], 0.0, 100.0),
        ("", ["a"], 0.0, 100.0),
        ("", ["word"], 0.0, 0.0),
        # Best F1 and best match may come from different answers.
        ("one two", ["one two three", "two one"], 100.0, 0.0),
    ],
)
def test_answers_by_hand(guess, answers, f1, exact):
    assert answer_scores(guess, answers) == (pytest.approx(f1), exact)


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
    assert score(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist() == [75.0, 0.0]


def test_t_test_by_hand():
    # Differences 1 to 5 once the seeds are averaged: t = 3 / sqrt(2.5 / 5) with four degrees of freedom.
    first, second = np.array([[0.0, 2, 3, 4, 4], [2, 2, 3, 4, 6]]), np.zeros((3, 5))
    found = paired_t_test(first, second)
    assert (found.difference, found.n) == (3.0, 5) and found.p == pytest.approx(0.0132, abs=5e-5)
    assert paired_t_test(second, first).p == pytest.approx(found.p)


def test_t_test_without_spread():
    values = np.random.default_rng(0).uniform(0, 100, (5, 30))
    assert (paired_t_test(values, values[::-1]).difference, paired_t_test(values, values[::-1]).p) == (0.0, 1.0)
    assert paired_t_test(values + 0.5, values).p == 0.0
    assert paired_t_test(np.zeros((1, 5)), np.zeros((2, 5))).p == 1.0


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
    assert permutation_test(better, worse, iterations=50).smallest_p == 1 / 51
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


@pytest.mark.parametrize("task", list(map(get_task, TASKS)))
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


def test_one_example_and_none():
    assert score_intervals(get_task("nli"), {"a": [ROWS["nli"]], "b": []}) == {
        "a": {"accuracy_low": 100.0, "accuracy_high": 100.0},
        "b": {},
    }


def test_spearman_by_hand():
    # Squared differences of the ranks add up to 4; t = 0.8 sqrt(3 / 0.36) with three degrees of freedom.
    found = spearman([1, 2, 3, 4, 5], [20, 10, 40, 30, 50])
    assert (found.rho, found.p, found.n) == (pytest.approx(0.8), pytest.approx(0.1041, abs=5e-5), 5)
    assert spearman([1, 2, 3], [2, 4, 9]).p == 0.0
    for few in (([1, 2], [1, 2]), ([1, 1, 1], [1, 2, 3])):
        assert math.isnan(spearman(*few).rho) and math.isnan(spearman(*few).p)


def plain_bootstrap(first, others, iterations, seed):
    """One resample after another, each ranked on its own."""
    kept = []
    for weights in resamples(len(first), 100 * iterations, seed):
        for row in weights.astype(int):
            places = np.repeat(np.arange(len(first)), row)
            rhos = [spearman(np.take(first, places), np.take(other, places)).rho for other in others]
            if len(set(places)) >= 3 and not np.isnan(rhos).any():
                kept.append(rhos)
            if len(kept) == iterations:
                return np.transpose(kept)
    return None


@pytest.mark.parametrize("points", [3, 4, 16])
def test_the_bootstrap_equals_a_plain_loop(points):
    rng = np.random.default_rng(points)
    first = rng.integers(0, 8, points) + np.arange(points)  # some ties
    others = rng.integers(0, 2 * points, (4, points)) + 0.25 * first
    found = bootstrap_spearman(first, others, 200, seed=5)
    assert found.shape == (4, 200) and np.abs(found).max() <= 1.0
    assert found == pytest.approx(plain_bootstrap(first, others, 200, 5), abs=1e-12)


def test_no_bootstrap_where_there_is_no_correlation():
    assert bootstrap_spearman([1, 2], [[1, 2]]) is None
    assert bootstrap_spearman([1, 1, 1, 1], [[1, 2, 3, 4]]) is None
    assert bootstrap_spearman([1, 2, 3, 4], [[1, 2, 3, 4], [5, 5, 5, 5]]) is None
    assert spearman_interval([1, 2], [1, 2]) is None
    # Each layer needs another language: hardly any resample has all of them.
    assert bootstrap_spearman(np.arange(16), np.eye(16), iterations=3) is None


def test_the_interval_of_a_correlation():
    first, second = [1, 2, 3, 4, 5, 6, 7, 8], [1, 3, 2, 5, 4, 7, 6, 8]
    low, high = spearman_interval(first, second)
    rhos = np.sort(bootstrap_spearman(first, [second])[0])
    assert rhos[24] <= low <= rhos[25] and rhos[974] <= high <= rhos[975]
    assert low < spearman(first, second).rho < high <= 1.0
    assert spearman_interval(first, first) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        (paired_t_test, (np.ones((2, 4)), np.ones((2, 5))), "the same examples: 4 against 5"),
        (paired_t_test, (np.ones(4), np.ones(4)), r"seeds x examples, not an array of shape \(4,\)"),
        (paired_t_test, (np.ones((2, 1)), np.ones((2, 1))), "at least two examples"),
        (paired_t_test, (np.full((2, 3), np.nan), np.ones((2, 3))), "finite"),
        (
            permutation_test,
            (entity_counts(0), entity_counts(0)[:, 1:]),
            r"same shape, not \(5, 200, 3\) and \(5, 199",
        ),
        (permutation_test, (entity_counts(0), entity_counts(0), 0), "of 0 iterations: at least 1"),
        (
            example_counts,
            (get_task("pos"), [ROWS["pos"]], "LAS"),
            "no counts of 'LAS' for task 'pos'; there are acc",
        ),
        (example_counts, (get_task("nli"), [], "accuracy"), "no predictions to take nli accuracy from"),
        (spearman, ([1, 2], [1, 2, 3]), "rank correlation of 2 with 3 values"),
        (spearman, ([1, 2, math.nan], [1, 2, 3]), "not all finite"),
        (common_bins, ([],), "common bins of no histogram"),
    ],
)
def test_what_cannot_be_compared_is_refused(function, arguments, message):
    with pytest.raises(UserError, match=message):
        function(*arguments)


def pairs(seed: int, count: int = 500, neurons: int = 120, spread: float = 1.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (spread * rng.standard_normal((count, 2, neurons))).astype(np.float32)


def test_histogram_and_summary_against_numpy_and_scikit_learn(monkeypatch):
    monkeypatch.setattr(distances, "ROWS", 64)
    related, unrelated = pairs(0, spread=0.9), pairs(1, count=300)
    panel = measure(related, unrelated)
    everything, shares = [], []
    for kind, array in (("related", related), ("unrelated", unrelated)):
        squares = (array[:, 0].astype(float) - array[:, 1]) ** 2
        lengths = np.sqrt(squares.sum(axis=1))
        everything.extend(lengths)
        neurons = np.sort(squares.sum(axis=0))[::-1] / squares.sum()
        shares.append((neurons[:10].sum(), neurons[:100].sum()))
        edges = panel.width * np.arange(len(panel.counts[kind]) + 1)
        assert panel.counts[kind].tolist() == np.histogram(lengths, edges)[0].tolist()
        assert panel.counts[kind].sum() == len(array)
    assert 1024 <= len(panel.counts["unrelated"]) <= 2049
    assert np.log2(panel.width) == int(np.log2(panel.width))
    assert panel.summary["auc"] == pytest.approx(roc_auc_score([0] * 500 + [1] * 300, everything), abs=1e-6)
    assert (panel.summary["top10"], panel.summary["top100"]) == pytest.approx(tuple(np.mean(shares, axis=0)))
    assert panel.summary["pairs"] == 500


def test_common_bins_add_up():
    panels = [measure(pairs(k, spread=s), pairs(k + 9, spread=s)) for k, s in enumerate((0.01, 1.0, 37.0))]
    edges, merged = common_bins(panels, bins=100)
    assert len(edges) == 101 and edges[0] == 0.0
    for k, (panel, spread) in enumerate(zip(merged, (0.01, 1.0, 37.0), strict=True)):
        array = pairs(k, spread=spread).astype(float)
        lengths = np.linalg.norm(array[:, 0] - array[:, 1], axis=1)
        assert panel["related"].tolist() == np.histogram(lengths, edges)[0].tolist()
        assert lengths.max() < edges[-1]
    # The range is not much wider than the data.
    assert edges[-1] < 1.2 * max(len(p.counts["related"]) * p.width for p in panels)


def test_written_and_read_again(tmp_path):
    panel = measure(pairs(4, spread=0.3), pairs(5))
    write_panel(panel, tmp_path / "fr.csv", tmp_path / "fr.json")
    again = read_panel(tmp_path / "fr.csv", tmp_path / "fr.json")
    assert again.width == panel.width
    for kind, counts in panel.counts.items():
        size = max(len(counts), len(again.counts[kind]))
        assert np.array_equal(*(np.pad(c, (0, size - len(c))) for c in (counts, again.counts[kind])))
    assert again.summary == pytest.approx(panel.summary, abs=1e-6)
    assert (tmp_path / "fr.csv").read_text().startswith("kind,left,right,count\nrelated,")


def test_reading_names_the_file(tmp_path):
    with pytest.raises(UserError, match="fr.csv: cannot read: No such file"):
        read_panel(tmp_path / "fr.csv", tmp_path / "fr.json")
    (tmp_path / "fr.json").write_text("{}")
    (tmp_path / "fr.csv").write_text("kind,left,right,count\n")
    with pytest.raises(UserError, match="fr.csv: the histogram is empty"):
        read_panel(tmp_path / "fr.csv", tmp_path / "fr.json")
    (tmp_path / "fr.csv").write_text("kind,left,right,count\nrelated,0.5,x,3\n")
    with pytest.raises(UserError, match="no histogram of distances"):
        read_panel(tmp_path / "fr.csv", tmp_path / "fr.json")


def test_equal_vectors_and_bad_input():
    same = np.repeat(pairs(6)[:, :1], 2, axis=1)
    panel = measure(same, same)
    assert panel.counts["related"].tolist() == [500]
    assert panel.summary == {"auc": 0.5, "top10": 0.0, "top100": 0.0, "pairs": 500}
    good = pairs(7)
    bad = good.copy()
    bad[41, 1, 3] = np.nan
    with pytest.raises(UserError, match="unrelated: pair 42 has a number that is not finite"):
        measure(good, bad)
    with pytest.raises(UserError, match="unrelated: 119 neurons, but related has 120"):
        measure(good, good[..., 1:])
    for wrong in (good[:, 0], good[:, :1], good[:0], good.astype(int)):
        with pytest.raises(UserError, match="related: pairs x 2 x neurons of floating-point numbers expected, found"):
            measure(wrong, good)
