"""Stores, orders, shapes and the vectors that batches travel in."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossalign.engine.batches import Store, Stream, by_length
from crossalign.runtime.errors import UserError

FIELDS = {
    "labels": SimpleNamespace(pad=-100, shape="sequence"),
    "word_starts": SimpleNamespace(pad=0, shape="words"),
    "heads": SimpleNamespace(pad=-100, shape="words"),
    "kind": SimpleNamespace(pad=-100, shape="scalar"),
}


def example(number, length, words):
    return {
        "input_ids": [100 * number + i for i in range(length)],
        "token_type_ids": [int(i > 1) for i in range(length)],
        "labels": [number + i for i in range(length)],
        "word_starts": list(range(words)),
        "heads": [number] * words,
        "kind": number,
    }


def store_of(sizes):
    return Store([example(n, length, min(length, 1 + n % 4)) for n, length in enumerate(sizes)], FIELDS, 2, 64)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=12), st.booleans(), st.data())
def test_a_batch_holds_its_examples(sizes, static, data):
    store = store_of(sizes)
    members = np.array(data.draw(st.lists(st.integers(0, len(sizes) - 1), min_size=1, max_size=6)))
    batch = store.assemble(members, 7 if static else None)
    again = batch.over(batch.vector())
    assert again.shape == batch.shape
    views, rows = again.tensors, 7 if static else len(members)
    position = 0
    for row, number in enumerate(members):
        length, words = sizes[number], min(sizes[number], 1 + number % 4)
        expected = example(number, length, words)
        span = slice(*views["cu_seqlens"][row : row + 2])
        assert span == slice(position, position + length)
        assert views["ids"][span].tolist() == expected["input_ids"]
        assert views["positions"][span].tolist() == list(range(2, 2 + length))
        assert views["types"][span].tolist() == expected["token_type_ids"]
        assert views["labels"][row].tolist() == expected["labels"] + [-100] * (batch.length - length)
        assert views["heads"][row].tolist() == expected["heads"] + [-100] * (batch.words - words)
        assert views["word_counts"][row] == words
        assert views["kind"][row] == number
        position += length
    missing = [position] * (rows - len(members)) + [len(views["ids"])] * static
    assert views["cu_seqlens"][len(members) + 1 :].tolist() == missing
    assert (views["kind"][len(members) :] == -100).all()
    assert (views["labels"][len(members) :] == -100).all()


@given(st.integers(1, 20000), st.integers(1, 400))
def test_static_shapes_are_few_and_tight(tokens, longest):
    lengths = np.array([min(longest, tokens), max(1, tokens - longest)])
    size, length, filled = store_of([1]).static_shape(lengths, 2)
    exact = lengths.sum()
    assert exact <= size <= max(exact * 1.125, exact + 63)
    assert lengths.max() <= length < lengths.max() + 64 and filled
    # The bound that the attention kernel gets for the filling, see Layout.
    assert size - exact <= max(64, size // 8 + 1)


def test_targets_count_what_the_loss_counts():
    store = store_of([3, 5])
    # labels + heads + kind
    assert store.targets.tolist() == [3 + 1 + 1, 5 + 2 + 1]


def test_an_epoch_has_every_example_once_and_depends_on_seed_and_number_only():
    store = store_of(list(range(1, 40)))
    stream = Stream(store, 6, seed=3)
    batches = stream.epoch(2)
    assert len(batches) == len(stream) == 7
    assert sorted(np.concatenate(batches)) == list(range(39))
    again = Stream(store, 6, seed=3).epoch(2)
    assert all(np.array_equal(a, b) for a, b in zip(batches, again, strict=True))
    for other in (Stream(store, 6, seed=4).epoch(2), stream.epoch(1)):
        assert not all(np.array_equal(a, b) for a, b in zip(batches, other, strict=True))


def test_steps_run_through_epoch_after_epoch():
    stream = Stream(store_of([2] * 10), 4, 1)
    epochs = [batch for epoch in range(3) for batch in stream.epoch(epoch)]
    for step in (0, 1, 5, 4, 8):
        assert np.array_equal(stream.at(step), epochs[step])


def test_by_length_keeps_the_budget_and_everything():
    store = store_of([5, 40, 7, 7, 12, 1, 30])
    batches = list(by_length(store.lengths, 42))
    assert sorted(np.concatenate(batches)) == list(range(7))
    assert all(len(b) == 1 or len(b) * store.lengths[b].max() <= 42 for b in batches)


def test_examples_that_cannot_be_used():
    with pytest.raises(UserError, match="example 1 has 65 tokens but the model has positions for 64"):
        store_of([3, 65])
    with pytest.raises(UserError, match="example 0 has no tokens"):
        store_of([0, 3])
    with pytest.raises(UserError, match="no examples to train on"):
        Stream(store_of([]), 4, 1)
