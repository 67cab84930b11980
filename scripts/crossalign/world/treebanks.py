"""Treebanks in CoNLL-U, with what real files have: comments, multiword tokens, relation subtypes, missing spaces."""

import random

from crossalign.world.dice import between, pick
from crossalign.world.words import Word, text, tokens


def _line(number: int, word: Word, numbers: dict[int, int], space: bool) -> str:
    head = numbers[id(word.head)] if word.head is not None else 0
    lemma = word.lemma or word.form
    misc = "_" if space else "SpaceAfter=No"
    return f"{number}\t{word.form}\t{lemma}\t{word.pos}\t_\t{word.feats}\t{head}\t{word.rel}\t_\t{misc}"


def conllu(words: list[Word], comments: list[str]) -> str:
    """One sentence in CoNLL-U, with its closing blank line."""
    numbers = {id(word): number for number, word in enumerate(words, 1)}
    lines = [f"# {comment}" for comment in comments]
    for token in tokens(words):
        first = numbers[id(token.words[0])]
        if len(token.words) > 1:
            misc = "_" if token.space or token.words[-1] is words[-1] else "SpaceAfter=No"
            lines.append(f"{first}-{first + len(token.words) - 1}\t{token.form}" + "\t_" * 7 + f"\t{misc}")
        for word in token.words:
            space = len(token.words) > 1 or token.space or word is words[-1]
            lines.append(_line(numbers[id(word)], word, numbers, space))
    return "\n".join(lines) + "\n\n"


def pud_number(index: int) -> tuple[str, str]:
    """Document and sentence number of the n-th parallel sentence, as PUD numbers its news documents."""
    document = f"n01{index // 3 + 1:03d}"
    return document, f"{document}{11 + 2 * (index % 3):03d}"


def add_noise(rng: random.Random, words: list[Word], level: float) -> None:
    """Make the sentence a tweet: misspellings, small letters, addresses. The tree stays sound."""
    root = next(word for word in words if word.head is None)
    for word in words:
        if word.pos == "PUNCT" or word.surface is not None or rng.random() >= level:
            continue
        form = word.form.lower() if rng.random() < 0.6 else word.form
        at = int(rng.random() * len(form))
        if len(form) > 3 and rng.random() < 0.35:
            form = form[:at] + form[at + 1 :]
        elif len(form) > 2 and rng.random() < 0.25:
            form = form[: at + 1] + form[at] * between(rng, 1, 3) + form[at + 1 :]
        word.form = form
    if rng.random() < level:
        name = f"@USER{between(rng, 1, 999)}"
        words.insert(0, Word(name, name, "PROPN", "vocative", root))
    if rng.random() < level / 2:
        name = f"URL{between(rng, 1, 999)}"
        words[-1].space = True
        words.append(Word(name, name, "X", "discourse", root, space=False))
    if rng.random() < level and words[-1].pos == "PUNCT":
        words[-1].form = words[-1].lemma = pick(rng, ["!", "!!", "...", words[-1].form])


def add_interjection(rng: random.Random, words: list[Word], form: str) -> None:
    """Put an interjection and a comma in front."""
    root = next(word for word in words if word.head is None)
    oh = Word(form, form, "INTJ", "discourse", root, space=False)
    words[:0] = [oh, Word(",", ",", "PUNCT", "punct", oh)]


def sentence_comments(name: str, number: int, words: list[Word], per_document: int = 10) -> list[str]:
    """The comments of an ordinary treebank: documents, sentence numbers, text."""
    document = [f"newdoc id = {name}-{number // per_document + 1:04d}"] if number % per_document == 0 else []
    return [*document, f"sent_id = {name}-{number + 1}", f"text = {text(words)}"]
