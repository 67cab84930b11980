"""How a vocabulary cuts words: pieces per word, unknown pieces, letters that it lacks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

from crossalign.engine.tokenizer import letters_of
from crossalign.engine.tokens import word_pieces

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# More pieces than any word has.
ALL = 10**6


class Vocabulary:
    """What the pieces of a tokenizer stand for."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        model = json.loads(tokenizer.to_str())["model"]
        token = model.get("unk_token")
        self.unknown = model.get("unk_id") if token is None else tokenizer.token_to_id(token)

    def cut(self, sentences: Sequence[Sequence[str]]) -> list[list[int]]:
        """The pieces of every word."""
        pieces = word_pieces(self.tokenizer, sentences, ALL)
        return [word for words in sentences for word in pieces(words)]

    def counts(self, words: Sequence[Sequence[int]]) -> dict[str, float]:
        """Words, pieces per word, and words with an unknown piece in percent."""
        unknown = sum(self.unknown in word for word in words)
        return {
            "words": len(words), "pieces": sum(map(len, words)) / len(words), "unknown": 100 * unknown / len(words),
        }  # fmt: skip


def coverage(tokenizer: Tokenizer, sentences: Sequence[Sequence[str]]) -> tuple[dict[str, float], list[str]]:
    """Words of a text, pieces per word, words with an unknown piece in percent, letters; and the unknown letters."""
    vocabulary, letters = Vocabulary(tokenizer), letters_of([chain.from_iterable(sentences)])
    lacking = sorted(
        letter for letter in letters if vocabulary.unknown in tokenizer.encode(letter, add_special_tokens=False).ids
    )
    return vocabulary.counts(vocabulary.cut(sentences)) | {"letters": len(letters)}, lacking
