"""Samples of linked sentence pairs, and what becomes of a pair: units, partners, batches."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.adjustment_toys import VOCABULARY, toy_files, toy_tokenizer
from tokenizers.processors import TemplateProcessing

from crossalign.alignment.bitext import in_pieces
from crossalign.engine.pairs import Choice, PairStore, make_pairs, read_sample, sample_lines
from crossalign.runtime.errors import UserError


def write(folder, pool, links):
    (folder / "pool.tsv").write_text(pool, encoding="utf-8")
    (folder / "pool.pharaoh").write_text(links, encoding="utf-8")
    return folder / "pool.tsv", folder / "pool.pharaoh"


def one_pair(tmp_path, links, aggregation="avg", tokens="all", english="ka ranumi kalo .", other="tosu ti sisu ."):
    files = write(tmp_path, f"1.0\t{english}\t{other}\n", f"{links}\n")
    pairs, dropped = make_pairs(
        read_sample(*files, 1, 1), toy_tokenizer(tmp_path), Choice(aggregation, tokens), max_length=40
    )
    return (pairs[0] if pairs else None), dropped


# ---- samples --------------------------------------------------------------------------------------------------------


@given(st.integers(1, 200), st.integers(1, 250), st.integers(0, 5))
def test_samples_are_distinct_sorted_and_nested(pool, pairs, seed):
    lines = sample_lines(pool, pairs, seed)
    assert len(lines) == min(pool, pairs)
    assert (np.diff(lines) > 0).all()
    assert set(lines) <= set(sample_lines(pool, pairs + 10, seed))
    assert sample_lines(1000, 50, seed).tolist() != sample_lines(1000, 50, seed + 1).tolist()


def test_rows_keep_words_and_links_of_their_line(tmp_path):
    pool, links = toy_files(tmp_path, 30)
    sample = read_sample(pool, links, 7, 3)
    assert [row.line - 1 for row in sample.rows] == sample_lines(30, 7, 3).tolist()
    lines = pool.read_text().splitlines()
    for row in sample.rows:
        assert lines[row.line - 1] == f"1.2\t{' '.join(row.english)}\t{' '.join(row.other)}"
        assert links.read_text().splitlines()[row.line - 1] == " ".join(f"{i}-{j}" for i, j in row.links)


@pytest.mark.parametrize(
    ("pool", "links", "message"),
    [
        ("", "", r"pool\.tsv has no lines; each line must be"),
        ("1\tka\tti\n", "0-0\n0-0\n", r"pool\.pharaoh has 2 lines but .*pool\.tsv has 1; align this pool again"),
        ("1\tka\tti\n1\tka\n", "0-0\n0-0\n", r"pool\.tsv, line 2: 2 columns instead of score, English words"),
        ("1\tka\tti\n1\tka\tti\n", "0-0\n0-x\n", r"pool\.pharaoh, line 2: '0-x' is not a list of links such as"),
    ],
)
def test_bad_files(tmp_path, pool, links, message):
    with pytest.raises(UserError, match=message):
        read_sample(*write(tmp_path, pool, links), 10, 1)


@pytest.mark.parametrize(
    ("aggregation", "link", "sizes"),
    [
        ("avg", "4-0", "4 and 4 words"),
        ("subword", "0-6", "7 and 6 word pieces"),
    ],
)
def test_links_outside_a_sentence_name_file_and_line(tmp_path, aggregation, link, sizes):
    pair = "1\tka ranumi kalo .\ttosu ti sisu .\n"
    files = write(tmp_path, pair * 3, f"0-0\n0-0\n1-1 {link}\n")
    sample = read_sample(*files, 3, 1)
    with pytest.raises(UserError, match=rf"pool\.pharaoh, line 3: link {link} points outside .* have {sizes}"):
        make_pairs(sample, toy_tokenizer(tmp_path), Choice(aggregation), 40)


# ---- units and partners ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("aggregation", "english", "other"),
    [
        ("avg", [0, 1, 2, 2, 2, 3, 3, 4, 5], [0, 1, 1, 2, 3, 3, 4, 5]),
        ("start", [0, 1, 2, -1, -1, 3, -1, 4, 5], [0, 1, -1, 2, 3, -1, 4, 5]),
        ("end", [0, 1, -1, -1, 2, -1, 3, 4, 5], [0, -1, 1, 2, -1, 3, 4, 5]),
        ("subword", list(range(9)), list(range(8))),
    ],
)
def test_tokens_of_a_word(tmp_path, aggregation, english, other):
    pair, _ = one_pair(tmp_path, "0-1 1-2", aggregation)
    assert pair.english["unit"] == english
    assert pair.other["unit"] == other
    words = ["[CLS]", "ka", "ra", "##nu", "##mi", "ka", "##lo", ".", "[SEP]"]
    assert pair.english["input_ids"] == [VOCABULARY.index(word) for word in words]


@pytest.mark.parametrize(
    ("tokens", "partners"),
    [
        ("cls", [0, -1, -1, -1, -1, -1]),
        ("clssep", [0, -1, -1, -1, -1, 5]),
        ("words", [-1, 2, 3, -1, -1, -1]),
        ("all", [0, 2, 3, -1, -1, 5]),
    ],
)
def test_what_is_pulled_together(tmp_path, tokens, partners):
    # The full stops are linked too, but they are identical; "kalo" has two links, so neither counts.
    pair, _ = one_pair(tmp_path, "0-1 1-2 2-0 2-3 3-3", tokens=tokens)
    assert pair.partners == partners


def test_a_text_that_nothing_ends_has_no_unit_behind_its_words(tmp_path):
    """As in decoders: the divisor of what is held counts the units that there are."""
    tokenizer = toy_tokenizer(tmp_path)
    begin = [("[CLS]", tokenizer.token_to_id("[CLS]"))]
    tokenizer.post_processor = TemplateProcessing(single="[CLS] $A", pair="[CLS] $A [CLS] $B", special_tokens=begin)
    sample = read_sample(*write(tmp_path, "1.0\tka ranumi\tti tosu\n", "0-1\n"), 1, 1)
    ((pair,), _) = make_pairs(sample, tokenizer, Choice(), max_length=40)
    assert pair.partners == [0, 2, -1] and max(pair.english["unit"]) == 2
    assert PairStore([pair]).targets.tolist() == [[2, 3]]


def test_sub_word_links_are_between_pieces(tmp_path):
    # Pieces: ka | ra ##nu ##mi | ka ##lo | . and to ##su | ti | si ##su | .
    pair, _ = one_pair(tmp_path, "0-2 3-1 6-5", "subword")
    assert pair.partners == [0, 3, -1, -1, 2, -1, -1, -1, 7]


def test_pieces_are_counted_as_the_aligner_counts_them(tmp_path):
    """A word of which nothing remains must not shift the pieces behind it."""
    tokenizer = toy_tokenizer(tmp_path)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    english, other = "ka \x01 ranumi", "tosu \x02 ti"
    pair, _ = one_pair(tmp_path, "1-2", "subword", english=english, other=other)
    ((left, right),) = in_pieces(iter([(english.split(" "), other.split(" "))]), tmp_path / "tokenizer.json")
    assert list(map(str, pair.english["input_ids"][1:-1])) == left
    assert list(map(str, pair.other["input_ids"][1:-1])) == right
    assert pair.partners == [0, -1, 3, -1, -1, 4]


def test_pairs_without_links_are_dropped_whatever_is_pulled(tmp_path):
    for tokens in ("cls", "clssep", "words", "all"):
        pair, dropped = one_pair(tmp_path, "3-3", tokens=tokens)
        assert pair is None
        assert dropped == {"without links": 1, "too long": 0}


def test_pairs_that_do_not_fit_are_dropped_and_counted(tmp_path):
    pair, dropped = one_pair(tmp_path, "0-0", english="ka " * 30 + "kalo" * 5)
    assert pair is None
    assert dropped == {"without links": 0, "too long": 1}
    assert one_pair(tmp_path, "0-0", english="ka" * 39)[1]["too long"] == 1
    assert one_pair(tmp_path, "0-0", english="ka" * 38)[1]["too long"] == 0


# ---- batches --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("static", [False, True])
def test_a_batch_tells_where_everything_is(tmp_path, static):
    """Undo a batch: tokens, units, partners and places of all pairs must come out again."""
    sample = read_sample(*toy_files(tmp_path, 20), 20, 1)
    pairs, _ = make_pairs(sample, toy_tokenizer(tmp_path), Choice(), 40)
    store = PairStore(pairs, position_offset=2, max_length=40)
    members = np.array([7, 3, 11, 0])
    batch = store.assemble(members, 6 if static else None)
    views, starts = batch.tensors, batch.tensors["cu_seqlens"]
    lengths = np.diff(starts)
    assert len(lengths) == (12 + 1 if static else 8) and batch.words % 128 == 0 or not static
    assert (np.diff(lengths[:8]) <= 0).all(), "the longest sentence first"
    for place, member in enumerate(members):
        pair, row, other = pairs[member], views["english"][place], views["other"][place]
        assert views["ids"][starts[row] : starts[row + 1]].tolist() == pair.english["input_ids"]
        assert views["ids"][starts[other] : starts[other + 1]].tolist() == pair.other["input_ids"]
        assert views["positions"][starts[row]] == 2
        assert views["unit"][row, : lengths[row]].tolist() == pair.english["unit"]
        assert (views["unit"][row, lengths[row] :] == -1).all()
        assert views["count"][place] == len(pair.partners)
        assert views["first"][place] == sum(len(p.partners) for p in pairs[:member])
        assert views["partner"][place, : len(pair.partners)].tolist() == pair.partners
        assert (views["partner"][place, len(pair.partners) :] == -1).all()
    linked = sum(partner >= 0 for m in members for partner in pairs[m].partners)
    assert store.targets[members].sum(0).tolist() == [linked, sum(len(pairs[m].partners) for m in members)]
