"""Controls for the length of sentences and the bootstrap over sentences, against plain computations."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossalign.analysis import bootstrap
from crossalign.analysis.indexes import ALL
from crossalign.analysis.matrices import Lengths, strangers
from crossalign.analysis.similarity import Options, compare, similarity
from crossalign.runtime.errors import UserError

BOTH = Options(("cka", "anc"))


def sentences(seed: int, count: int = 150, neurons: int = 6, noise: float = 1.0):
    """Three languages as float32: meaning, noise and length in each; their lengths are not the same."""
    rng = np.random.default_rng(seed)
    lengths = [rng.integers(4, 50, count)]
    lengths += [np.maximum(1, lengths[0] + rng.integers(-3, 4, count)) for _ in range(2)]
    meaning = rng.normal(size=(count, neurons)) * np.linspace(2, 0.5, neurons)
    slope = np.linspace(-0.8, 0.8, neurons)
    vectors = [
        meaning + noise * rng.normal(size=(count, neurons)) + np.outer(np.log(own), slope) + 3.0 for own in lengths
    ]
    return [matrix.astype(np.float32) for matrix in vectors], lengths


def residuals(vectors: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """What least squares leave of the vectors, by the textbook."""
    lengths = lengths.astype(float)
    design = np.stack([lengths**power for power in (0, 1, 2, 3, -1)] + [np.log(lengths)], 1)
    vectors = vectors.astype(float)
    return vectors - design @ np.linalg.lstsq(design, vectors, rcond=None)[0]


def test_controls_equal_their_definitions():
    vectors, lengths = sentences(1)
    found = compare(vectors[0], vectors[1:], BOTH, lengths=[Lengths(own) for own in lengths])
    for pair, other, own in zip(found, vectors[1:], lengths[1:], strict=True):
        for name in ("cka", "anc"):
            plain = similarity(name, vectors[0], other)
            assert pair.values[name] == pytest.approx(plain, abs=1e-12)
            stranger = similarity(name, vectors[0], other[strangers(own)])
            assert pair.controlled["strangers"][name] == pytest.approx(plain - stranger, abs=1e-12)
            left = similarity(name, residuals(vectors[0], lengths[0]), residuals(other, own))
            assert pair.controlled["length"][name] == pytest.approx(left, abs=1e-10)
            assert abs(left - plain) > 0.02


def test_a_neuron_that_tells_the_length_and_nothing_else_counts_as_constant():
    (x, y, _), (first, second, _) = sentences(4)
    x, y = x.astype(float), y.astype(float)
    x[:, 2], y[:, 2] = 5 + np.log(first), 1000 - 2.0 * second
    [pair] = compare(x, [y], BOTH, lengths=[Lengths(first), Lengths(second)])
    left = np.delete(residuals(x, first), 2, 1), np.delete(residuals(y, second), 2, 1)
    assert pair.controlled["length"]["anc"] == pytest.approx(similarity("anc", *left) * 5 / 6, abs=1e-10)
    only = [np.log(own)[:, None] @ [[1.0, 2.0]] for own in (first, second)]
    [pair] = compare(only[0], [only[1]], BOTH, lengths=[Lengths(first), Lengths(second)])
    assert np.isnan(list(pair.controlled["length"].values())).all() and pair.values["cka"] > 0.9


@given(st.lists(st.integers(1, 12), min_size=2, max_size=6))
@settings(max_examples=60, deadline=None)
def test_no_other_strangers_are_nearer(lengths):
    """Of all ways to give everybody somebody else, none has less difference in length."""
    lengths = np.array(lengths)
    others = strangers(lengths)
    places = np.arange(len(lengths))
    assert sorted(others) == places.tolist() and not (others == places).any()
    ways = (np.array(way) for way in permutations(places))
    least = min(np.abs(lengths[way] - lengths).sum() for way in ways if not (way == places).any())
    assert np.abs(lengths[others] - lengths).sum() == least


def test_strangers_are_drawn_and_stay():
    lengths = np.random.default_rng(0).integers(5, 25, 300)
    others = strangers(lengths)
    assert np.array_equal(others, strangers(lengths)) and not np.array_equal(others, strangers(lengths, seed=2))
    # Twenty lengths of about fifteen sentences each: hardly anyone has to look elsewhere, and nobody takes a neighbour
    # in the file by habit.
    assert (lengths[others] == lengths).mean() > 0.9
    assert (np.abs(others - np.arange(300)) == 1).mean() < 0.05


def test_one_sentence_has_no_strangers():
    with pytest.raises(UserError, match="at least two sentences"):
        strangers(np.array([4]))


ASKED = Options(tuple(index.name for index in ALL if index.resampled), resample=True)


def weighted_cka(x: np.ndarray, y: np.ndarray, times: np.ndarray, dealt: int = 50) -> float:
    """CKA of rows that come so many times each, as they are; parts drawn more than once do not meet their copies."""
    same = np.arange(len(x)) % dealt
    same = same[:, None] == same[None, :]
    pairs = np.where(same, times[:, None], np.outer(times, times))
    xy, xx, yy = (((a @ a.T) * (b @ b.T) * pairs).sum() for a, b in ((x, y), (x, x), (y, y)))
    return xy / np.sqrt(xx * yy)


def weighted_anc(x: np.ndarray, y: np.ndarray, times: np.ndarray) -> float:
    x, y = (np.repeat(matrix, times, axis=0) for matrix in (x, y))
    return np.abs((x * y).sum(0) / np.sqrt((x * x).sum(0) * (y * y).sum(0))).mean()


@pytest.mark.parametrize("room", [1 << 28, 50 * 6 * 2])
def test_draws_are_the_indexes_of_the_resampled_rows(room, monkeypatch):
    """Where the sentences do not fill the last round; with all neurons at a time, and two."""
    monkeypatch.setattr(bootstrap, "ROOM", room)
    count = 183
    (x, y, _), lengths = sentences(2, count)
    x, y = x.astype(float), y.astype(float)
    found = compare(x, [y], ASKED, lengths=[Lengths(own) for own in lengths[:2]])[0]
    weights = bootstrap.resamples(count).weights
    assert weights.shape == (200, 50) and (weights.sum(1) == 50).all()
    other = strangers(lengths[1])
    left, right = x - x.mean(0), y - y.mean(0)
    bare = residuals(x, lengths[0]), residuals(y, lengths[1])
    hits = [(x[i] @ y.T / np.linalg.norm(y, axis=1)).argmax() == i for i in range(count)]
    for place in (0, 7, 199):
        times = np.resize(weights[place], count).astype(int)
        for name, index in (("cka", weighted_cka), ("anc", weighted_anc)):
            plain = index(left, right, times)
            assert found.draws["none", name][place] == pytest.approx(plain, abs=1e-10)
            stranger = index(left, right[other], times)
            assert found.draws["strangers", name][place] == pytest.approx(plain - stranger, abs=1e-10)
            assert found.draws["length", name][place] == pytest.approx(index(*bare, times), abs=1e-10)
        assert found.draws["none", "matching"][place] == pytest.approx(np.repeat(hits, times).mean(), abs=1e-12)


def test_the_same_number_of_parts_is_resampled_alike():
    weights = [bootstrap.resamples(count).weights for count in (50, 1000, 10_000)]
    assert all(np.array_equal(weights[0], other) for other in weights[1:])
    # Ten parts of one sentence each; of nine sentences nothing can be said.
    assert bootstrap.resamples(10).weights.shape == (200, 10)
    assert bootstrap.resamples(9) is None
    (x, y, _), _ = sentences(6, 9)
    assert compare(x, [y], ASKED)[0].draws == {}


def test_constant_neurons_count_as_zero_in_resamples():
    (x, y, _), _ = sentences(7, 120)
    wide = [np.insert(matrix, 2, 0.1, axis=1) for matrix in (x, y)]
    found, plain = (
        compare(a, [b], Options(("anc",), resample=True))[0].draws["none", "anc"] for a, b in (wide, (x, y))
    )
    assert found == pytest.approx(plain * 6 / 7, abs=1e-9)
    # One sentence alone moves this neuron: constant in resamples without it.
    rare = [matrix.copy() for matrix in (x, y)]
    for matrix in rare:
        matrix[:, 3] = 0.0
        matrix[11, 3] = 5.0
    assert np.isfinite(compare(rare[0], [rare[1]], ASKED)[0].draws["none", "anc"]).all()


def test_what_has_no_value_has_no_draws():
    (x, y, _), _ = sentences(8, 60)
    flat = np.ones_like(y)
    good, bad = compare(x, [y, flat], ASKED)
    assert ("none", "cka") in good.draws and similarity("matching", x, y) > 0
    assert ("none", "cka") not in bad.draws and ("none", "anc") not in bad.draws
