"""Vocabularies from text: deterministic, complete in letters, with special tokens that the tasks know."""

import subprocess
import sys

import pytest

from crossalign.engine.tokenizer import train_vocabulary
from crossalign.engine.tokens import Specials, named_token
from crossalign.runtime.errors import UserError

LINES = ["the cat sat on the mat .", "Das Haus am See, das Haus !", "мой дом и твой дом", "我 有 一 只 猫", "éa aé"] * 3


def train(size=80, style="bert", lines=LINES):
    return train_vocabulary(lambda: lines, size, style)


@pytest.mark.parametrize("style", ["bert", "xlm-roberta"])
def test_special_tokens_are_those_the_tasks_look_for(style):
    tokenizer = train(style=style)
    specials = Specials.of(tokenizer)
    assert specials.frame.typed == (style == "bert")
    assert tokenizer.encode("the cat").ids[0] == specials.cls and tokenizer.encode("the cat").ids[-1] == specials.sep
    assert specials.pad == (0 if style == "bert" else 1) and named_token(tokenizer, "mask") == 4
    assert tokenizer.get_vocab_size() == 80
    pair = tokenizer.encode("the", "mat")
    assert pair.ids.count(specials.sep) == (2 if style == "bert" else 3)


def test_letters_case_and_accents_are_kept():
    """Every word of known letters can be spelt."""
    tokenizer = train()
    assert "[UNK]" not in tokenizer.encode("etaom дйоти Hmt 猫 sDeéé").tokens
    assert "[UNK]" in tokenizer.encode("ж").tokens
    assert tokenizer.encode("Das").ids != tokenizer.encode("das").ids
    assert tokenizer.decode(tokenizer.encode("éa").ids) == "éa"


def test_the_same_text_gives_the_same_bytes_in_every_process():
    """Ties abound: a hundred words of random letters, each twice."""
    program = (
        "import random; from crossalign.engine.tokenizer import train_vocabulary\n"
        "r = random.Random(1); words = [''.join(r.choices('abcdefghijklmnop', k=6)) for _ in range(400)]\n"
        "print(train_vocabulary(lambda: words * 2, 300).to_str())"
    )
    path = ":".join(p for p in sys.path if p)
    runs = {
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, check=True, env={"PYTHONPATH": path}
        ).stdout
        for _ in range(2)
    }
    assert len(runs) == 1 and len(runs.pop()) > 1000


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"lines": []}, "no text to make a vocabulary from"),
        ({"size": 20}, "has no room for the letters of the text; at least"),
        ({"size": 5000}, "supports a vocabulary of .* pieces only, not 5000"),
    ],
)
def test_bad_input(given, message):
    with pytest.raises(UserError, match=message):
        train(**given)


def test_a_decoder_s_text_begins_with_the_end_of_the_one_before():
    """XGLM's own tokenizer: </s> before a text, two of them between two texts, nothing behind; and nothing to mask."""
    tokenizer = train(style="xglm")
    assert [tokenizer.token_to_id(name) for name in ("<s>", "<pad>", "</s>", "<unk>")] == [0, 1, 2, 3]
    assert tokenizer.encode("cat").ids[0] == 2 and tokenizer.encode("cat").ids.count(2) == 1
    assert tokenizer.encode("ж").ids == [2, 3]
    assert tokenizer.encode("cat", "mat").ids.count(2) == 3 and tokenizer.encode("cat", "mat").ids[-1] != 2
    assert named_token(tokenizer, "mask") is None


def test_a_vocabulary_may_be_smaller_than_asked_for():
    tokenizer = train_vocabulary(lambda: LINES, 5000, up_to=True)
    assert 60 < tokenizer.get_vocab_size() < 200
    assert train_vocabulary(lambda: LINES, 80, up_to=True).to_str() == train().to_str()
