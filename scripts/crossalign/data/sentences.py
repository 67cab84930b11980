"""A rule-based sentence splitter for paragraphs in many scripts.

The rules, in full:

1. After 。 ！ ？ ｡ and ।, ॥, ۔, ։, ።, ፧, ။, ។, ༎ a sentence ends, whatever follows: these marks have no other use.
2. After . ! ? … ؟ (one or several) a sentence ends if white space follows and then no small letter.
3. Closing quotes and brackets after the mark belong to the sentence.
4. A full stop ends nothing after a single letter (an initial), after a number of one or two digits (an ordinal, as in
   German and Finnish dates) or after one of a few abbreviations that are followed by capitals.
"""

import re

ALWAYS = "。！？｡।॥۔։።፧။។༎"
USUALLY = ".!?…؟"
CLOSERS = "\"'”’»›)]}」』）】〉》"

# Titles and the like, small letters; a few of several languages, since all languages share the rule.
_ABBREVIATIONS = """
mr mrs ms dr prof st sr jr fr hr no nr vs etc dir gen col lt sgt rev hon ca cf vol pp ed eds bzw usw z.b d.h u.a
sra dña mme mlle mgr см им ул стр проф акад тыс млн млрд т.е т.д г
"""
ABBREVIATIONS = frozenset(_ABBREVIATIONS.split())

_ALWAYS = f"[{ALWAYS}]+[{re.escape(CLOSERS)}]*"
_USUALLY = f"[{re.escape(USUALLY)}]+[{re.escape(CLOSERS)}]*(?=\\s)"
_END = re.compile(f"{_ALWAYS}|{_USUALLY}")
_NEXT = re.compile(r"\s*(\S)")


def split_sentences(paragraph: str) -> list[str]:
    """The sentences of a paragraph, without white space at their ends; joined, they give the paragraph again."""
    sentences, start = [], 0
    for match in _END.finditer(paragraph):
        if paragraph[match.start()] in USUALLY and not _is_end(paragraph, start, match):
            continue
        sentences.append(paragraph[start : match.end()].strip())
        start = match.end()
    sentences.append(paragraph[start:].strip())
    return [sentence for sentence in sentences if sentence]


def _is_end(paragraph: str, start: int, match: re.Match[str]) -> bool:
    following = _NEXT.match(paragraph, match.end())
    if not following or following.group(1).islower():
        return not following
    if match.group()[0] != "." or match.group().startswith(".."):
        return True
    words = paragraph[max(start, match.start() - 24) : match.start()].split()
    word = words[-1].lstrip("([\"'«“") if words else ""
    initial = len(word) == 1 and word.isalpha() and not word.islower()
    ordinal = word.isdecimal() and len(word) <= 2
    return not (initial or ordinal or word.lower() in ABBREVIATIONS)
