"""The controls for the length of sentences, against plain computations."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossalign.analysis.backends import NumpyBackend, TorchBackend
from crossalign.analysis.matrices import Lengths, functions_of, strangers
from crossalign.analysis.similarity import Options, compare, similarity
from crossalign.runtime.errors import UserError

BOTH = Options(("cka", "anc"))


def in_blocks(backend):
    """The same backend reading a few rows at a time."""
    backend.block = 11
    return backend


BACKENDS = {
    "numpy": NumpyBackend,
    "numpy, blocks": lambda: in_blocks(NumpyBackend()),
    "torch": lambda: TorchBackend("cpu"),
    "torch, blocks": lambda: in_blocks(TorchBackend("cpu")),
}


def sentences(seed: int, count: int = 150, neurons: int = 6):
    """Three languages as float32: meaning, noise and length in each; their lengths are not the same."""
    rng = np.random.default_rng(seed)
    lengths = [rng.integers(4, 50, count)]
    lengths += [np.maximum(1, lengths[0] + rng.integers(-3, 4, count)) for _ in range(2)]
    meaning = rng.normal(size=(count, neurons))
    vectors = [
        meaning + rng.normal(size=(count, neurons)) + np.outer(np.log(own), rng.normal(0, 2, neurons)) + 3.0
        for own in lengths
    ]
    return [matrix.astype(np.float32) for matrix in vectors], lengths


def residuals(vectors: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """What least squares leave of the vectors, by the textbook."""
    lengths = lengths.astype(float)
    design = np.stack([lengths**power for power in (0, 1, 2, 3, -1)] + [np.log(lengths)], 1)
    vectors = vectors.astype(float)
    return vectors - design @ np.linalg.lstsq(design, vectors, rcond=None)[0]


@pytest.mark.parametrize("backend", BACKENDS.values(), ids=BACKENDS)
def test_controls_equal_their_definitions(backend):
    vectors, lengths = sentences(1)
    found = compare(vectors[0], vectors[1:], BOTH, backend(), lengths=[Lengths(own) for own in lengths])
    for pair, other, own in zip(found, vectors[1:], lengths[1:], strict=True):
        for name in ("cka", "anc"):
            plain = similarity(name, vectors[0], other)
            assert pair.values[name] == pytest.approx(plain, abs=1e-12)
            stranger = similarity(name, vectors[0], other[strangers(own)])
            assert pair.controlled["strangers"][name] == pytest.approx(plain - stranger, abs=1e-12)
            left = similarity(name, residuals(vectors[0], lengths[0]), residuals(other, own))
            assert pair.controlled["length"][name] == pytest.approx(left, abs=1e-10)
            assert abs(left - plain) > 0.02


def test_only_what_is_asked_for_has_controls():
    vectors, lengths = sentences(2)
    control = [Lengths(own) for own in lengths]
    [pair, _] = compare(vectors[0], vectors[1:], Options(("anc", "anc-signed", "svcca")), lengths=control)
    assert {name: list(values) for name, values in pair.controlled.items()} == {"strangers": ["anc"], "length": ["anc"]}
    assert compare(vectors[0], vectors[1:], Options(("matching",)), lengths=control)[0].controlled == {}
    assert compare(vectors[0], vectors[1:], BOTH)[0].controlled == {}


def test_with_few_lengths_each_loses_its_own_mean():
    """Two lengths: any function of the length is two numbers, and the best are the two means."""
    rng = np.random.default_rng(3)
    lengths = np.repeat([7, 12], 20)
    assert functions_of(lengths).shape == (40, 2)
    x, y = (rng.normal(size=(40, 5)) + np.repeat([[0.0], [3.0]], 20, 0) for _ in range(2))
    means = [np.repeat([matrix[:20].mean(0), matrix[20:].mean(0)], 20, 0) for matrix in (x, y)]
    [pair] = compare(x, [y], BOTH, lengths=[Lengths(lengths)] * 2)
    assert pair.controlled["length"]["cka"] == pytest.approx(similarity("cka", x - means[0], y - means[1]), abs=1e-12)
    # One length: nothing but the mean goes, which both indexes take out anyway.
    [pair] = compare(x, [y], BOTH, lengths=[Lengths(np.full(40, 9))] * 2)
    assert pair.controlled["length"] == pytest.approx(pair.values, abs=1e-12)


@pytest.mark.parametrize("backend", BACKENDS.values(), ids=BACKENDS)
def test_a_neuron_that_tells_the_length_and_nothing_else_counts_as_constant(backend):
    (x, y, _), (first, second, _) = sentences(4)
    x, y = x.astype(float), y.astype(float)
    x[:, 2], y[:, 2] = 5 + np.log(first), 1000 - 2.0 * second
    [pair] = compare(x, [y], BOTH, backend(), lengths=[Lengths(first), Lengths(second)])
    left = np.delete(residuals(x, first), 2, 1), np.delete(residuals(y, second), 2, 1)
    assert pair.controlled["length"]["anc"] == pytest.approx(similarity("anc", *left) * 5 / 6, abs=1e-10)
    only = [np.log(own)[:, None] @ [[1.0, 2.0]] for own in (first, second)]
    [pair] = compare(only[0], [only[1]], BOTH, backend(), lengths=[Lengths(first), Lengths(second)])
    assert np.isnan(list(pair.controlled["length"].values())).all() and pair.values["cka"] > 0.9


def test_length_is_told_apart_from_meaning():
    """Vectors that hold their length only: alike as they are, not under control. Meaning as well: alike both ways."""
    rng = np.random.default_rng(1)
    lengths = rng.integers(5, 40, 500)
    long = 20 * np.outer(np.log(lengths), rng.normal(size=8))
    meaning = rng.normal(size=(500, 8))
    for shared, after in ((0, False), (1, True)):
        x, y = (long + shared * meaning + 0.3 * rng.normal(size=(500, 8)) for _ in range(2))
        [pair] = compare(x, [y], BOTH, lengths=[Lengths(lengths)] * 2)
        assert pair.values["cka"] > 0.9 and pair.controlled["strangers"]["cka"] < 0.2
        assert (pair.controlled["length"]["cka"] > 0.5) == after


def test_hand_computed_strangers():
    assert strangers(np.array([5, 31, 9, 5, 30, 10])).tolist() == [3, 4, 5, 0, 1, 2]
    # 11 goes with the tens and 20 with the twenty-ones, although 11 and 20 are neighbours in the order.
    lengths = np.array([10, 10, 11, 20, 21, 21])
    others = strangers(lengths)
    assert {*others[:3]} == {0, 1, 2} and {*others[3:]} == {3, 4, 5}


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
