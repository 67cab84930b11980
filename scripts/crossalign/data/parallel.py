"""Parallel sentences, and small public sources of text and of sentence pairs.

Of parallel sets line n is the same sentence in all languages, so no row is ever dropped: a sentence that cannot be used
is an error. The small sources are read by the folder that they lie in:

bible       one verse a line, line n being the same verse in all languages; blank where a translation lacks it,
            `<range>` where it is part of the verse before
ntrex       one sentence a line, lines parallel in all languages
tatoeba     language, language, sentence, sentence; one of the two languages is English
masakhaner  one word and its tag a line, a blank line after each sentence
open        one sentence or paragraph a line
"""

from collections.abc import Iterable, Iterator
from itertools import zip_longest
from pathlib import Path

from crossalign.data.conllu import read_sentences
from crossalign.data.lines import Source, blocks, read_table, shown, wrong
from crossalign.data.report import Report
from crossalign.data.text import detokeniser, squeeze
from crossalign.runtime.errors import UserError


def read_pud(lines: Iterable[str], name: str, lang: str = "") -> Iterator[str]:
    """The text of every sentence of a treebank, in the order of the file.

    The parallel treebanks keep one order; identifiers would not do, since the Polish one numbers its sentences anew.
    """
    for sentence in read_sentences(lines, name, Report()):
        if sentence.text is None:
            raise UserError(f"{name}: sentence {sentence.sent_id} has no '# text' comment")
        yield squeeze(sentence.text)


def read_extension(lines: Iterable[str], name: str, lang: str) -> Iterator[str]:
    """The hypotheses of an XNLI extension file, with the spaces of the Moses tokeniser taken back."""
    detokenise = detokeniser(lang)
    for number, (hypothesis,) in read_table(lines, name, [("hypo", "hypothesis")]):
        text = detokenise(hypothesis)
        if not text:
            raise wrong(name, number, "an empty hypothesis")
        yield text


def read_column(lines: Iterable[str], name: str, lang: str) -> Iterator[str]:
    """One language of a table that has a column for each."""
    for number, (sentence,) in read_table(lines, name, [lang]):
        text = squeeze(sentence)
        if not text:
            raise wrong(name, number, f"an empty sentence in column '{lang}'")
        yield text


def first_rows(sentences: Iterable[str], rows: int, name: str, report: Report) -> Iterator[str]:
    """The first `rows` sentences, all of them for 0. The file must have so many: fewer would not be parallel."""
    for sentence in sentences:
        report.read += 1
        if rows and report.kept == rows:
            report.drop("after the rows asked for")
            continue
        report.kept += 1
        yield sentence
    if report.kept < rows:
        raise UserError(
            f"{name}: {report.kept} rows, but {rows} are asked for (anc.sentences of the config, or --rows)"
        )


# A verse that its translation has put together with the one before.
MERGED = "<range>"
# Files of these folders have the same lines in every language.
PARALLEL = ("bible", "ntrex")


def read_text(path: Path, lang: str) -> Iterator[str]:
    """The raw sentences of one file in one language."""
    source = Source(path)
    match path.parent.name:
        case "bible" | "ntrex" | "open":
            for _, line in source.lines():
                if line.strip() and line != MERGED:
                    yield line
        case "tatoeba":
            for _, english, other in read_tatoeba(source):
                yield english if lang == "en" else other
        case "masakhaner":
            with source.open() as stream:
                for _, block in blocks(stream, source.name):
                    yield " ".join(line.rpartition(" ")[0] for line in block)
        case folder:
            known = ", ".join((*PARALLEL, "open", "tatoeba", "masakhaner"))
            raise UserError(f"{path}: no text is known to lie in a folder '{folder}'; known are {known}")


def read_tatoeba(source: Source) -> Iterator[tuple[int, str, str]]:
    """Line number, English and the other sentence, whichever comes first in the file."""
    for number, line in source.lines():
        fields = line.split("\t")
        if len(fields) != 4:
            what = f"{len(fields)} fields instead of two languages, two sentences: {shown(line)}"
            raise wrong(source.name, number, what)
        english = [place for place in (0, 1) if fields[place].partition("_")[0] == "eng"]
        if len(english) != 1:
            what = f"one of the languages must be eng; found {shown(fields[0])}, {shown(fields[1])}"
            raise wrong(source.name, number, what)
        yield number, fields[2 + english[0]], fields[3 - english[0]]


def read_pairs(paths: Iterable[Path]) -> Iterator[tuple[str, str]]:
    """Sentence pairs of files read one after another; two with parallel lines stand together, English first."""
    waiting: Path | None = None
    for path in paths:
        if path.parent.name == "tatoeba":
            for _, english, other in read_tatoeba(Source(path)):
                yield english, other
        elif path.parent.name not in PARALLEL:
            raise UserError(f"{path}: no sentence pairs; they are read from {', '.join((*PARALLEL, 'tatoeba'))}")
        elif waiting is None:
            waiting = path
        else:
            yield from _parallel(waiting, path)
            waiting = None
    if waiting is not None:
        raise UserError(f"{waiting}: the file with the same lines in the other language is not given")


def _parallel(english: Path, other: Path) -> Iterator[tuple[str, str]]:
    """Pairs of two files in step. A verse that one side has put together with its neighbour pairs with nothing."""
    if english.parent != other.parent:
        raise UserError(f"{english} and {other} lie in different folders: their lines cannot be parallel")
    rows = list(zip_longest(*([line for _, line in Source(path).lines()] for path in (english, other))))
    if None in (rows[-1] if rows else ()):
        raise UserError(f"{english} and {other} differ in their number of lines: they are not parallel")
    merged = [MERGED in row for row in rows] + [False]
    for place, (left, right) in enumerate(rows):
        if left.strip() and right.strip() and not merged[place] and not merged[place + 1]:
            yield left, right
