"""Text: Moses-style tokens, a sentence splitter, and raw text for language modelling, one clean sentence a line.

Everything streams. A sentence is kept if it has 5 to 1,000 characters that show, at least half of them letters, and has
not come before. Which sentences are held out for development depends on their text alone, so the transliterated copy of
a corpus holds out the same ones.
"""

import hashlib
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from crossalign.data.conllu import read_sentences
from crossalign.data.report import Report
from crossalign.runtime.errors import UserError


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


# The rules of the sentence splitter, for paragraphs in many scripts:
# 1. After a mark of ALWAYS a sentence ends, whatever follows: these marks have no other use.
# 2. After one or several marks of USUALLY a sentence ends if white space follows and then no small letter.
# 3. Closing quotes and brackets after the mark belong to the sentence.
# 4. A full stop ends nothing after a single letter (an initial), after a number of one or two digits (an ordinal, as in
#    German and Finnish dates) or after one of a few abbreviations that are followed by capitals.
ALWAYS = "。！？｡।॥۔։።፧။។༎"
USUALLY = ".!?…؟"
CLOSERS = re.escape("\"'”’»›)]}」』）】〉》")
# Titles and the like, small letters; a few of several languages, since all languages share the rule.
_ABBREVIATIONS = """
mr mrs ms dr prof st sr jr fr hr no nr vs etc dir gen col lt sgt rev hon ca cf vol pp ed eds bzw usw z.b d.h u.a
sra dña mme mlle mgr см им ул стр проф акад тыс млн млрд т.е т.д г
"""
ABBREVIATIONS = frozenset(_ABBREVIATIONS.split())
_END = re.compile(f"[{ALWAYS}]+[{CLOSERS}]*|[{re.escape(USUALLY)}]+[{CLOSERS}]*(?=\\s)")
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


@cache
def _invisible() -> dict[int, None]:
    """Characters that carry nothing: control characters, direction marks, byte-order marks, soft hyphens.

    The zero-width joiners stay, since Persian, Kurdish and Indic spelling needs them.
    """
    codes = [code for code in range(0x10000) if unicodedata.category(chr(code)) in ("Cc", "Cf")]
    return {code: None for code in codes if code not in (0x200C, 0x200D) and not chr(code).isspace()}


@dataclass(frozen=True)
class Cleaning:
    """The bounds of a sentence, and how many to keep (0: all)."""

    min_characters: int = 5
    max_characters: int = 1000
    max_sentences: int = 0


# Chinese and Japanese do not part words: characters in a row count there, and this many for each word.
_UNSPACED, _CHARACTERS = ("zh", "ja"), 1.75


class _Spaces(dict):
    """For `str.translate`: everything but letters, their marks and digits is a space."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        return self.setdefault(code, char if unicodedata.category(char)[0] in "LMN" else " ")


_SPACES = _Spaces()


class Apart:
    """Tells sentences that share `words` words in a row with an evaluation set; case and punctuation do not count."""

    def __init__(self, files: Iterable[Path], lang: str, words: int) -> None:
        self._unspaced = lang in _UNSPACED
        self._length = round(words * _CHARACTERS) if self._unspaced else words
        self._known = {key for path in files for text in _evaluated(path) for key in self._runs(text)}

    def shares(self, sentence: str) -> bool:
        return not self._known.isdisjoint(self._runs(sentence))

    def _runs(self, text: str) -> Iterator[int]:
        words = text.lower().translate(_SPACES).split()
        row, size = "".join(words) if self._unspaced else tuple(words), self._length
        for start in range(len(row) - size + 1):
            yield hash(row[start : start + size])


def _evaluated(path: Path) -> Iterator[str]:
    """The texts of a prepared set: a treebank, entries in JSON lines, or plain lines."""
    with path.open(encoding="utf-8", newline="\n") as stream:
        if path.suffix == ".conllu":
            for sentence in read_sentences(stream, str(path), tags_only=True, several_roots=True):
                yield from (sentence.text or "", " ".join(sentence.forms))
        elif path.suffix == ".jsonl":
            for entry in map(json.loads, stream):
                yield from (entry.get(name, "") for name in ("premise", "hypothesis", "context", "question"))
                yield " ".join(entry.get("tokens", ()))
        else:
            yield from stream


def clean_sentences(
    sentences: Iterable[str], rules: Cleaning, report: Report, apart: Apart | None = None
) -> Iterator[str]:
    """The sentences that are worth keeping, white space squeezed. Stops reading at `max_sentences`."""
    # Digests of 64 bits: among 50 million lines, two share one with a probability below 1 in 10,000.
    seen: set[bytes] = set()
    for sentence in sentences:
        report.read += 1
        sentence = squeeze(sentence.translate(_invisible()))
        reason = _fault(sentence, rules)
        if not reason:
            digest = hashlib.blake2b(sentence.encode(), digest_size=8).digest()
            reason = "duplicate" if digest in seen else None
            seen.add(digest)
        if not reason and apart and apart.shares(sentence):
            reason = "in an evaluation set"
        if reason:
            report.drop(reason)
            continue
        report.kept += 1
        yield sentence
        if rules.max_sentences and report.kept >= rules.max_sentences:
            report.facts["stopped_at_max_sentences"] = True
            return


def _fault(sentence: str, rules: Cleaning) -> str | None:
    visible = len(sentence) - sentence.count(" ")
    if visible < rules.min_characters:
        return "too short"
    if visible > rules.max_characters:
        return "too long"
    letters = sum(map(str.isalpha, sentence))
    if 2 * letters < visible:
        # The vowel signs of Indic scripts are marks, not letters to isalpha.
        letters += sum(unicodedata.category(char)[0] == "M" for char in sentence)
    return None if 2 * letters >= visible else "mostly not letters"


def is_held_out(sentence: str, share: float, seed: int) -> bool:
    """Whether a sentence belongs to the development part: a fixed draw from seed and text."""
    digest = hashlib.blake2b(f"{seed}:{sentence}".encode(), digest_size=8).digest()
    return int.from_bytes(digest) < share * 2**64


def read_articles(path: str | Path, report: Report) -> Iterator[str]:
    """Sentences of the articles in a Parquet file with a column `text`, whose lines are paragraphs."""
    import pyarrow
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            if "text" not in file.schema_arrow.names:
                raise UserError(f"{path}: no column 'text'; it has {', '.join(file.schema_arrow.names)}")
            for batch in file.iter_batches(batch_size=256, columns=["text"]):
                for article in batch.column(0):
                    report.counts["articles"] += 1
                    for paragraph in (article.as_py() or "").split("\n"):
                        yield from split_sentences(paragraph)
    except (pyarrow.ArrowException, OSError) as error:
        raise UserError(f"{path}: not a readable Parquet file: {error}") from None


def read_lines(lines: Iterable[tuple[int, str]], report: Report) -> Iterator[str]:
    """Sentences of a file that has one a line; blank lines, which part documents, are counted."""
    for _, line in lines:
        if line and not line.isspace():
            yield line
        else:
            report.counts["blank_lines"] += 1
