"""Sentence pairs: MultiNLI, XNLI and its extension in, JSON lines {"id", "premise", "hypothesis", "label"} out."""

import hashlib
from collections.abc import Iterable, Iterator

from crossalign.data.lines import read_rows, read_table, shown, wrong
from crossalign.data.report import Report
from crossalign.runtime.errors import UserError

LABELS = ("entailment", "neutral", "contradiction")

# What the releases write for each label; "-" is a pair on which the annotators did not agree.
LABEL_NAMES = {**{label: label for label in LABELS}, "contradictory": "contradiction"}
NO_LABEL = "-"


def read_multinli(lines: Iterable[str], name: str, report: Report) -> Iterator[dict]:
    """Pairs of the MultiNLI release: JSON lines with gold_label, sentence1, sentence2, pairID."""
    for number, row in read_rows(lines, name):
        values = [row.get(key) for key in ("pairID", "sentence1", "sentence2", "gold_label")]
        if not all(isinstance(value, str) for value in values):
            raise wrong(name, number, "one of pairID, sentence1, sentence2, gold_label is missing or no text")
        yield from _pair(name, number, *values, report)


def read_xnli(lines: Iterable[str], name: str, lang: str, report: Report) -> Iterator[dict]:
    """Pairs of one language from an XNLI file, which has all languages below each other."""
    languages: set[str] = set()
    columns = ("language", "pairID", "sentence1", "sentence2", "gold_label")
    for number, (language, *values) in read_table(lines, name, columns):
        languages.add(language)
        if language == lang:
            yield from _pair(name, number, *values, report)
    if lang not in languages:
        raise UserError(f"{name}: no rows of language '{lang}'; it has {', '.join(sorted(languages)) or 'none'}")


def read_pairs(lines: Iterable[str], name: str, report: Report) -> Iterator[dict]:
    """Pairs of a file with the columns premise, hypo (or hypothesis), label; rows are numbered from 1."""
    columns = ("premise", ("hypo", "hypothesis"), "label")
    for number, (premise, hypothesis, label) in read_table(lines, name, columns):
        yield from _pair(name, number, str(number - 1), premise, hypothesis, label, report)


def _pair(
    name: str, number: int, identity: str, premise: str, hypothesis: str, label: str, report: Report
) -> Iterator[dict]:
    report.read += 1
    if label == NO_LABEL:
        report.drop("no label")
        return
    if label not in LABEL_NAMES:
        raise wrong(name, number, f"label {shown(label)} is none of {', '.join(LABEL_NAMES)}, {NO_LABEL}")
    # Kept, because test sets are compared by their published size; a tokeniser can read an empty sentence.
    report.counts["pairs_with_empty_sentence"] += not premise.strip() or not hypothesis.strip()
    report.counts[LABEL_NAMES[label]] += 1
    report.kept += 1
    yield {"id": identity, "premise": premise, "hypothesis": hypothesis, "label": LABEL_NAMES[label]}


def mix_with_english(pairs: Iterable[dict], english: Iterable[dict], seed: int, report: Report) -> Iterator[dict]:
    """Replace the premise or the hypothesis of every pair, as a fair coin falls, by the English original.

    The coin depends on seed and identifier only, so every language has the same side in English.
    """
    originals = {pair["id"]: pair for pair in english}
    for pair in pairs:
        original = originals.get(pair["id"])
        if original is None or original["label"] != pair["label"]:
            what = "no English original" if original is None else "another label in English"
            raise UserError(f"pair {shown(pair['id'])} has {what}")
        side = "premise" if coin(seed, pair["id"]) else "hypothesis"
        report.counts[f"english_{side}"] += 1
        yield {**pair, side: original[side]}


def coin(seed: int, identity: str) -> bool:
    """A fair coin, the same on every machine."""
    return bool(hashlib.sha256(f"{seed}:{identity}".encode()).digest()[0] & 1)
