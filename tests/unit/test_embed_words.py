"""Vectors of word pairs: which pairs, and what their vectors are."""

from itertools import chain

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.family_models import write_family

from crossalign.embedding.model import load_model
from crossalign.embedding.words import embed_pairs, sample_pairs, unrelated_partners
from crossalign.engine.pairs import sample_lines
from crossalign.engine.tokens import Frame, word_pieces
from crossalign.runtime.errors import UserError

CPU = torch.device("cpu")
WORDS = ["the", "cat", "sat", "on", "mat", "John", "lives", "in", "Paris", "Berlin", "spelt", "(so)"]


def write_pool(folder, lines=40):
    """Sentences whose words are linked in reverse order; word 0 is linked twice, one pair of words is identical."""
    rng = np.random.default_rng(4)
    pool, links = [], []
    for number in range(lines):
        english = [*rng.choice(WORDS, 5), "same"]
        other = ["same", *(f"{word}x" for word in english[4::-1])]
        pool.append(f"1.{number}\t{' '.join(english)}\t{' '.join(other)}\n")
        links.append("0-5 0-4 1-4 2-3 3-2 4-1 5-0\n")
    (folder / "pool.tsv").write_text("".join(pool), encoding="utf-8")
    (folder / "pool.pharaoh").write_text("".join(links), encoding="utf-8")
    return folder / "pool.tsv", folder / "pool.pharaoh"


@pytest.fixture(
    scope="module", params=[("bert", "auto"), ("xlm-roberta", "auto"), ("t5", "library"), ("gpt2", "library")]
)
def model(request, tmp_path_factory):
    """A token before and behind a sentence, behind it only, none."""
    family, backend = request.param
    return load_model(write_family(family, tmp_path_factory.mktemp(family)), CPU, backend=backend)


def test_pairs_are_filtered_links_of_many_lines(tmp_path):
    pairs = sample_pairs(*write_pool(tmp_path), count=30, seed=1)
    assert len({pair.line for pair in pairs}) == 30
    assert {pair.places for pair in pairs} <= {(2, 3), (3, 2), (4, 1)}
    assert len({pair.places for pair in pairs}) > 1
    assert pairs == sample_pairs(tmp_path / "pool.tsv", tmp_path / "pool.pharaoh", 30, 1)
    assert pairs != sample_pairs(tmp_path / "pool.tsv", tmp_path / "pool.pharaoh", 30, 2)


def test_lines_give_a_second_link_only_when_all_gave_one(tmp_path):
    files = write_pool(tmp_path, 10)
    lines = [pair.line for pair in sample_pairs(*files, count=25, seed=1)]
    assert sorted(lines.count(line) for line in set(lines)) == [2] * 5 + [3] * 5
    assert len({(pair.line, pair.places) for pair in sample_pairs(*files, count=30, seed=1)}) == 30
    with pytest.raises(UserError, match=r"fewer than 31 usable links .* on the 10 of 10 lines"):
        sample_pairs(*files, count=31, seed=1)


def test_lines_of_the_adjustment_are_left_out(tmp_path):
    files = write_pool(tmp_path)
    seen = {int(line) + 1 for seed in (1, 2) for line in sample_lines(40, 15, seed)}
    used = {pair.line for pair in sample_pairs(*files, count=20, seed=1, skip_samples=[(15, 1), (15, 2)])}
    assert not used & seen and used | seen <= set(range(1, 41))
    with pytest.raises(UserError, match="on the 0 of 40 lines that are not left out"):
        sample_pairs(*files, count=1, seed=1, skip_samples=[(40, 1)])


@given(st.lists(st.integers(1, 4), min_size=2, max_size=30), st.integers(0, 99))
def test_unrelated_words_come_from_other_lines(sizes, seed):
    lines = [line for line, size in enumerate(sizes) for _ in range(size)]
    if 2 * max(sizes) > len(lines):
        with pytest.raises(UserError, match="come from one sentence pair"):
            unrelated_partners(lines, seed)
        return
    partners = unrelated_partners(lines, seed)
    assert sorted(partners) == list(range(len(lines)))
    assert all(lines[place] != lines[partner] for place, partner in enumerate(partners))


def word_vector(model, words, place, layer):
    """One sentence, one word, by hand."""
    frame, pieces = Frame.of(model.tokenizer), word_pieces(model.tokenizer, [words], 99)(words)
    ids, owner = [*chain(*pieces)], [number for number, piece in enumerate(pieces) for _ in piece]
    with torch.no_grad():
        states = model.encoder(torch.tensor([[*frame.before, *ids, *frame.after]]), all_layers=True)[layer][0]
    return states[[len(frame.before) + k for k, number in enumerate(owner) if number == place]].mean(0)


@pytest.mark.parametrize("layer", [None, 1])
def test_vectors_equal_one_word_at_a_time(layer, model, tmp_path, caplog):
    pairs = sample_pairs(*write_pool(tmp_path), count=12, seed=1)
    related, unrelated = embed_pairs(model, pairs, 1, layer)
    assert related.shape == unrelated.shape == (12, 2, 32)
    for vectors, pair in zip(related, pairs, strict=True):
        for vector, words, place in zip(vectors, pair.sentences, pair.places, strict=True):
            want = word_vector(model, words, place, 3 if layer is None else layer)
            np.testing.assert_allclose(vector, want, atol=1e-5, rtol=1e-5)
    partners = unrelated_partners([pair.line for pair in pairs], 1)
    assert np.array_equal(unrelated[:, 0], related[:, 0])
    assert np.array_equal(unrelated[:, 1], related[partners, 1])
    with pytest.raises(UserError, match="no pair of words lies within 3 tokens"):
        embed_pairs(model, pairs, 1, max_length=3)
    with pytest.raises(UserError, match=r"--layer 4: the model has layers 0 \(embeddings\) to 3"):
        embed_pairs(model, pairs, 1, layer=4)
