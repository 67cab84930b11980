"""Sentences as the corpora have them: treebanks, named entities, mined pairs with their true links, running text."""

import random
from dataclasses import dataclass
from typing import Any

from demo_world.dice import between, dice, pick
from demo_world.meanings import Node, Sentence, nodes, number_nodes
from demo_world.render import Renderer, Word, text, tokens
from demo_world.sentences import Grammar


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


Tagged = list[tuple[str, str]]
PENN = {
    "NOUN": "NN", "PROPN": "NNP", "VERB": "VBD", "ADJ": "JJ", "ADV": "RB", "PRON": "PRP", "DET": "DT", "ADP": "IN",
    "NUM": "CD", "AUX": "MD", "CCONJ": "CC", "SCONJ": "IN", "PART": "RB", "PUNCT": ".", "INTJ": "UH", "X": "FW",
}  # fmt: skip
CHUNKS = dict.fromkeys(("NOUN", "PROPN", "ADJ", "DET", "NUM", "PRON"), "NP") | {"VERB": "VP", "AUX": "VP", "ADP": "PP"}


def entity_sentence(rng: random.Random, grammar: Grammar) -> Sentence:
    """A sentence with at least one name."""
    while True:
        sentence = grammar.sentence(rng)
        if any(node.name is not None for node in nodes(sentence.root)):
            return sentence


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


def iob2(words: list[Word], split: bool) -> Tagged:
    """Tokens with B- and I- tags; languages written without spaces are split into characters, as WikiANN does."""
    out: Tagged = []
    before = None
    for token in tokens(words):
        entity = token.words[-1].entity
        for form in token.form if split else [token.form]:
            inside = entity is not None and entity[0] in ("PER", "ORG", "LOC")
            out.append((form, ("I-" if entity == before else "B-") + entity[0] if inside else "O"))
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


LONG = 14


@dataclass(slots=True)
class SentencePair:
    """A scored pair: raw texts, tokens as Moses would split them, and true links between token numbers."""

    score: float
    raw: tuple[str, str]
    tokens: tuple[list[str], list[str]]
    links: list[tuple[int, int]]


def again(pair: SentencePair, time: int) -> SentencePair:
    """A pair with a number in front of both sides, so that it is another one."""
    raw, forms = tuple(f"{time} {side}" for side in pair.raw), tuple([str(time), *side] for side in pair.tokens)
    return SentencePair(pair.score, raw, forms, [(0, 0), *((a + 1, b + 1) for a, b in pair.links)])


def links(source: list[Word], target: list[Word]) -> list[tuple[int, int]]:
    """Links between written tokens that render the same meaning."""
    places: dict[tuple[int, str], list[int]] = {}
    for number, token in enumerate(tokens(target)):
        for word in token.words:
            if word.key[0] >= 0:
                places.setdefault(word.key, []).append(number)
    found = {
        (number, place)
        for number, token in enumerate(tokens(source))
        for word in token.words
        for place in places.get(word.key, ())
    }
    return sorted(found)


def _scored(left: list[Word], right: list[Word], score: float, true: list[tuple[int, int]]) -> SentencePair:
    raw, forms = zip(*((text(words), [token.form for token in tokens(words)]) for words in (left, right)), strict=True)
    return SentencePair(round(score, 6), raw, forms, true)


class Mining:
    """Draws pairs of English and one other language."""

    def __init__(self, grammar: Grammar, english: Renderer, other: Renderer, settings: dict[str, Any]) -> None:
        self.grammar, self.settings = grammar, settings
        self.renderers = (english, other)

    def draw(self, rng: random.Random, count: int) -> list[SentencePair]:
        """Pairs by falling score, as mined corpora are ordered: the worse a pair, the lower its score tends to be."""
        pairs: list[SentencePair] = []
        s = self.settings
        while len(pairs) < count:
            draw = rng.random()
            if pairs and draw < s["repeated"]:
                pairs.append(pick(rng, pairs))
                continue
            draw -= s["repeated"]
            if draw < s["wrong"]:
                pairs.append(self._wrong(rng))
            elif draw < s["wrong"] + s["partial"]:
                pairs.append(self._partial(rng))
            elif draw < s["wrong"] + s["partial"] + s["long"]:
                pairs.append(self._long(rng))
            else:
                sentence = self.grammar.sentence(rng)
                pairs.append(self._pair(sentence, sentence, 1.06 + 0.20 * rng.random()))
        order = sorted(range(count), key=lambda i: (-pairs[i].score, i))
        return [pairs[i] for i in order]

    def _pair(self, source: Sentence, target: Sentence, score: float) -> SentencePair:
        left, right = self.renderers[0].render(source), self.renderers[1].render(target)
        return _scored(left, right, score, links(left, right) if source is target else [])

    def _wrong(self, rng: random.Random) -> SentencePair:
        topic = self.grammar.topic(rng)
        score = 1.02 + 0.06 * rng.random()
        return self._pair(self.grammar.sentence(rng, topic), self.grammar.sentence(rng, topic), score)

    def _partial(self, rng: random.Random) -> SentencePair:
        """The translation leaves something out: an adverbial, a modifier, a second clause."""
        sentence = self.grammar.sentence(rng)
        left = self.renderers[0].render(sentence)
        nodes = [sentence.root, *sentence.root.kids]
        for node in nodes:
            node.kids[:] = [
                kid for kid in node.kids if kid.rel not in ("obl", "amod", "advmod", "advcl", "conj", "nmod", "nummod")
            ]
        right = self.renderers[1].render(sentence)
        return _scored(left, right, 1.03 + 0.08 * rng.random(), links(left, right))

    def _long(self, rng: random.Random) -> SentencePair:
        """Many clauses in one line, more words than aligners are given."""
        parts = []
        for _ in range(LONG):
            sentence = self.grammar.sentence(rng)
            sentence.mark = ","
            parts.append(self._pair(sentence, sentence, 0))
        parts.append(self._pair(last := self.grammar.sentence(rng), last, 0))
        raw = tuple(" ".join(part.raw[side] for part in parts) for side in (0, 1))
        forms: tuple[list[str], list[str]] = ([], [])
        true = []
        for part in parts:
            true += [(a + len(forms[0]), b + len(forms[1])) for a, b in part.links]
            forms[0].extend(part.tokens[0])
            forms[1].extend(part.tokens[1])
        return SentencePair(round(1.05 + 0.1 * rng.random(), 6), (raw[0], raw[1]), forms, true)


CONTENT = ("NOUN", "VERB", "ADJ", "ADV")


def quote_words(rng: random.Random, words: list[Word], other: Renderer, share: float) -> None:
    """Replace content words by the words of another language; names by its spelling of them."""
    for word in words:
        if word.surface is not None or rng.random() >= share:
            continue
        if word.pos in CONTENT and word.concept and word.node is not None:
            word.form = other.language.plain(word.concept)
        elif word.pos == "PROPN" and word.node is not None and word.node.name is not None and word.node.name.parts:
            word.form = other.language.name_stem(word.node.name, word.node.name.parts[0])


class Library:
    """Articles in one language."""

    def __init__(
        self, grammar: Grammar, renderer: Renderer, others: list[Renderer], settings: dict[str, Any], seed: int
    ) -> None:
        self.grammar, self.renderer, self.others = grammar, renderer, others
        self.settings, self.seed = settings, seed

    def article(self, source: str, number: int) -> tuple[str, list[str]]:
        """Title and sentences of an article. A share of the articles has the same content in every language."""
        code = self.renderer.language.code
        shared = dice(self.seed, "common", source, number).random() < self.settings["common"]
        rng = dice(self.seed, "article", source, number, "" if shared else code)
        low, high = self.settings["article"]
        topic = self.grammar.topic(rng)
        title = text(self.renderer.render(Sentence(heading(rng, self.grammar)))[:-1])
        trees = [self.grammar.sentence(rng, topic) for _ in range(between(rng, low, high))]
        mix = dice(self.seed, "mix", source, number, code)
        sentences = []
        for tree in trees:
            words = self.renderer.render(tree)
            if self.others and mix.random() < self.settings["mixed"]:
                other = self.others[0] if code != "en" and mix.random() < 0.5 else pick(mix, self.others)
                quote_words(mix, words, other, self.settings["quoted"])
            sentences.append(text(words))
        return title, sentences

    def articles(self, source: str, sentences: int, distinct: int) -> list[tuple[str, list[str]]]:
        """Articles with as many sentences as asked for, the last one cut.

        After so many distinct sentences the articles come again, with a number in front of each sentence.
        """
        out: list[tuple[str, list[str]]] = []
        missing = sentences
        while missing > max(0, sentences - distinct):
            title, lines = self.article(source, len(out))
            out.append((title, lines[:missing]))
            missing -= len(out[-1][1])
        drawn = tuple(out)
        while missing > 0:
            title, lines = drawn[len(out) % len(drawn)]
            out.append((title, [f"{len(out) // len(drawn)} {line}" for line in lines[:missing]]))
            missing -= len(lines)
        return out
