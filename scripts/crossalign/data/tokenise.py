"""Moses-style tokenisation and its undoing, through sacremoses."""

import unicodedata
from collections.abc import Callable
from functools import cache


def squeeze(text: str) -> str:
    """The text with every run of white space, of any Unicode kind, as one space, and none at the ends."""
    return " ".join(text.split())


def tidy(text: str) -> str:
    """The text squeezed and without control characters, which Moses would drop."""
    if not text.isprintable():
        text = "".join(char for char in text if char.isspace() or unicodedata.category(char) != "Cc")
    return squeeze(text)


@cache
def tokeniser(lang: str) -> Callable[[str], list[str]]:
    """A function from a sentence to its words.

    Characters are not escaped (`&` stays `&`): the words go to a subword tokeniser that has never seen the escapes.
    Where Moses has no list of abbreviations for a language, the English one serves.
    """
    from sacremoses import MosesTokenizer

    moses = MosesTokenizer(lang=lang)
    # A second split: sacremoses lets some Unicode spaces through.
    return lambda text: " ".join(moses.tokenize(tidy(text), escape=False)).split()


@cache
def detokeniser(lang: str) -> Callable[[str], str]:
    """A function from a tokenised sentence, words separated by spaces, to running text."""
    from sacremoses import MosesDetokenizer

    moses = MosesDetokenizer(lang=lang)
    return lambda text: squeeze(moses.detokenize(text.split()))
