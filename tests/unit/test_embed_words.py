"""Vectors of word pairs: which pairs, and what their vectors are."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tokenizers_for_tests import bert_tokenizer, xlmr_tokenizer

from crossalign.embedding.model import load_model
from crossalign.embedding.words import embed_pairs, sample_pairs, unrelated_partners
from crossalign.engine.folders import save_encoder
from crossalign.engine.pairs import sample_lines
from crossalign.engine.random_init import fresh_encoder
from crossalign.engine.shape import EncoderConfig
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


@pytest.fixture(scope="module", params=["bert", "xlm-roberta"])
def model(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    offset = {} if request.param == "bert" else {"pad_id": 1, "position_offset": 2}
    shape = {"hidden": 16, "layers": 2, "heads": 2, "intermediate": 24, "positions": 60, "initializer_range": 0.3}
    config = EncoderConfig(160, **shape, family=request.param, **offset)
    tokenizer = bert_tokenizer() if request.param == "bert" else xlmr_tokenizer()
    save_encoder(folder, fresh_encoder(config, 1), tokenizer)
    return load_model(folder, CPU)


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
    # Pairs of one line are neighbours, and no link comes twice.
    assert len(set(lines)) == 1 + sum(a != b for a, b in zip(lines, lines[1:], strict=False))
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
    tokenizer = model.tokenizer
    bert = tokenizer.token_to_id("[CLS]") is not None
    ids, owner = [tokenizer.token_to_id("[CLS]" if bert else "<s>")], [-1]
    for number, word in enumerate(words):
        pieces = tokenizer.encode([word], is_pretokenized=True, add_special_tokens=False).ids
        ids += pieces
        owner += [number] * len(pieces)
    ids.append(tokenizer.token_to_id("[SEP]" if bert else "</s>"))
    with torch.no_grad():
        states = model.encoder(torch.tensor([ids]), all_layers=True)[layer][0]
    return states[[k for k, number in enumerate(owner) if number == place]].mean(0)


@pytest.mark.parametrize("layer", [None, 0, 1])
def test_vectors_equal_one_word_at_a_time(layer, model, tmp_path):
    pairs = sample_pairs(*write_pool(tmp_path), count=12, seed=1)
    related, unrelated = embed_pairs(model, pairs, 1, layer)
    assert related.shape == unrelated.shape == (12, 2, 16)
    for vectors, pair in zip(related, pairs, strict=True):
        for vector, words, place in zip(vectors, pair.sentences, pair.places, strict=True):
            want = word_vector(model, words, place, 2 if layer is None else layer)
            np.testing.assert_allclose(vector, want, atol=1e-5, rtol=1e-5)
    partners = unrelated_partners([pair.line for pair in pairs], 1)
    assert np.array_equal(unrelated[:, 0], related[:, 0])
    assert np.array_equal(unrelated[:, 1], related[partners, 1])


def test_words_beyond_the_longest_length_are_left_out(model, tmp_path, caplog):
    pairs = sample_pairs(*write_pool(tmp_path), count=30, seed=1)
    related, _ = embed_pairs(model, pairs, 1, max_length=14)
    assert 0 < len(related) < 30
    assert f"{30 - len(related)} of 30 pairs left out" in caplog.text
    with pytest.raises(UserError, match="no pair of words lies within 3 tokens"):
        embed_pairs(model, pairs, 1, max_length=3)
    with pytest.raises(UserError, match=r"--layer 3: the model has layers 0 \(embeddings\) to 2"):
        embed_pairs(model, pairs, 1, layer=3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text + "0-0\n", r"pool\.pharaoh has 41 lines but .*pool\.tsv has 40"),
        (lambda text: text.replace("4-1", "4_1"), r"pool\.pharaoh, line \d+: .* is not a list of links"),
        (lambda text: text.replace("4-1", "4-9"), r"pool\.pharaoh, line \d+: link 4-9 points outside"),
    ],
)
def test_bad_links(change, message, tmp_path):
    pool, links = write_pool(tmp_path)
    links.write_text(change(links.read_text()))
    with pytest.raises(UserError, match=message):
        sample_pairs(pool, links, 30, 1)
    with pytest.raises(UserError, match=r"cannot read .*nowhere"):
        sample_pairs(pool, tmp_path / "nowhere", 30, 1)


def run(root, script, *args):
    command = [sys.executable, str(root / "scripts" / script), *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})


def test_programs_measure_distances(root, tmp_path):
    pool, links = write_pool(tmp_path)
    config = EncoderConfig(160, hidden=16, layers=2, heads=2, intermediate=24, positions=60)
    save_encoder(tmp_path / "model", fresh_encoder(config, 1), bert_tokenizer())
    arrays = ["--related", tmp_path / "related.npy", "--unrelated", tmp_path / "unrelated.npy"]
    done = run(
        root, "embed_words.py", "--model", tmp_path / "model", "--pool", pool, "--links", links, "--pairs", 20,
        "--skip-sample", 10, "--skip-seeds", 1, 2, *arrays, "--device", "cpu",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    out = ["--out", tmp_path / "es.csv", "--summary", tmp_path / "es.json"]
    done = run(root, "measure_distances.py", *arrays, *out)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "es.json").read_text())["pairs"] == 20
    done = run(root, "embed_words.py", "--model", tmp_path / "model", "--pool", pool, "--links", pool, *arrays)
    assert done.returncode == 1 and done.stderr.startswith("error: ")
