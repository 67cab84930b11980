"""Natural language inference and question answering, made from events, so that labels and answers are known.

Inference: the hypothesis is drawn first, the label independently of it, and the premise is then found for both; so
nothing in the hypothesis alone tells the label.
"""

import hashlib
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from demo_world.dice import between, dice, pick
from demo_world.meanings import Concepts, Sentence
from demo_world.render import Renderer, Word, text, tokens
from demo_world.sentences import DETAILS, QUESTION_WORDS, Event, Events

LABELS = ("entailment", "neutral", "contradiction")
# One event has one place, one year and one number: two different values cannot both be true.
SINGLE = ("place", "year", "count")


@dataclass(slots=True)
class Pair:
    """A premise and a hypothesis with the events behind them."""

    premise: Event
    hypothesis: Event
    label: str
    sentences: tuple[Sentence, Sentence]


def _compare_nouns(concepts: Concepts, premise: Any, hypothesis: Any) -> str:
    if premise == hypothesis:
        return "same"
    kinds = concepts.all
    if isinstance(premise, str) and isinstance(hypothesis, str) and premise in kinds and hypothesis in kinds:
        if kinds[premise].general == hypothesis:
            return "follows"
        if kinds[hypothesis].general == premise:
            return "precedes"
    return "clash"


def _compare_bodies(concepts: Concepts, premise: Event, hypothesis: Event) -> str:
    """How what was done in the premise relates to what was done in the hypothesis.

    same, follows (premise implies hypothesis), precedes (the reverse), clash (they exclude each other), open.
    """
    if premise.verb == hypothesis.verb:
        found = {"same"}
    else:
        found = {"clash" if concepts.all[premise.verb].opposite == hypothesis.verb else "open"}
    found.add(_compare_nouns(concepts, premise.object, hypothesis.object))
    for kind in DETAILS:
        mine, theirs = premise.details.get(kind), hypothesis.details.get(kind)
        if mine == theirs:
            continue
        if theirs is None:
            found.add("follows")
        elif mine is None:
            found.add("precedes")
        elif kind in SINGLE or (isinstance(mine, str) and concepts.all[mine].opposite == theirs):
            found.add("clash")
        else:
            found.add("open")
    found.discard("same")
    if "open" in found and concepts.all[premise.verb].opposite != hypothesis.verb and premise.verb != hypothesis.verb:
        return "open"
    if "clash" in found:
        return "clash"
    if not found:
        return "same"
    return found.pop() if len(found) == 1 else "open"


def judge(concepts: Concepts, premise: Event, hypothesis: Event) -> str:
    """The label of a pair, from the events alone. Both sentences are about the same event and the same participants."""
    subject = _compare_nouns(concepts, premise.subject, hypothesis.subject)
    if subject == "clash":
        return "neutral" if premise.negated or hypothesis.negated else "contradiction"
    if subject == "precedes":
        return "neutral"
    body = _compare_bodies(concepts, premise, hypothesis)
    if not premise.negated and not hypothesis.negated:
        return {"clash": "contradiction", "same": "entailment", "follows": "entailment"}.get(body, "neutral")
    if not premise.negated:
        return {"same": "contradiction", "follows": "contradiction", "clash": "entailment"}.get(body, "neutral")
    if not hypothesis.negated:
        return "contradiction" if body in ("same", "precedes") else "neutral"
    return "entailment" if body in ("same", "precedes") else "neutral"


class Inference:
    """Draws pairs."""

    def __init__(self, concepts: Concepts, events: Events, settings: dict[str, Any], seed: int) -> None:
        self.concepts, self.events, self.settings, self.seed = concepts, events, settings, seed

    def pair(self, *keys: Any) -> Pair:
        """The pair with these keys: the same in every language."""
        rng = dice(self.seed, "nli", *keys)
        label = pick(rng, LABELS)
        while True:
            topic = self.events.grammar.topic(rng)
            hypothesis = self._hypothesis(rng, topic)
            for _ in range(60):
                premise = self._change(rng, hypothesis, topic)
                if premise != hypothesis and judge(self.concepts, premise, hypothesis) == label:
                    sentences = (self.events.build(premise), self.events.build(hypothesis))
                    return Pair(premise, hypothesis, label, sentences)

    def _hypothesis(self, rng: random.Random, topic: str) -> Event:
        event = self.events.draw(rng, topic, named=0.25, general=self.settings["general"])
        event.negated = rng.random() < self.settings["negated"]
        wanted = 1 + int(rng.random() * self.settings["details"])
        while len(event.details) < wanted:
            self._add(rng, event, topic)
        return event

    def _add(self, rng: random.Random, event: Event, topic: str) -> None:
        kind = pick(rng, DETAILS)
        value = None if kind in event.details else self.events.detail(rng, event, kind, topic)
        if value is not None:
            event.details[kind] = value

    def _change(self, rng: random.Random, event: Event, topic: str) -> Event:
        """The premise: the hypothesis with one or more changes."""
        event = event.copy()
        for _ in range(1 + int(rng.random() * 2.2)):
            change = pick(rng, self.settings["changes"])
            if change == "negate":
                event.negated = not event.negated
            elif change == "add":
                self._add(rng, event, topic)
            elif change == "drop" and event.details:
                del event.details[pick(rng, sorted(event.details))]
            elif change == "verb":
                event.verb = self.concepts.all[event.verb].opposite
            elif change == "object":
                event.object = self._sister(rng, event.object, topic)
            elif change == "detail" and event.details:
                self._other_detail(rng, event, topic)
            elif change == "subject" and isinstance(event.subject, str):
                general = self.concepts.all[event.subject].general
                event.subject = general or self._sister(rng, event.subject, topic)
        return event

    def _sister(self, rng: random.Random, concept: str, topic: str) -> str:
        """Another kind of the same class."""
        group = self.concepts.all[concept].group
        while True:
            other = self.concepts.noun(rng, group, topic)
            if other.general and other.id != concept:
                return other.id

    def _other_detail(self, rng: random.Random, event: Event, topic: str) -> None:
        kind = pick(rng, sorted(event.details))
        value = event.details[kind]
        if kind.endswith("quality"):
            event.details[kind] = self.concepts.all[str(value)].opposite
            return
        other = self.events.detail(rng, event, kind, topic)
        if other is not None:
            event.details[kind] = other


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

    def spans(inside: Callable[[Iterable[bool]], bool]) -> list[tuple[int, int]]:
        at, found = 0, []
        for token in tokens(words):
            if inside(_belongs(word, target) for word in token.words):
                found.append((at, at + len(token.form)))
            at += len(token.form) + token.space
        return found

    # Where the whole answer is written together with a preposition (Arabic), the written word is taken.
    places = spans(all) or spans(any)
    return places[0][0], places[-1][1]


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
