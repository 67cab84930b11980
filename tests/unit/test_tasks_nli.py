"""NLI: pairs in both families, cutting, scores, bad files."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, processors
from tokenizers_for_tests import bert_tokenizer, xlmr_tokenizer

from crossalign.engine.tokens import Specials
from crossalign.runtime.errors import UserError
from crossalign.tasks import get_task
from crossalign.tasks.nli import share

PAIR = {"id": "1", "premise": "the cat sat", "hypothesis": "John lives", "label": "neutral"}


@pytest.mark.parametrize(
    ("make", "template", "special"),
    [
        (bert_tokenizer, "[CLS] $A [SEP] $B:1 [SEP]:1", ["[CLS]", "[SEP]"]),
        (xlmr_tokenizer, "<s> $A </s> </s> $B </s>", ["<s>", "</s>"]),
    ],
)
def test_pairs_are_those_of_the_tokenizers_own_template(make, template, special):
    tokenizer = make()
    numbers = [(token, tokenizer.token_to_id(token)) for token in special]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{special[0]} $A {special[1]}", pair=template, special_tokens=numbers
    )
    encoding = tokenizer.encode(PAIR["premise"], PAIR["hypothesis"])
    (example,) = get_task("nli").examples([PAIR], tokenizer, 32)
    assert example["input_ids"] == encoding.ids
    assert example.get("token_type_ids", [0] * len(encoding.ids)) == encoding.type_ids
    assert ("token_type_ids" in example) == (make is bert_tokenizer)
    assert example["label"] == 1 and example["cut"] == 0


def test_empty_and_long_sides():
    (example,) = get_task("nli").examples([PAIR | {"hypothesis": ""}], bert_tokenizer(), 32)
    assert len(example["input_ids"]) == len(example["token_type_ids"]) == 6
    (example,) = get_task("nli").examples([PAIR | {"premise": "the cat " * 20}], bert_tokenizer(), 16)
    assert len(example["input_ids"]) == 16 and example["cut"] == 29
    # The short side is whole.
    assert sum(example["token_type_ids"]) == 3


@given(st.integers(0, 40), st.integers(0, 40), st.integers(1, 30))
def test_share_like_one_token_at_a_time(first, second, room):
    if first + second <= room:
        return
    expected = [first, second]
    while sum(expected) > room:
        expected[0 if expected[0] > expected[1] else 1] -= 1
    assert list(share(first, second, room)) == expected


def test_decode_and_score():
    task = get_task("nli")
    records = [PAIR, PAIR | {"id": "2", "label": "entailment"}, PAIR | {"id": "3", "label": "contradiction"}]
    examples = task.examples(records, bert_tokenizer(), 32)
    predictions = task.decode(examples, records, [{"label": np.int64(value)} for value in (1, 0, 0)])
    assert predictions == [1, 0, 0]
    assert task.score(records, predictions) == {"accuracy": pytest.approx(200 / 3), "n": 3}
    assert [row["right"] for row in task.details(records, predictions)] == [1, 1, 0]


def test_read(tmp_path):
    path = tmp_path / "a.jsonl"
    # A line separator inside a text is no end of line.
    pair = PAIR | {"premise": "one\u2028two\x0bthree"}
    path.write_text(json.dumps(pair, ensure_ascii=False) + "\n", encoding="utf-8")
    assert get_task("nli").read(path) == [pair]
    strange = json.dumps(PAIR | {"label": "contradictory"}) + "\n"
    path.write_text(json.dumps(PAIR) + "\n" + strange, encoding="utf-8")
    with pytest.raises(UserError, match="line 2: label 'contradictory' is none of entailment, neutral, contradiction"):
        get_task("nli").read(path)


def test_tokenizer_without_special_tokens():
    tokenizer = Tokenizer(models.WordPiece({"[CLS]": 0, "a": 1, "[UNK]": 2}, unk_token="[UNK]"))
    with pytest.raises(UserError, match=r"the tokenizer has no token that ends a text; one of \[SEP\], </s>"):
        Specials.of(tokenizer)
