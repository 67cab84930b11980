"""Raw text for language modelling: articles or lines in, one clean sentence a line out.

Everything streams. A sentence is kept if it has 5 to 1,000 characters that show, at least half of them letters, and has
not come before. Which sentences are held out for development depends on their text alone, so the transliterated copy of
a corpus holds out the same ones.
"""

import hashlib
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from crossalign.data.report import Report
from crossalign.data.seen import SeenTexts
from crossalign.data.sentences import split_sentences
from crossalign.data.tokenise import squeeze
from crossalign.runtime.errors import UserError

MIN_CHARACTERS = 5
MAX_CHARACTERS = 1000

# Invisible characters that carry nothing: control characters, direction marks, byte-order marks, soft hyphens. The
# zero-width joiners stay, since Persian, Kurdish and Indic spelling needs them.
_INVISIBLE = {
    code: None
    for code in range(0x10000)
    if unicodedata.category(chr(code)) in ("Cc", "Cf") and code not in (0x200C, 0x200D) and not chr(code).isspace()
}


@dataclass(frozen=True)
class Cleaning:
    """The bounds of a sentence, and how many to keep (0: all)."""

    min_characters: int = MIN_CHARACTERS
    max_characters: int = MAX_CHARACTERS
    max_sentences: int = 0


def clean_sentences(sentences: Iterable[str], rules: Cleaning, report: Report) -> Iterator[str]:
    """The sentences that are worth keeping, white space squeezed. Stops reading at `max_sentences`."""
    seen = SeenTexts()
    for sentence in sentences:
        report.read += 1
        sentence = squeeze(sentence.translate(_INVISIBLE))
        reason = _fault(sentence, rules)
        if not reason and not seen.add(sentence):
            reason = "duplicate"
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


def split_parts(
    sentences: Iterable[str], share: float, seed: int, change: Callable[[str], str] | None
) -> Iterator[tuple[bool, str]]:
    """Each sentence with whether it is held out; `change` (a transliteration) comes after the draw."""
    for sentence in sentences:
        yield is_held_out(sentence, share, seed), change(sentence) if change else sentence
