"""Named entities: column files in, JSON lines {"id", "tokens", "tags"} with IOB2 tags out."""

import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from crossalign.data.lines import blocks, shown, wrong
from crossalign.data.report import Report
from crossalign.runtime.errors import UserError

DOCSTART = "-DOCSTART-"


@dataclass(frozen=True)
class NerFormat:
    """How a file of tokens and tags is laid out, and which entity classes it may hold."""

    separator: str
    columns: int
    classes: tuple[str, ...]
    prefixed: bool = False  # tokens start with the language code and a colon
    repairs: bool = True  # whether an I- that should be a B- is a fault (IOB2) or the convention (IOB1)


FORMATS = {
    "wikiann": NerFormat("\t", 2, ("LOC", "ORG", "PER"), prefixed=True),
    "conll2003": NerFormat(" ", 4, ("LOC", "MISC", "ORG", "PER"), repairs=False),
    # Sets that stand in for these where they cannot be had.
    "wikiann-plain": NerFormat("\t", 2, ("LOC", "ORG", "PER")),
    "wikineural": NerFormat("\t", 2, ("LOC", "MISC", "ORG", "PER")),
    "masakhaner": NerFormat(" ", 2, ("DATE", "LOC", "ORG", "PER")),
}


def tag_set(classes: Iterable[str]) -> list[str]:
    """All IOB2 tags of the classes, O first."""
    return ["O", *(f"{mark}-{name}" for name in classes for mark in "BI")]


def to_iob2(tags: list[str]) -> tuple[list[str], int]:
    """Let every entity begin with B-, as in IOB2; return the tags and how many were changed.

    In IOB1, B- is used only between two adjacent entities of one class; an IOB2 file with faults needs the same cure.
    """
    before = ["O", *tags]
    wrong_ones = [k for k, tag in enumerate(tags) if tag[0] == "I" and before[k][1:] != tag[1:]]
    if wrong_ones:
        tags = list(tags)
        for k in wrong_ones:
            tags[k] = f"B{tags[k][1:]}"
    return tags, len(wrong_ones)


def read_ner(lines: Iterable[str], name: str, form: NerFormat, lang: str, split: str, report: Report) -> Iterator[dict]:
    """Sentences of a column file. Tokens that show nothing (empty, or direction marks only) are taken out."""
    allowed = frozenset(tag_set(form.classes))
    prefix = f"{lang}:" if form.prefixed else ""
    for first, block in blocks(lines, name):
        rows = [line.split(form.separator) for line in block]
        # Whole sentences at a time, as most have no fault; only a faulty one is searched for the line.
        if any(len(row) != form.columns for row in rows) or any(row[-1] not in allowed for row in rows):
            raise _fault(first, block, name, form)
        tokens, tags = [row[0] for row in rows], [row[-1] for row in rows]
        if tokens[0] == DOCSTART:
            report.counts["document_starts"] += 1
            del tokens[0], tags[0]
            if not tokens:
                continue
        if prefix:
            for place, token in enumerate(tokens):
                if not token.startswith(prefix):
                    raise wrong(name, first + place, f"token {shown(token)} does not start with '{prefix}'")
            # A token may hold colons itself; only the first one ends the prefix.
            tokens = [token[len(prefix) :] for token in tokens]
        yield from finish_sentence(tokens, tags, f"{lang}-{split}", report, form.repairs)


def _fault(first: int, block: list[str], name: str, form: NerFormat) -> UserError:
    tags = tag_set(form.classes)
    for number, line in enumerate(block, first):
        columns = line.split(form.separator)
        if len(columns) != form.columns:
            kind = {"\t": "tabs", " ": "single spaces"}[form.separator]
            what = f"{len(columns)} columns instead of {form.columns}, separated by {kind}: {shown(line)}"
            return wrong(name, number, what)
        if columns[-1] not in tags:
            return wrong(name, number, f"tag {shown(columns[-1])} is none of {', '.join(tags)}")
    raise AssertionError("a sentence without fault")


def finish_sentence(
    tokens: list[str], tags: list[str], stem: str, report: Report, repairs: bool = True
) -> Iterator[dict]:
    """The sentence as it is written, in IOB2; none if no token is left. `repairs` as in `NerFormat`."""
    report.read += 1
    hidden = {place for place, token in enumerate(tokens) if not token.isalnum() and is_invisible(token)}
    if hidden:
        report.repair("token without visible characters removed", len(hidden))
        tokens = [token for place, token in enumerate(tokens) if place not in hidden]
        tags = [tag for place, tag in enumerate(tags) if place not in hidden]
    if not tokens:
        report.drop("no token left")
        return
    tags, changed = to_iob2(tags)
    if repairs:
        report.repair("I- without B- made B-", changed)
    else:
        report.counts["tags_made_iob2"] += changed
    report.counts["tokens"] += len(tokens)
    report.counts["entities"] += " ".join(tags).count("B-")
    report.kept += 1
    # Numbered as in the raw file, so that a dropped sentence does not shift the names of the others.
    yield {"id": f"{stem}-{report.read}", "tokens": tokens, "tags": tags}


def is_invisible(token: str) -> bool:
    """Whether a token has only spaces, control and format characters; a subword tokeniser makes nothing of it."""
    if token.isprintable():  # then the only blank character is the space
        return not token.strip()
    return all(unicodedata.category(char)[0] in "CZ" for char in token)
