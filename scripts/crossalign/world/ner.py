"""Named entities in the two original formats: WikiANN (prefixed tokens, IOB2) and CoNLL-2003 (four columns, IOB1)."""

import random

from crossalign.world.grammar import Grammar
from crossalign.world.render import Renderer
from crossalign.world.trees import Node, Sentence, number_nodes
from crossalign.world.words import Word, tokens

Tagged = list[tuple[str, str]]
PENN = {
    "NOUN": "NN", "PROPN": "NNP", "VERB": "VBD", "ADJ": "JJ", "ADV": "RB", "PRON": "PRP", "DET": "DT", "ADP": "IN",
    "NUM": "CD", "AUX": "MD", "CCONJ": "CC", "SCONJ": "IN", "PART": "RB", "PUNCT": ".", "INTJ": "UH", "X": "FW",
}  # fmt: skip
CHUNKS = {
    "NOUN": "NP",
    "PROPN": "NP",
    "ADJ": "NP",
    "DET": "NP",
    "NUM": "NP",
    "PRON": "NP",
    "VERB": "VP",
    "AUX": "VP",
    "ADP": "PP",
}


def entity_sentence(rng: random.Random, grammar: Grammar) -> Sentence:
    """A sentence with at least one name."""
    while True:
        sentence = grammar.sentence(rng)
        stack = [sentence.root]
        while stack:
            node = stack.pop()
            if node.name is not None:
                return sentence
            stack.extend(node.kids)


def news_sentence(rng: random.Random, grammar: Grammar, share: float = 0.4) -> Sentence:
    """A sentence with a name; some events and texts have names of their own, which are MISC."""
    sentence = entity_sentence(rng, grammar)
    stack = [sentence.root]
    while stack:
        node = stack.pop()
        stack.extend(node.kids)
        if node.pos == "NOUN" and node.group in ("event", "text") and not node.tense and rng.random() < share:
            node.pos, node.name, node.concept, node.kids = "PROPN", grammar.names.event(rng), "", []
    number_nodes(sentence.root)
    return sentence


def heading(rng: random.Random, grammar: Grammar) -> Node:
    """The heading of an article: a name alone."""
    draw = rng.random()
    names = grammar.names
    name = names.person(rng) if draw < 0.35 else names.place(rng) if draw < 0.7 else names.organisation(rng)
    return number_nodes(Node("", "PROPN", "root", [], "person", name=name))


def _bare(words: list[Word], split: bool) -> list[tuple[str, tuple[str, int] | None]]:
    """Tokens with entities; languages written without spaces are split into characters, as WikiANN does."""
    out: list[tuple[str, tuple[str, int] | None]] = []
    for token in tokens(words):
        entity = token.words[-1].entity
        out.extend((part, entity) for part in (token.form if split else [token.form]))
    return out


def iob2(words: list[Word], split: bool, kinds: tuple[str, ...] = ("PER", "ORG", "LOC")) -> Tagged:
    """Tokens with B- and I- tags."""
    out: Tagged = []
    before = None
    for form, entity in _bare(words, split):
        if entity is None or entity[0] not in kinds:
            out.append((form, "O"))
        else:
            out.append((form, ("I-" if entity == before else "B-") + entity[0]))
        before = entity
    return out


def wikiann_entry(rng: random.Random, grammar: Grammar, renderer: Renderer, headings: float) -> Tagged:
    """A sentence, or a heading with perhaps an explanation in brackets."""
    split = not renderer.language.spaced
    if rng.random() >= headings:
        return iob2(renderer.render(entity_sentence(rng, grammar)), split)
    out = iob2(renderer.render(Sentence(heading(rng, grammar)))[:-1], split)
    draw = rng.random()
    if draw < 0.25:
        kind = renderer.language.plain({"PER": "singer", "LOC": "village", "ORG": "film"}[out[-1][1][2:]])
        word = list(kind) if split else [kind]
        out += [(renderer.language.mark("("), "O"), *((part, "O") for part in word), (renderer.language.mark(")"), "O")]
    elif draw < 0.40:
        out = [("''", "O"), *out, ("''", "O")]
    return out


def wikiann_text(code: str, entries: list[Tagged]) -> str:
    """A file of WikiANN: `en:token TAB tag`, a blank line after each entry."""
    return "".join("".join(f"{code}:{form}\t{tag}\n" for form, tag in entry) + "\n" for entry in entries)


def conll2003_lines(words: list[Word]) -> list[str]:
    """One sentence with part of speech, chunk and entity in IOB1: B- only where two entities of a kind touch."""
    lines = []
    before = None
    for token in tokens(words):
        word = token.words[-1]
        entity = word.entity
        tag = "O"
        if entity is not None:
            touches = before is not None and before != entity and before[0] == entity[0]
            tag = ("B-" if touches else "I-") + entity[0]
        chunk = CHUNKS.get(word.pos, "O")
        lines.append(f"{token.form} {PENN[word.pos]} {'O' if chunk == 'O' else 'I-' + chunk} {tag}")
        before = entity
    return lines
