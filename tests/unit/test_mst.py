"""Maximum spanning trees against brute force and against networkx."""

import itertools

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossalign.engine import mst
from crossalign.engine.mst import decode_tree, decode_trees, is_tree


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


def single_root_trees(count):
    return [
        heads
        for heads in itertools.product(range(count + 1), repeat=count)
        if heads.count(0) == 1 and reaches_root(heads)
    ]


TREES = {count: single_root_trees(count) for count in range(1, 6)}


def test_number_of_trees_is_cayleys():
    # Rooted labelled trees on n nodes: n to the power n - 1.
    assert [len(TREES[count]) for count in range(1, 6)] == [1, 2, 9, 64, 625]


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
        heads = decode_tree(weights).tolist()
        assert tuple(heads) in TREES[count]
        assert weight_of(weights, heads) == pytest.approx(max(weight_of(weights, tree) for tree in TREES[count]))


def networkx_best(weights):
    """The single-root optimum by trying every child of the root."""
    count = len(weights)
    best = -np.inf
    for child in range(1, count + 1):
        graph = networkx.DiGraph()
        graph.add_edge(0, child, weight=weights[child - 1, 0])
        graph.add_edges_from(
            (head, word, {"weight": weights[word - 1, head]})
            for word in range(1, count + 1)
            for head in range(1, count + 1)
            if head != word
        )
        tree = networkx.maximum_spanning_arborescence(graph)
        best = max(best, sum(weights[word - 1, head] for head, word in tree.edges))
    return best


@pytest.mark.parametrize("count", [6, 9, 14])
def test_networkx(count):
    rng = np.random.default_rng(count)
    for _ in range(3):
        weights = rng.normal(size=(count, count + 1))
        heads = decode_tree(weights)
        assert is_tree(heads) and (heads == 0).sum() == 1
        assert weight_of(weights, heads) == pytest.approx(networkx_best(weights))


@pytest.mark.parametrize("count", [30, 60])
def test_long_sentences_against_networkx_with_lowered_root(count):
    rng = np.random.default_rng(count)
    # Nested cycles: words prefer near neighbours, so that contractions pile up.
    places = np.arange(count)
    near = -np.abs(places[:, None] - places[None, :]) + rng.normal(scale=0.4, size=(count, count))
    weights = np.concatenate([rng.normal(size=(count, 1)), near], axis=1)
    graph = networkx.DiGraph()
    graph.add_edges_from(
        (head, word, {"weight": weights[word - 1, head] - (1e5 if head == 0 else 0)})
        for word in range(1, count + 1)
        for head in range(count + 1)
        if head != word
    )
    tree = networkx.maximum_spanning_arborescence(graph)
    heads = decode_tree(weights)
    assert is_tree(heads) and (heads == 0).sum() == 1
    assert weight_of(weights, heads) == pytest.approx(sum(weights[word - 1, head] for head, word in tree.edges))


def test_every_head_moves_by_a_constant_and_nothing_changes():
    rng = np.random.default_rng(3)
    weights = rng.normal(size=(20, 21))
    shifted = weights + rng.normal(size=(20, 1)) * 50
    assert decode_tree(weights).tolist() == decode_tree(shifted).tolist()


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 30), st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.2, 1.0]))
def test_always_a_tree_with_one_root(count, seed, holes):
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(count, count + 1))
    weights[rng.random(size=weights.shape) < holes] = rng.choice([np.nan, -np.inf, np.inf])
    heads = decode_tree(weights)
    assert is_tree(heads) and (heads == 0).sum() == 1


def test_not_finite_is_avoided_where_a_tree_without_exists():
    weights = np.array([[-np.inf, 0.0, 1.0, np.nan], [0.5, np.nan, 0.0, -np.inf], [-np.inf, 2.0, np.nan, 0.0]])
    assert decode_tree(weights).tolist() == [2, 0, 1]


def test_is_tree():
    assert is_tree(np.array([0, 1, 2, 3, 4, 5]))
    assert not is_tree(np.array([2, 1, 0]))
    assert not is_tree(np.array([0, 2]))


def test_no_words_and_one_word():
    assert decode_tree(np.zeros((0, 1))).tolist() == []
    assert decode_tree(np.zeros((1, 2))).tolist() == [0]


def test_wrong_shape():
    with pytest.raises(ValueError, match="2 words need 2 x 3 weights"):
        decode_tree(np.zeros((2, 2)))


def test_many_sentences_of_mixed_lengths_are_decoded_as_each_alone(monkeypatch):
    monkeypatch.setattr(mst, "_TOGETHER", 200)
    rng = np.random.default_rng(7)
    sentences = [rng.normal(size=(count, count + 1)) for count in rng.integers(0, 9, 300)]
    sentences[5] = np.full((4, 5), -np.inf)
    sentences[5][1, 3] = np.nan
    kept = [weights.copy() for weights in sentences]
    for weights, heads in zip(sentences, decode_trees(sentences), strict=True):
        assert heads.tolist() == decode_tree(weights).tolist()
    assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(sentences, kept, strict=True))
    assert decode_trees([]) == []
