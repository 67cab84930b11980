"""Text as blocks of tokens: nothing twice, nothing lost, the right shares; hidden tokens by the rules."""

from collections import Counter

import numpy as np
import pytest
from tests.pretrain_toys import make_text, make_tokenizer

from crossalign.engine.batches import IGNORE
from crossalign.engine.corpus import (
    FILLER,
    CausalBlocks,
    Corpus,
    Lines,
    MaskedBlocks,
    encode_texts,
    lines_of,
)
from crossalign.engine.programs import named_files
from crossalign.engine.tokenizer import read_tokenizer
from crossalign.engine.tokens import Specials
from crossalign.runtime.errors import UserError


def token_file(path, tokens):
    np.asarray(tokens, dtype="<u2").tofile(path)
    return path


@pytest.fixture
def two(tmp_path):
    """A text of 1,000 and one of 200 tokens, all different."""
    files = {
        "big": token_file(tmp_path / "big.uint16", np.arange(1000)),
        "small": token_file(tmp_path / "small.uint16", 5000 + np.arange(200)),
    }
    return files


def test_an_epoch_has_every_token_once_but_for_less_than_a_block(two):
    corpus = Corpus({"big": two["big"]}, 7, 0.7, 1)
    blocks = 1000 // 7
    previous = None
    for epoch in range(3):
        seen = corpus.blocks(np.arange(epoch * blocks, (epoch + 1) * blocks))
        counts = Counter(seen.reshape(-1).tolist())
        assert max(counts.values()) == 1
        assert len(counts) == blocks * 7 > 1000 - 7
        # Blocks are runs of the text.
        assert ((np.diff(seen, axis=1) == 1) | (np.diff(seen, axis=1) == -999)).all()
        assert previous is None or not np.array_equal(previous, seen)
        previous = seen


def test_texts_are_drawn_by_their_share_to_the_power(two):
    corpus = Corpus(two, 4, 0.7, 1)
    drawn, _ = corpus.drawn(np.arange(100_000))
    expected = 1000**0.7 / (1000**0.7 + 200**0.7)
    assert abs((drawn == 0).mean() - expected) < 0.01
    assert Corpus(two, 4, 0.0, 1).shares.tolist() == [0.5, 0.5]


def test_entropy_of_frequencies(tmp_path):
    files = {
        "a": token_file(tmp_path / "a.uint16", [7, 8, 2] * 10),
        "b": token_file(tmp_path / "b.uint16", [7, 9, 9, 9, 2] * 6),
    }
    # Both texts have half the draws: 7 has (1/2 + 1/4) / 2, 8 has 1/4, 9 has 3/8 of what is no separator.
    shares = np.array([3 / 8, 1 / 4, 3 / 8])
    assert Corpus(files, 5, 0.7, 1).unigram_entropy({2}) == pytest.approx(-(shares * np.log(shares)).sum())


def test_any_draw_can_be_asked_for_without_those_before(two):
    """What resuming needs; across the border of two chunks of draws, too."""
    numbers = np.arange(65_530, 65_545)
    walked = Corpus(two, 4, 0.7, 1)
    for first in range(0, 65_540, 1000):
        walked.blocks(np.arange(first, min(first + 1000, 65_545)))
    jumped = Corpus(two, 4, 0.7, 1)
    assert np.array_equal(walked.blocks(numbers), jumped.blocks(numbers))
    texts, ordinals = jumped.drawn(np.arange(65_500, 65_600))
    before, _ = Corpus(two, 4, 0.7, 1).drawn(np.arange(65_500))
    for text in (0, 1):
        first = int((before == text).sum())
        mine = ordinals[texts == text]
        assert mine.tolist() == list(range(first, first + len(mine)))


def test_texts_are_encoded_once_and_again_when_they_change(tmp_path):
    texts = {"aa": [make_text(tmp_path / "aa.txt", 1, 50)]}
    make_tokenizer(tmp_path / "t.json", texts, size=40)
    tokenizer = read_tokenizer(tmp_path / "t.json")
    (path,) = encode_texts(texts, tokenizer, tmp_path / "tokens").values()
    stored = np.fromfile(path, dtype="<u2")
    wanted = []
    for line in lines_of(texts["aa"][0]):
        wanted += [*tokenizer.encode(line, add_special_tokens=False).ids, Specials.of(tokenizer).sep]
    assert stored.tolist() == wanted
    made = path.stat().st_mtime_ns
    assert encode_texts(texts, tokenizer, tmp_path / "tokens")["aa"] == path and path.stat().st_mtime_ns == made
    with texts["aa"][0].open("a") as stream:
        stream.write("abcd\n")
    assert encode_texts(texts, tokenizer, tmp_path / "tokens")["aa"] != path


@pytest.fixture
def blocks(two):
    corpus = Corpus(two, 31, 0.7, 1)
    # Token 5007 is special, to see that it is left alone.
    return MaskedBlocks(corpus, 64, 1, 3, 4, {0, 1, 2, 3, 4, 5007}, 6000)


def test_hidden_tokens_by_the_rules(blocks):
    fates, hidden = Counter(), Counter()
    for step in range(40):
        members = blocks.members(step)
        ids, places, truth = blocks.rows(members)
        plain = np.concatenate([np.full((64, 1), 3), blocks.corpus.blocks(members)], axis=1)
        assert places.shape == (64, round(0.15 * 32)) and (truth != IGNORE).all()
        assert all(len(set(row)) == len(row) for row in places.tolist())
        rows = np.arange(64)[:, None]
        assert np.array_equal(plain[rows, places], truth)
        assert not np.isin(truth, [3, 5007]).any()
        untouched = np.ones_like(plain, dtype=bool)
        untouched[rows, places] = False
        assert np.array_equal(ids[untouched], plain[untouched])
        shown = ids[rows, places]
        fates.update(np.where(shown == 4, "mask", np.where(shown == truth, "kept", "other")).reshape(-1).tolist())
        hidden.update(places.reshape(-1).tolist())
        assert not np.isin(shown[shown != 4], [0, 1, 2, 3, 5007]).any()
    total = sum(fates.values())
    assert abs(fates["mask"] / total - 0.8) < 0.01
    assert abs(fates["other"] / total - 0.1) < 0.01
    # Every place but the start is hidden about equally often.
    assert 0 not in hidden and max(hidden.values()) < 1.25 * min(hidden.values())


def test_a_piece_of_a_batch_is_a_piece_of_its_rows(blocks):
    members = blocks.members(2)
    whole = blocks.rows(members)
    for part, all_rows in zip(blocks.rows(members[10:20]), whole, strict=True):
        assert np.array_equal(part, all_rows[10:20])
    batch = blocks.assemble(members[:10], 16)
    views = batch.tensors
    assert batch.filled and len(views["ids"]) == 16 * 32
    assert (views["truth"][10:] == IGNORE).all() and (np.diff(views["cu_seqlens"]) == [32] * 10 + [0] * 6 + [192]).all()
    whole = blocks.assemble(members[:16], 16)
    assert not whole.filled and len(whole.tensors["cu_seqlens"]) == 17


def test_a_block_of_special_tokens_has_nothing_to_predict(tmp_path):
    corpus = Corpus({"x": token_file(tmp_path / "x.uint16", [2] * 50)}, 15, 1.0, 1)
    store = MaskedBlocks(corpus, 4, 1, 3, 4, {2, 3, 4}, 10)
    ids, _, truth = store.rows(store.members(0))
    assert (truth == IGNORE).all() and (ids[:, 1:] == 2).all() and store.targets[store.members(0)].sum() == 0


def test_bad_texts(tmp_path):
    with pytest.raises(UserError, match="NAME=FILE was expected"):
        named_files(["fr"], "--texts")
    assert named_files(["a=x", "b=y", "a=z"], "--texts")["a"][1].name == "z"
    with pytest.raises(UserError, match="no such text"):
        list(lines_of(tmp_path / "none.txt"))
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9\n")
    with pytest.raises(UserError, match="not UTF-8"):
        list(lines_of(tmp_path / "latin.txt"))
    with pytest.raises(UserError, match="'x' has 3 tokens, less than one block of 7"):
        Corpus({"x": token_file(tmp_path / "x.uint16", [1, 2, 3])}, 7, 0.7, 1)
    with pytest.raises(UserError, match="no text to train on"):
        Corpus({}, 7, 0.7, 1)


@pytest.fixture
def lines(tmp_path):
    """300 lines of up to 20 letters, some of them longer than a block, and their tokenizer."""
    texts = {"aa": [make_text(tmp_path / "aa.txt", 1, 250)], "bb": [make_text(tmp_path / "bb.txt", 2, 50)]}
    make_tokenizer(tmp_path / "t.json", texts, size=40)
    tokenizer = read_tokenizer(tmp_path / "t.json")
    return texts, tokenizer, encode_texts(texts, tokenizer, tmp_path / "tokens")


def line_blocks(lines, block, batch):
    _, tokenizer, files = lines
    corpus = Lines(files, block - 1, 1.0, 1, end=Specials.of(tokenizer).sep)
    special = {Specials.of(tokenizer).cls, Specials.of(tokenizer).sep, Specials.of(tokenizer).pad}
    cls, mask = Specials.of(tokenizer).cls, tokenizer.token_to_id("[MASK]")
    return MaskedBlocks(corpus, batch, 1, cls, mask, special, tokenizer.get_vocab_size())


@pytest.mark.parametrize("block", [8, 16, 128])
def test_each_line_comes_once_an_epoch_as_the_tokenizer_cuts_it(lines, block):
    texts, tokenizer, files = lines
    store = line_blocks(lines, block, 10)
    tokenizer.enable_truncation(block)
    wanted = {name: Counter(tuple(tokenizer.encode(line).ids) for line in lines_of(texts[name][0])) for name in texts}
    lengths = {len(line) for counts in wanted.values() for line in counts}
    assert block == 128 or max(lengths) == block, "some lines are cut"
    draws = np.arange(4000)
    drawn, ordinals = store.corpus.drawn(draws)
    # With exponent 1 each line has the same chance, in whatever text it stands.
    assert abs((drawn == 0).mean() - 250 / 300) < 0.02
    rows = store.corpus.blocks(draws)
    for text, (name, count) in enumerate([("aa", 250), ("bb", 50)]):
        for epoch in range(2):
            mine = rows[(drawn == text) & (ordinals // count == epoch)]
            assert Counter((Specials.of(tokenizer).cls, *row[row != FILLER].tolist()) for row in mine) == wanted[name]
    every = [len(line) for counts in wanted.values() for line in counts.elements()]
    assert store.mean_length() == pytest.approx(np.mean(every))


def test_a_share_of_each_line_is_hidden(lines):
    store = line_blocks(lines, 16, 100)
    special = store.special.nonzero()[0]
    hidden = words = 0
    for step in range(60):
        members = store.members(step)
        ids, places, truth = store.rows(members)
        plain = np.concatenate([np.full((100, 1), store.start), store.corpus.blocks(members)], axis=1)
        real = truth != IGNORE
        rows = np.arange(100)[:, None]
        assert np.array_equal(plain[rows, places][real], truth[real]) and not np.isin(truth, special).any()
        assert (places[~real] == 0).all() and all(len(set(row[row > 0])) == (row > 0).sum() for row in places)
        assert np.array_equal(ids == FILLER, plain == FILLER)
        assert np.array_equal(store.targets[members], real.sum(1))
        hidden, words = hidden + real.sum(), words + (~np.isin(plain, [*special, FILLER])).sum()
    assert hidden / words == pytest.approx(0.15, abs=0.004)


def test_lines_of_a_batch_are_packed(lines):
    store = line_blocks(lines, 100, 10)
    members = store.members(3)
    ids, places, truth = store.rows(members)
    lengths = (ids != FILLER).sum(1)
    assert len(set(lengths)) > 2
    for part, size in ((members, None), (members[:4], 5)):
        batch = store.assemble(part, size)
        views = batch.tensors
        real, count = int(lengths[: len(part)].sum()), len(part)
        missing = [0] * ((size or count) - count)
        assert views["ids"][:real].tolist() == [number for row in ids[:count] for number in row if number != FILLER]
        assert views["positions"][:real].tolist() == [place for n in lengths[:count] for place in range(n)]
        assert np.diff(views["cu_seqlens"])[: size or count].tolist() == [*lengths[:count], *missing]
        # Targets are looked up in the grid, so none may lie beyond its width.
        assert views["places"].max() < batch.length and np.array_equal(views["truth"][:count], truth[:count])


def test_causal_lines_predict_the_next_word_only(lines):
    _, tokenizer, files = lines
    store = CausalBlocks(Lines(files, 127, 1.0, 1, end=Specials.of(tokenizer).sep), 10, 1, 2)
    ids, places, truth = store.rows(store.members(0))
    lengths = (ids != FILLER).sum(1)
    assert np.array_equal((truth != IGNORE).sum(1), lengths - 1) and places.max() == lengths.max() - 2
    for row, length in enumerate(lengths):
        assert truth[row, : length - 1].tolist() == ids[row, 1:length].tolist()
