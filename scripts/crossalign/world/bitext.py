"""Mined sentence pairs with margin scores, and the true word links behind them."""

import random
from dataclasses import dataclass
from typing import Any

from crossalign.world.dice import pick
from crossalign.world.grammar import Grammar
from crossalign.world.render import Renderer
from crossalign.world.trees import Sentence
from crossalign.world.words import Word, text, tokens

LONG = 14


@dataclass(slots=True)
class SentencePair:
    """A scored pair: raw texts, tokens as Moses would split them, and true links between token numbers."""

    score: float
    raw: tuple[str, str]
    tokens: tuple[list[str], list[str]]
    links: list[tuple[int, int]]


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


def _forms(words: list[Word]) -> list[str]:
    return [token.form for token in tokens(words)]


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
        true = links(left, right) if source is target else []
        return SentencePair(round(score, 6), (text(left), text(right)), (_forms(left), _forms(right)), true)

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
        score = 1.03 + 0.08 * rng.random()
        return SentencePair(
            round(score, 6), (text(left), text(right)), (_forms(left), _forms(right)), links(left, right)
        )

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
