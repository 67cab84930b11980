"""Japanese to Latin by Hepburn's rules, through cutlet and the small UniDic dictionary."""

import re
from functools import cache
from typing import Any

from crossalign.data.letters import letter_table

# What the reading of single signs leaves: iteration marks and characters that the dictionary has no reading for.
_LEFT = re.compile(
    "[\u3005-\u3007\u3031-\u3035\u303b\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U0001aff0-\U0001b16f\U00020000-\U0003ffff]+"
)
UNREADABLE = "?"


@cache
def _reader() -> Any:
    import cutlet

    reader = cutlet.Cutlet()
    # カレー is karee, not curry: the spelling of other languages would be a translation.
    reader.use_foreign_spelling = False
    return reader


# Latin words and numbers in the text stay as they are.
_LATIN = re.compile(r"([0-9A-Za-z\u00c0-\u024f]+)")
# Small kana only modify a neighbour and have no reading alone, which is how files of single characters have them.
_ALONE = letter_table("っ tsu ぁ a ぃ i ぅ u ぇ e ぉ o ゃ ya ゅ yu ょ yo ゎ wa")
_ALONE |= letter_table("ッ tsu ァ a ィ i ゥ u ェ e ォ o ャ ya ュ yu ョ yo ヮ wa ツ tsu")


def _read(piece: str) -> str:
    try:
        return _reader().romaji(piece, capitalize=False).lower()
    except (KeyError, IndexError):
        # cutlet stumbles over kana that its table lacks; then sign by sign, and only the culprit is lost.
        return "".join(map(_read, piece)) if len(piece) > 1 else UNREADABLE


def japanese_to_latin(text: str) -> str:
    """Japanese text in Latin letters, words separated by spaces: 日本語の本 gives nippon go no hon.

    All letters are small: cutlet gives names capitals, which would tell a tagger of names what the dictionary knows.
    """
    if text in _ALONE:
        return _ALONE[text]
    pieces = []
    for place, piece in enumerate(_LATIN.split(text)):
        if piece:
            pieces.append(piece if place % 2 else _read(piece))
    return _LEFT.sub(UNREADABLE, " ".join(pieces))
