"""The control for sentence length finds what length alone explains, and leaves the rest."""

import importlib.util

import numpy as np
import pytest

from crossalign.analysis.similarity import cka


@pytest.fixture(scope="module")
def program(root):
    spec = importlib.util.spec_from_file_location("sentence_length", root / "benchmarks/sentence_length.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_strangers_are_as_long_and_never_the_same_sentence(program):
    rng = np.random.default_rng(0)
    lengths = np.repeat(np.arange(5.0, 25.0), 10)
    rng.shuffle(lengths)
    others = program.strangers(lengths, rng)
    assert sorted(others) == list(range(200)) and not np.any(others == np.arange(200))
    assert np.median(np.abs(lengths[others] - lengths)) == 0


def test_length_is_told_apart_from_meaning(program):
    """Vectors that hold their length only: alike as they are and with strangers. Meaning as well: alike when apart."""
    rng = np.random.default_rng(1)
    lengths = rng.integers(5, 40, 500).astype(float)
    long = 20 * np.outer(np.log(lengths), rng.normal(size=8))
    meaning = rng.normal(size=(500, 8))
    other = program.strangers(lengths, rng)
    for shared, after in ((0, False), (1, True)):
        first, second = (long + shared * meaning + 0.3 * rng.normal(size=(500, 8)) for _ in range(2))
        assert cka(first, second) > 0.9 and cka(first, second[other]) > 0.8
        assert (cka(program.apart(first, lengths), program.apart(second, lengths)) > 0.5) == after
