"""Events: who did what, with details. Inference and questions are made from them, so their answers are known."""

import random
from dataclasses import dataclass, field, replace

from crossalign.world.concepts import NUMERALS, Concepts, Verbs
from crossalign.world.dice import between, pick
from crossalign.world.grammar import Grammar
from crossalign.world.names import Name
from crossalign.world.trees import Node, Sentence, number_nodes

DETAILS = ["subject_quality", "object_quality", "manner", "place", "year", "count"]
QUESTION_WORDS = {"subject": "who", "object": "what", "place": "where", "year": "when", "count": "how-many"}


@dataclass(slots=True)
class Event:
    """Who did what. Values are concept ids, a name, or digits; details are optional."""

    subject: str | Name
    verb: str
    object: str
    frame: Verbs
    negated: bool = False
    details: dict[str, str | Name] = field(default_factory=dict)

    def copy(self) -> "Event":
        """An independent copy."""
        return replace(self, details=dict(self.details))


class Events:
    """Draws events and turns them into abstract sentences."""

    def __init__(self, concepts: Concepts, grammar: Grammar) -> None:
        self.concepts, self.grammar = concepts, grammar

    def draw(self, rng: random.Random, topic: str, named: float, general: float = 0.0) -> Event:
        """An event without details. `named`: share with a proper name as subject; `general`: with a general term."""
        frame = pick(rng, self.concepts.by_frame["transitive"])
        group = pick(rng, frame.subject)
        subject: str | Name = self._kind(rng, group, topic)
        if group in ("person", "group") and rng.random() < named:
            subject = self.grammar.names.draw(rng, group)
        elif rng.random() < general:
            subject = f"{group}-0"
        target = self._kind(rng, pick(rng, frame.object), topic)
        while target == subject:
            target = self._kind(rng, pick(rng, frame.object), topic)
        return Event(subject, self.concepts.verb(rng, frame, topic).id, target, frame)

    def _kind(self, rng: random.Random, group: str, topic: str) -> str:
        concept = self.concepts.noun(rng, group, topic)
        while not concept.general:
            concept = self.concepts.noun(rng, group, topic)
        return concept.id

    def group(self, value: str | Name) -> str:
        """The noun class of a subject or object."""
        return "" if isinstance(value, Name) else self.concepts.all[value].group

    def detail(self, rng: random.Random, event: Event, kind: str, topic: str) -> str | Name | None:
        """A value for a detail, or None where the event cannot have it."""
        if kind == "manner":
            return self.concepts.adverb(rng, "manner", topic).id
        if kind == "place":
            group = pick(rng, ["place", "building"])
            return self.grammar.names.place(rng) if rng.random() < 0.3 else self._kind(rng, group, topic)
        if kind == "year":
            return str(between(rng, 1900, 2020))
        if kind == "count":
            return pick(rng, NUMERALS[1:]) if rng.random() < 0.5 else str(between(rng, 11, 99))
        owner = event.subject if kind == "subject_quality" else event.object
        quality = None if isinstance(owner, Name) else self.concepts.adjective(rng, self.group(owner), topic)
        return quality.id if quality else None

    def _noun(self, value: str | Name, rel: str) -> Node:
        if isinstance(value, Name):
            return Node("", "PROPN", rel, [], "person", name=value)
        return Node(value, "NOUN", rel, [], self.group(value), definite="the")

    def build(self, event: Event, ask: str = "") -> Sentence:
        """The sentence that tells an event, or asks for one of its parts."""
        details = event.details
        root = Node(event.verb, "VERB", "root", [], "transitive", tense="past", negated=event.negated)
        subject = self._noun(event.subject, "nsubj")
        target = self._noun(event.object, "obj")
        if ask == "subject":
            subject = Node("who", "PRON", "nsubj", [], "person")
        if ask == "object":
            target = Node("what", "PRON", "obj", [], "thing")
        if "count" in details or ask == "count":
            target.plural, target.definite = True, ""
            value = "how-many" if ask == "count" else str(details["count"])
            digits = value if value.isdigit() else ""
            pos, rel = ("DET", "det") if ask == "count" else ("NUM", "nummod")
            target.kids.append(Node("" if digits else value, pos, rel, [], "number", digits=digits))
        if "subject_quality" in details and ask != "subject":
            subject.kids.append(Node(str(details["subject_quality"]), "ADJ", "amod", [], "quality"))
        if "object_quality" in details and ask != "object":
            target.kids.append(Node(str(details["object_quality"]), "ADJ", "amod", [], "quality"))
        root.kids += [subject, target]
        if "manner" in details:
            root.kids.append(Node(str(details["manner"]), "ADV", "advmod", [], "manner"))
        if ask in ("place", "year"):
            root.kids.append(Node(QUESTION_WORDS[ask], "ADV", "advmod", [], ask))
        if "place" in details and ask != "place":
            place = self._noun(details["place"], "obl")
            place.link, place.group = "in", "place"
            root.kids.append(place)
        if "year" in details and ask != "year":
            root.kids.append(Node("", "NUM", "obl", [], "time", link="in", digits=str(details["year"])))
        return Sentence(number_nodes(root), "?" if ask else ".")
