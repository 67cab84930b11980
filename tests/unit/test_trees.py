"""Maximum spanning trees against brute force and against networkx."""

import itertools

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossalign.engine import trees
from crossalign.engine.trees import are_trees, decode_trees


def decode(weights):
    """The heads of one sentence; they are a tree whose root has one child."""
    (heads,) = decode_trees([weights])
    assert len(heads) == 0 or (are_trees(heads[None])[0] and (heads == 0).sum() == 1)
    return heads.tolist()


def weight_of(weights, heads):
    return sum(weights[word, head] for word, head in enumerate(heads))


def reaches_root(heads):
    for word in range(1, len(heads) + 1):
        seen = set()
        while word:
            if word in seen:
                return False
            seen.add(word)
            word = heads[word - 1]
    return True


TREES = {
    count: [
        heads
        for heads in itertools.product(range(count + 1), repeat=count)
        if heads.count(0) == 1 and reaches_root(heads)
    ]
    for count in range(1, 6)
}


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("kind", ["smooth", "ties", "root", "far"])
def test_brute_force(count, kind):
    rng = np.random.default_rng(count)
    for _ in range(60):
        weights = rng.normal(size=(count, count + 1))
        if kind == "ties":
            weights = rng.integers(0, 3, size=(count, count + 1)).astype(float)
        elif kind == "root":
            weights[:, 0] += 5
        elif kind == "far":
            weights *= 1000
        heads = decode(weights)
        assert weight_of(weights, heads) == pytest.approx(max(weight_of(weights, tree) for tree in TREES[count]))


@pytest.mark.parametrize("count", [6, 14, 30, 60])
def test_networkx(count):
    rng = np.random.default_rng(count)
    # Nested cycles: words prefer near neighbours, so that contractions pile up.
    places = np.arange(count)
    near = -np.abs(places[:, None] - places[None, :]) + rng.normal(scale=0.4, size=(count, count))
    for weights in (rng.normal(size=(count, count + 1)), np.concatenate([rng.normal(size=(count, 1)), near], axis=1)):
        graph = networkx.DiGraph()
        # Arcs from the root so dear that one must do.
        graph.add_edges_from(
            (head, word, {"weight": weights[word - 1, head] - (1e5 if head == 0 else 0)})
            for word in range(1, count + 1)
            for head in range(count + 1)
            if head != word
        )
        tree = networkx.maximum_spanning_arborescence(graph)
        best = sum(weights[word - 1, head] for head, word in tree.edges)
        assert weight_of(weights, decode(weights)) == pytest.approx(best)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 30), st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.2, 1.0]))
def test_always_a_tree_with_one_root(count, seed, holes):
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(count, count + 1))
    weights[rng.random(size=weights.shape) < holes] = rng.choice([np.nan, -np.inf, np.inf])
    decode(weights)


def test_odd_input():
    weights = np.array([[-np.inf, 0.0, 1.0, np.nan], [0.5, np.nan, 0.0, -np.inf], [-np.inf, 2.0, np.nan, 0.0]])
    assert decode(weights) == [2, 0, 1]
    assert decode(np.zeros((0, 1))) == [] and decode(np.zeros((1, 2))) == [0] and decode_trees([]) == []
    with pytest.raises(ValueError, match="2 words need 2 x 3 weights"):
        decode(np.zeros((2, 2)))


def test_many_sentences_of_mixed_lengths_are_decoded_as_each_alone(monkeypatch):
    monkeypatch.setattr(trees, "_TOGETHER", 200)
    rng = np.random.default_rng(7)
    sentences = [rng.normal(size=(count, count + 1)) for count in rng.integers(0, 9, 300)]
    sentences[5] = np.full((4, 5), -np.inf)
    sentences[5][1, 3] = np.nan
    kept = [weights.copy() for weights in sentences]
    for weights, heads in zip(sentences, decode_trees(sentences), strict=True):
        assert heads.tolist() == decode(weights)
    assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(sentences, kept, strict=True))
