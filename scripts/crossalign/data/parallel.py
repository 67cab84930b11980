"""Parallel sentences: one file a language, line n of all languages being the same sentence.

Since rows must stay in step, none is ever dropped: a sentence that cannot be used is an error.
"""

from collections.abc import Iterable, Iterator

from crossalign.data.conllu import read_sentences
from crossalign.data.lines import wrong
from crossalign.data.report import Report
from crossalign.data.tables import read_table
from crossalign.data.tokenise import detokeniser, squeeze
from crossalign.runtime.errors import UserError


def read_pud(lines: Iterable[str], name: str) -> Iterator[str]:
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
        raise UserError(f"{name}: {report.kept} rows, but {rows} are asked for (--rows)")
