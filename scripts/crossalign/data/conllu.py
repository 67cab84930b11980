"""Treebanks: CoNLL-U in, the same format with syntactic words only out.

Multiword ranges and empty nodes are skipped, relation subtypes are cut off, lemmas, features and the enhanced
graph are left out. A prepared file is CoNLL-U too, so one reader serves both. Treebanks that were released without
training data are cut into folds: of five, three train, one is for development and one for testing; each sentence is
tested in exactly one of the five rotations.
"""

import hashlib
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO

from crossalign.data.lines import blocks, shown, wrong
from crossalign.data.report import Names, Report

_TAGS = "ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X"
UPOS = frozenset(_TAGS.split()) | {"_"}  # "_" stands for a word that the annotators left untagged

# The first edition of UD called co-ordinating conjunctions CONJ; the second only renamed the tag.
RENAMED_TAGS = {"CONJ": "CCONJ"}

NO_HEAD = -1  # the head of a word in a file that has tags and no trees; written as "_"


@dataclass(slots=True)
class Sentence:
    """The syntactic words of one sentence; `heads` count from 1, 0 is the root."""

    sent_id: str
    text: str | None
    forms: list[str]
    upos: list[str]
    heads: list[int]
    deprels: list[str]


def read_sentences(
    lines: Iterable[str],
    name: str,
    report: Report | None = None,
    tags_only: bool = False,
    several_roots: bool = False,
    names: Names | None = None,
) -> Iterator[Sentence]:
    """Sentences of a CoNLL-U stream called `name` in messages.

    `tags_only` accepts files without trees (HEAD and DEPREL are `_`); `several_roots` accepts sentences made of several
    trees, as treebanks of tweets have them. Sentences without an identifier, or with one already used, get a new one;
    pass `names` to keep them apart over several files.
    """
    report = report if report is not None else Report()
    names = names or Names(report)
    for first, block in blocks(lines, name):
        yield _read_block(first, block, name, report, tags_only, several_roots, names)


def read_tagged(lines: Iterable[str], name: str, report: Report) -> Iterator[Sentence]:
    """Sentences of lines that hold words, a tab and tags; a multiword is tagged `_`, and its words follow."""
    for number, line in enumerate(lines, 1):
        forms, tab, tags = line.rstrip("\n").partition("\t")
        words, marks = forms.split(" "), tags.split(" ")
        if not tab or len(words) != len(marks):
            raise wrong(name, number, f"{len(words)} words and {len(marks)} tags: {shown(line)}")
        kept = [(word, tag) for word, tag in zip(words, marks, strict=True) if tag != "_"]
        report.read += 1
        report.counts["multiword_tokens"] += len(words) - len(kept)
        if not kept:
            report.drop("no word with a tag")
            continue
        count = len(kept)
        sentence = Sentence(str(number), None, *map(list, zip(*kept, strict=True)), [NO_HEAD] * count, ["_"] * count)
        _check_words(sentence, [number] * count, name, report)
        yield sentence


def _read_block(
    first: int, block: list[str], name: str, report: Report, tags_only: bool, several_roots: bool, names: Names
) -> Sentence:
    sentence = Sentence("", None, [], [], [], [])
    numbers: list[int] = []
    for number, line in enumerate(block, first):
        if line[0] == "#":
            _read_comment(line, sentence, report)
            continue
        columns = line.split("\t")
        if len(columns) != 10:
            raise wrong(name, number, f"{len(columns)} columns instead of 10, separated by tabs: {shown(line)}")
        index, form, _, tag, _, _, head, deprel, _, _ = columns
        if index != str(len(numbers) + 1):
            if _is_skipped(index, report):
                continue
            raise wrong(name, number, f"word number {shown(index)} where {len(numbers) + 1} should stand")
        numbers.append(number)
        sentence.forms.append(form)
        sentence.upos.append(tag)
        sentence.deprels.append(deprel)
        try:
            sentence.heads.append(NO_HEAD if tags_only and head == "_" else int(head))
        except ValueError:
            hint = " (for a file without trees ask for tags only)" if head == "_" else ""
            raise wrong(name, number, f"head {shown(head)} is not a number{hint}") from None
    if not numbers:
        raise wrong(name, first, "a sentence without words")
    report.read += 1
    _check_words(sentence, numbers, name, report)
    _check_tree(sentence, numbers, name, report, several_roots)
    if not sentence.sent_id:
        report.repair("sentence without identifier numbered")
    sentence.sent_id = names.take(sentence.sent_id or str(report.read))
    return sentence


def _read_comment(line: str, sentence: Sentence, report: Report) -> None:
    if line.startswith("# text ="):
        sentence.text = line[8:].strip() or None
    elif line.startswith("# sent_id"):
        # The first edition of UD wrote it without the equals sign.
        sentence.sent_id = line[9:].strip().removeprefix("=").strip()
    else:
        report.counts["comments"] += 1


def _is_skipped(index: str, report: Report) -> bool:
    """Whether the line is a multiword range or an empty node, which are no words of the tree."""
    for mark, kind in (("-", "multiword_tokens"), (".", "empty_nodes")):
        first, _, second = index.partition(mark)
        if first.isdecimal() and second.isdecimal():
            report.counts[kind] += 1
            return True
    return False


def _check_words(sentence: Sentence, numbers: list[int], name: str, report: Report) -> None:
    report.counts["words"] += len(numbers)
    for place, form in enumerate(sentence.forms):
        if not form or form.isspace():
            raise wrong(name, numbers[place], "a word without a form")
        if not form.isprintable() or " " in form:
            report.counts["forms_with_spaces"] += any(map(str.isspace, form))
        tag = sentence.upos[place]
        if tag not in UPOS:
            if tag not in RENAMED_TAGS:
                raise wrong(name, numbers[place], f"{shown(tag)} is none of the 17 universal tags")
            sentence.upos[place] = RENAMED_TAGS[tag]
            report.repair(f"tag {tag} renamed {RENAMED_TAGS[tag]}")
        elif tag == "_":
            report.counts["words_without_tag"] += 1
        deprel = sentence.deprels[place]
        if ":" in deprel:
            sentence.deprels[place] = deprel.partition(":")[0]
            report.counts["subtypes_cut"] += 1
        if sentence.deprels[place] in ("", "_") and sentence.heads[place] != NO_HEAD:
            raise wrong(name, numbers[place], "a head without a relation")


def _check_tree(sentence: Sentence, numbers: list[int], name: str, report: Report, several_roots: bool) -> None:
    heads = sentence.heads
    if NO_HEAD in heads:
        if any(head != NO_HEAD for head in heads):
            raise wrong(name, numbers[heads.index(NO_HEAD)], "a word without a head in a sentence that has heads")
        report.counts["sentences_without_tree"] += 1
        return
    for place, head in enumerate(heads):
        if not 0 <= head <= len(heads):
            raise wrong(name, numbers[place], f"head {head} in a sentence of {len(heads)} words")
    roots = heads.count(0)
    if roots > 1:
        second = heads.index(0, heads.index(0) + 1)
        if not several_roots:
            raise wrong(name, numbers[second], "a second root; allow several roots if the treebank means it")
        report.counts["sentences_with_several_roots"] += 1
    # No root at all means a cycle, which the walk finds.
    loop = _find_cycle(heads)
    if loop:
        raise wrong(name, numbers[loop - 1], f"word {loop} is its own ancestor")


def _find_cycle(heads: list[int]) -> int:
    """The number of a word that is among its own ancestors, 0 if there is none."""
    walk = [0] * (len(heads) + 1)  # in which walk a word was first met
    for start in range(1, len(heads) + 1):
        word = start
        while word and not walk[word]:
            walk[word] = start
            word = heads[word - 1]
        if word and walk[word] == start:
            return word
    return 0


def write_sentences(sentences: Iterable[Sentence], stream: IO[str]) -> int:
    """Write CoNLL-U with the columns ID, FORM, UPOS, HEAD, DEPREL filled; return how many sentences."""
    count = 0
    for count, sentence in enumerate(sentences, 1):  # noqa: B007 (returned)
        lines = [f"# sent_id = {sentence.sent_id}\n"]
        if sentence.text is not None:
            lines.append(f"# text = {sentence.text}\n")
        words = zip(sentence.forms, sentence.upos, sentence.heads, sentence.deprels, strict=True)
        for index, (form, tag, head, deprel) in enumerate(words, 1):
            lines.append(f"{index}\t{form}\t_\t{tag}\t_\t_\t{'_' if head == NO_HEAD else head}\t{deprel}\t_\t_\n")
        lines.append("\n")
        stream.writelines(lines)
    return count


PARTS = ("train", "dev", "test")


def assign_folds(keys: Sequence[Hashable], folds: int, seed: int) -> list[int]:
    """The fold, 0 to folds - 1, of every item. Items with equal keys share a fold, so none is trained on and tested.

    The order is drawn from digests of seed and position: the same on every machine and Python.
    """
    first: dict[Hashable, int] = {}
    for position, key in enumerate(keys):
        first.setdefault(key, position)
    drawn = sorted(first.values(), key=lambda position: (_draw(seed, position), position))
    fold_of = {position: rank % folds for rank, position in enumerate(drawn)}
    return [fold_of[first[key]] for key in keys]


def _draw(seed: int, position: int) -> bytes:
    return hashlib.sha256(f"{seed}:{position}".encode()).digest()


def part_of(fold: int, rotation: int, folds: int) -> str:
    """What a fold serves for in rotation 1 to `folds`: `test`, `dev` (the next fold, round and round) or `train`."""
    return {0: "test", 1: "dev"}.get((fold - (rotation - 1)) % folds, "train")
