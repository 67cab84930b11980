"""How a vocabulary cuts words: pieces per word, unknown pieces, letters spelt in bytes, pieces that languages share."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from crossalign.engine.tokenizer import letters_of
from crossalign.engine.tokens import word_pieces

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# More pieces than any word has.
ALL = 10**6
BYTE = re.compile(r"<0x[0-9A-F]{2}>")


class Vocabulary:
    """What the pieces of a tokenizer stand for."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        described = json.loads(tokenizer.to_str())
        model = described["model"]
        token = model.get("unk_token")
        self.unknown = model.get("unk_id") if token is None else tokenizer.token_to_id(token)
        steps = json.dumps([described.get("pre_tokenizer"), described.get("decoder")])
        self._bytes = _byte_letters() if '"ByteLevel"' in steps else None

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

    def is_partial(self, piece: int) -> bool:
        """Whether a piece is less than a letter."""
        return self._text(piece) is None

    def has_letter(self, piece: int) -> bool:
        text = self._text(piece)
        return text is not None and any(map(str.isalpha, text))

    def _text(self, piece: int) -> str | None:
        """What a piece adds to a text; None where that is bytes of a letter."""
        token = self.tokenizer.id_to_token(piece) or ""
        if self._bytes is None:
            return None if BYTE.fullmatch(token) else token
        try:
            return bytes(self._bytes[sign] for sign in token).decode()
        except KeyError:  # an added token stands for itself
            return token
        except UnicodeDecodeError:
            return None


def _byte_letters() -> dict[str, int]:
    """The letters by which byte-level vocabularies write bytes."""
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    return {letter: byte for byte, letter in bytes_to_unicode().items()}


def audit(
    tokenizer: Tokenizer, texts: Mapping[str, Iterable[Sequence[str]]], reference: str
) -> dict[str, dict[str, float]]:
    """For each language: words, pieces per word, and in percent words with an unknown piece, words with a piece of
    less than a letter, and pieces (those with a letter, each counted once) that the reference language uses too."""
    vocabulary = Vocabulary(tokenizer)
    cut = {lang: vocabulary.cut(list(sentences)) for lang, sentences in texts.items()}
    pieces = {lang: set(chain.from_iterable(words)) for lang, words in cut.items()}
    used = {lang: set(filter(vocabulary.has_letter, some - {vocabulary.unknown})) for lang, some in pieces.items()}
    partial = set(filter(vocabulary.is_partial, set().union(*pieces.values())))
    return {
        lang: {
            **vocabulary.counts(words),
            "bytes": 100 * sum(not partial.isdisjoint(word) for word in words) / len(words),
            "shared": 100 * len(used[lang] & used[reference]) / max(1, len(used[lang])),
        }
        for lang, words in cut.items()
    }


def coverage(tokenizer: Tokenizer, sentences: Sequence[Sequence[str]]) -> tuple[dict[str, float], list[str]]:
    """Words of a text, pieces per word, words with an unknown piece in percent, letters; and the unknown letters."""
    vocabulary, letters = Vocabulary(tokenizer), letters_of([chain.from_iterable(sentences)])
    lacking = sorted(
        letter for letter in letters if vocabulary.unknown in tokenizer.encode(letter, add_special_tokens=False).ids
    )
    return vocabulary.counts(vocabulary.cut(sentences)) | {"letters": len(letters)}, lacking
