"""Tokenizers of other families: their own frames, words as in running text, pairs, lengths."""

import pytest
from tokenizers_for_tests import _FAMILIES, TEXT, bert_tokenizer, family_tokenizer, xlmr_tokenizer

from crossalign.engine.pairs import Choice, Row, Sample, make_pairs
from crossalign.engine.tokenizer import load_tokenizer
from crossalign.engine.tokens import Frame, Specials, needs_space, word_pieces
from crossalign.runtime.errors import UserError
from crossalign.tasks import get_task

# Tokens before, between and after, and whether a word needs a space before it.
FRAMES = {
    "gpt2": ("", "", "", True),
    "bloom": ("", "", "", True),
    "qwen3": ("", "", "", True),
    "modernbert": ("[CLS]", "[SEP]", "[SEP]", True),
    "llama": ("<s>", "<s>", "", False),
    "gemma3": ("<bos>", "<bos>", "", True),
    "t5": ("", "</s>", "</s>", False),
    "deberta-v2": ("[CLS]", "[SEP]", "[SEP]", False),
}
# What tasks add: a token that stands first, and one between two texts.
ADDED = {
    "gpt2": ("<|endoftext|>", "<|endoftext|>"),
    "bloom": ("<s>", "</s>"),
    "qwen3": ("<|endoftext|>", "<|endoftext|>"),
    "t5": ("</s>", "</s>"),
}


@pytest.fixture(scope="module", params=FRAMES)
def family(request):
    return request.param, family_tokenizer(request.param)


def names(tokenizer, numbers):
    return " ".join(tokenizer.id_to_token(number) for number in numbers)


def test_all_families_are_here():
    assert FRAMES.keys() == _FAMILIES.keys()


def test_a_text_is_framed_as_the_tokenizer_does(family):
    name, tokenizer = family
    frame = Frame.of(tokenizer)
    before, between, after, spaced = FRAMES[name]
    assert (names(tokenizer, frame.before), names(tokenizer, frame.between), names(tokenizer, frame.after)) == (
        before,
        between,
        after,
    )
    assert needs_space(tokenizer) == spaced
    first, second = (tokenizer.encode(text, add_special_tokens=False).ids for text in TEXT[:2])
    assert [*frame.before, *first, *frame.after] == tokenizer.encode(TEXT[0]).ids
    assert [*frame.before, *first, *frame.between, *second, *frame.after] == tokenizer.encode(TEXT[0], TEXT[1]).ids


def test_tasks_always_have_a_first_token_and_one_between_two_texts(family):
    name, tokenizer = family
    specials = Specials.of(tokenizer)
    before, between, _, _ = FRAMES[name]
    wanted = ADDED.get(name, (before, between))
    assert (names(tokenizer, specials.frame.before), names(tokenizer, specials.frame.between)) == wanted
    pair = specials.pair([7, 8], [9])
    assert pair["input_ids"][specials.second_at([7, 8])] == 9
    assert specials.room(20, 2) == 20 - (len(pair["input_ids"]) - 3) and specials.room(20) == 22 - len(
        specials.single([7, 8])
    )
    if "token_type_ids" in pair:
        assert pair["token_type_ids"] == [
            int(place >= specials.second_at([7, 8])) for place in range(len(pair["input_ids"]))
        ]
    if name not in ADDED:
        encoded = tokenizer.encode(TEXT[0], TEXT[1])
        texts = (tokenizer.encode(text, add_special_tokens=False).ids for text in TEXT[:2])
        assert specials.pair(*texts)["input_ids"] == encoded.ids
    assert 0 <= specials.pad < tokenizer.get_vocab_size() and 0 <= specials.unk < tokenizer.get_vocab_size()


def test_words_are_encoded_as_in_running_text(family):
    _, tokenizer = family
    sentences = [text.split() for text in dict.fromkeys(TEXT)] + [["the"], ["кот", "the", "the"]]
    split = word_pieces(tokenizer, sentences, 99)
    for words in sentences:
        running = tokenizer.encode(" ".join(words), add_special_tokens=False)
        assert [piece for pieces in split(words) for piece in pieces] == running.ids
    assert all(pieces == word[:2] for pieces, word in zip(
        word_pieces(tokenizer, sentences, 2)(sentences[3]), split(sentences[3]), strict=True
    ))  # fmt: skip


def test_tags_of_html_are_no_special_tokens():
    """Gemma's vocabulary has them."""
    tokenizer = family_tokenizer("gemma3")
    tokenizer.add_tokens(["<s>", "</s>"])
    specials = Specials.of(tokenizer)
    assert names(tokenizer, [specials.cls, specials.sep, specials.pad, specials.unk]) == "<bos> <eos> <pad> <unk>"


@pytest.mark.parametrize("make", [bert_tokenizer, xlmr_tokenizer])
def test_bert_and_xlmr_need_no_space(make):
    assert not needs_space(make())


def test_examples_of_every_task(family):
    _, tokenizer = family
    specials = Specials.of(tokenizer)
    words = TEXT[1].split()
    ner = {"id": "1", "tokens": words, "tags": ["O"] * len(words)}
    (example,) = get_task("ner", ["O", "B-PER"]).examples([ner], tokenizer, 64)
    inside = [piece for pieces in word_pieces(tokenizer, [words], 99)(words) for piece in pieces]
    assert example["input_ids"] == specials.single(inside) and example["word_starts"][0] == len(specials.frame.before)
    assert len(set(example["word_starts"])) == len(words) and 0 not in example["word_starts"]
    context = TEXT[1]
    qa = {"id": "1", "question": "who ?", "context": context, "answers": [{"text": "Paris", "start": 14}]}
    task = get_task("qa")
    (example,) = task.examples([qa], tokenizer, 64)
    place = slice(example["start"] - example["shown"], example["end"] - example["shown"] + 1)
    begin, end = example["spans"][place][0][0], example["spans"][place][-1][1]
    assert context[begin:end].strip() == "Paris"
    nli = {"id": "1", "premise": TEXT[0], "hypothesis": TEXT[1], "label": "neutral"}
    (example,) = get_task("nli").examples([nli], tokenizer, 64)
    assert len(example["input_ids"]) == sum(
        len(tokenizer.encode(text, add_special_tokens=False).ids) for text in TEXT[:2]
    ) + 64 - specials.room(64, 2)


@pytest.mark.parametrize("tokens", ["all", "clssep", "words"])
def test_pairs_for_adjustment(family, tokens):
    """The last token of a text is pulled only where there is one."""
    _, tokenizer = family
    specials = Specials.of(tokenizer)
    row = Row(1, ["the", "cat"], ["мой", "дом", "дом"], [(0, 0), (1, 2)])
    (pair,), _ = make_pairs(Sample([row], 1, "links"), tokenizer, Choice("avg", tokens), 64)
    ended = bool(specials.frame.after)
    # Where no token stands behind the text, the last unit is "cat", which is linked.
    expected = {"words": -1 if ended else 3, "clssep": 4 if ended else -1, "all": 4 if ended else 3}
    assert pair.partners[-1] == expected.get(tokens, -1)
    for side, count in ((pair.english, 2), (pair.other, 3)):
        assert len(side["unit"]) == len(side["input_ids"])
        assert set(side["unit"]) - {-1} == set(range(count + 1 + ended))


def write_tokenizer(folder, tokenizer):
    tokenizer.save(str(folder / "tokenizer.json"))
    return tokenizer.get_vocab_size()


def test_a_tokenizer_of_another_vocabulary(tmp_path):
    size = write_tokenizer(tmp_path, family_tokenizer("gpt2"))
    assert load_tokenizer(tmp_path, size + 60).get_vocab_size() == size
    for embeddings in (size - 1, 2 * size + 1):
        with pytest.raises(UserError, match=f"knows {size} pieces but the model has {embeddings} embeddings"):
            load_tokenizer(tmp_path, embeddings)


def test_special_tokens_without_an_embedding_are_never_read_from_text(tmp_path):
    """Gemma 3's token for images."""
    tokenizer = family_tokenizer("gemma3")
    model = tokenizer.get_vocab_size()
    tokenizer.add_special_tokens(["<image_soft_token>"])
    write_tokenizer(tmp_path, tokenizer)
    assert max(tokenizer.encode("the <image_soft_token>").ids) == model
    loaded = load_tokenizer(tmp_path, model)
    assert max(loaded.encode("the <image_soft_token>").ids) < model
    assert loaded.encode("the cat").ids == tokenizer.encode("the cat").ids
    tokenizer.add_tokens(["ordinary"])
    write_tokenizer(tmp_path, tokenizer)
    with pytest.raises(UserError, match="belongs to another model"):
        load_tokenizer(tmp_path, model)


@pytest.mark.parametrize("name", ["spiece.model", "tokenizer.model", "vocab.json"])
def test_no_fast_tokenizer(tmp_path, name):
    (tmp_path / name).write_bytes(b"{}")
    with pytest.raises(UserError, match=r"has neither tokenizer\.json nor vocab\.txt; .* save it as tokenizer\.json"):
        load_tokenizer(tmp_path)


def test_a_vocabulary_of_another_kind(tmp_path):
    """PhoBERT's vocab.txt, say: pieces and their counts."""
    (tmp_path / "vocab.txt").write_text("the 5\ncat 3\n")
    with pytest.raises(UserError, match=r"vocab\.txt is no vocabulary of BERT's kind: \[PAD\], \[UNK\], \[CLS\]"):
        load_tokenizer(tmp_path)
