"""Extractive question answering: short paragraphs of events, and questions about one part of one event."""

import hashlib
from dataclasses import dataclass
from typing import Any

from crossalign.world.dice import between, dice, pick
from crossalign.world.events import QUESTION_WORDS, Event, Events
from crossalign.world.render import Renderer
from crossalign.world.trees import Sentence
from crossalign.world.words import Word, text, tokens


@dataclass(slots=True)
class Question:
    """A question about the part `ask` of the event number `about` of the paragraph."""

    id: str
    sentence: Sentence
    about: int
    ask: str


@dataclass(slots=True)
class Paragraph:
    """Sentences with their questions, the same in every language."""

    sentences: list[Sentence]
    events: list[Event]
    questions: list[Question]


class Reading:
    """Makes paragraphs with questions."""

    def __init__(self, events: Events, settings: dict[str, Any], seed: int) -> None:
        self.events, self.settings, self.seed = events, settings, seed

    def paragraph(self, *keys: Any) -> Paragraph:
        """The paragraph with these keys. No two events share verb, so every question has one answer."""
        rng = dice(self.seed, "qa", *keys)
        topic = self.events.grammar.topic(rng)
        low, high = self.settings["sentences"]
        wanted, drawn = between(rng, low, high), []
        while len(drawn) < wanted:
            event = self.events.draw(rng, topic, named=0.7)
            if any(event.verb == other.verb for other in drawn):
                continue
            for kind in ("place", "year", "count", "object_quality", "manner"):
                value = self.events.detail(rng, event, kind, topic) if rng.random() < 0.4 else None
                if value is not None:
                    event.details[kind] = value
            drawn.append(event)
        questions: list[Question] = []
        asked: set[tuple[int, str]] = set()
        while len(questions) < self.settings["questions"]:
            about = int(rng.random() * wanted)
            ask = pick(rng, [k for k in QUESTION_WORDS if k in ("subject", "object") or k in drawn[about].details])
            if (about, ask) in asked:
                continue
            asked.add((about, ask))
            digest = hashlib.sha256("|".join(map(str, (*keys, about, ask))).encode()).hexdigest()
            questions.append(Question(digest[:24], self._ask(drawn[about], ask), about, ask))
        return Paragraph([self.events.build(event) for event in drawn], drawn, questions)

    def _ask(self, event: Event, ask: str) -> Sentence:
        """The question leaves out the other details: it is no copy of the sentence that answers it."""
        bare = event.copy()
        bare.details = {kind: value for kind, value in event.details.items() if kind == ask}
        return self.events.build(bare, ask)


def _target(sentence: Sentence, ask: str) -> int:
    """The number of the node that answers."""
    for kid in sentence.root.kids:
        if (ask, kid.rel) in (("subject", "nsubj"), ("object", "obj")):
            return kid.id
        if kid.rel == "obl" and (ask, kid.group) in (("place", "place"), ("year", "time")):
            return kid.id
        for number in kid.kids if ask == "count" and kid.rel == "obj" else ():
            if number.rel == "nummod":
                return number.id
    raise AssertionError(f"no {ask} in the sentence")


def _belongs(word: Word, target: int) -> bool:
    """Inside the phrase of the answer, its own adposition and numeral classifier left out."""
    if word.key in ((target, "case"), (target, "clf")):
        return False
    at: Word | None = word
    while at is not None:
        if at.key == (target, "") or (at.key[0] == target and at.entity is not None):
            return True
        at = at.head
    return False


def locate(words: list[Word], sentence: Sentence, ask: str) -> tuple[int, int]:
    """Start and end of the answer in the text of the sentence."""
    target = _target(sentence, ask)
    at, spans = 0, []
    for token in tokens(words):
        if all(_belongs(word, target) for word in token.words):
            spans.append((at, at + len(token.form)))
        at += len(token.form) + token.space
    if not spans:
        # The whole answer is written together with a preposition (Arabic): take the written word.
        at = 0
        for token in tokens(words):
            if any(_belongs(word, target) for word in token.words):
                spans.append((at, at + len(token.form)))
            at += len(token.form) + token.space
    return spans[0][0], spans[-1][1]


def squad_paragraph(paragraph: Paragraph, context: Renderer, question: Renderer) -> dict[str, Any]:
    """The paragraph in SQuAD's form, context and questions in the given languages."""
    rendered = [context.render(sentence) for sentence in paragraph.sentences]
    parts = [text(words) for words in rendered]
    gap = " " if context.language.spaced else ""
    starts = [sum(len(part) + len(gap) for part in parts[:i]) for i in range(len(parts))]
    whole = gap.join(parts)
    qas = []
    for item in paragraph.questions:
        start, end = locate(rendered[item.about], paragraph.sentences[item.about], item.ask)
        start, end = starts[item.about] + start, starts[item.about] + end
        answers = [{"answer_start": start, "text": whole[start:end]}]
        qas.append({"answers": answers, "question": text(question.render(item.sentence)), "id": item.id})
    return {"context": whole, "qas": qas}
