"""Running text: articles about one topic, partly the same in all languages, with quotations of other languages."""

import random
from typing import Any

from crossalign.world.dice import between, dice, pick
from crossalign.world.grammar import Grammar
from crossalign.world.ner import heading
from crossalign.world.render import Renderer
from crossalign.world.trees import Sentence
from crossalign.world.words import Word, text

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

    def articles(self, source: str, sentences: int) -> list[tuple[str, list[str]]]:
        """Articles with as many sentences as asked for, the last one cut."""
        out: list[tuple[str, list[str]]] = []
        missing, number = sentences, 0
        while missing > 0:
            title, lines = self.article(source, number)
            out.append((title, lines[:missing]))
            missing -= len(out[-1][1])
            number += 1
        return out
