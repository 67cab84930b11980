"""Abstract sentences, the same for all languages: free ones by a grammar, and events whose truth is known."""

import random
from dataclasses import dataclass, field, replace
from typing import Any

from demo_world.dice import Bag, between, pick
from demo_world.meanings import NUMERALS, PERSON, Concepts, Name, Names, Node, Sentence, Verbs, number_nodes

FRAMES = Bag(
    ["intransitive", "motion", "transitive", "ditransitive", "clausal", "control"], [0.20, 0.16, 0.42, 0.07, 0.08, 0.07]
)
# What a noun of each class may be joined with: (preposition, class of the other noun).
PHRASES = {
    "person": [("of", "group"), ("with", "animal"), ("from", "place")],
    "animal": [("of", "person"), ("from", "place")],
    "group": [("of", "place"), ("for", "idea")],
    "text": [("about", "idea"), ("of", "person"), ("about", "event")],
    "building": [("of", "group"), ("in", "place")],
    "event": [("in", "place"), ("for", "person")],
    "idea": [("of", "person"), ("about", "animal")],
    "tool": [("of", "material"), ("for", "food")],
    "food": [("with", "food"), ("from", "place")],
    "vehicle": [("of", "person"), ("of", "group")],
    "place": [("of", "animal"), ("with", "plant")],
    "plant": [("from", "place")],
    "material": [("from", "place")],
    "time": [("of", "event")],
}
NAMED = ("person", "place", "group")


class Grammar:
    """Makes sentences in the manner of a domain."""

    def __init__(self, concepts: Concepts, names: Names, domain: dict[str, Any]) -> None:
        self.concepts, self.names, self.domain = concepts, names, domain
        self.topics = concepts.settings["topics"] if domain["topics"] == "all" else domain["topics"]

    def topic(self, rng: random.Random) -> str:
        """A topic of the domain."""
        return pick(rng, self.topics)

    def sentence(self, rng: random.Random, topic: str = "") -> Sentence:
        """One sentence; the topic is drawn when not given."""
        topic = topic or self.topic(rng)
        d = self.domain
        question = rng.random() < d["questions"]
        root = self.clause(rng, topic, "root", depth=0)
        if rng.random() < d["coordination"] and not question:
            second = self.clause(rng, topic, "conj", depth=1)
            second.link = pick(rng, ["and", "and", "but", "or"])
            root.kids.append(second)
        elif rng.random() < d["clauses"]:
            other = self.clause(rng, topic, "advcl", depth=1)
            other.link, other.front = pick(rng, ["because", "if", "while"]), rng.random() < 0.35
            root.kids.append(other)
        if question and rng.random() < 0.5:
            self._ask(rng, root)
        root.question = question
        mark = "?" if question else "!" if rng.random() < 0.02 + d["noise"] / 3 else "."
        return Sentence(number_nodes(root), mark)

    @staticmethod
    def _ask(rng: random.Random, root: Node) -> None:
        """Turn the clause into a question for its subject, its object, a place or a time."""
        for i, kid in enumerate(root.kids):
            if kid.rel == "nsubj" and rng.random() < 0.4:
                root.kids[i], root.passive = Node("who", "PRON", "nsubj", [], "person"), False
                return
            if kid.rel == "obj" and rng.random() < 0.6:
                root.kids[i], root.passive = Node("what", "PRON", "obj", [], "thing"), False
                return
        root.kids.append(Node(pick(rng, ["where", "when"]), "ADV", "advmod", [], "place"))

    def _tense(self, rng: random.Random) -> str:
        draw, past = rng.random(), self.domain["past"]
        if draw < past:
            return "past"
        return "fut" if draw < past + self.domain["future"] else "pres"

    def clause(self, rng: random.Random, topic: str, rel: str, depth: int, subject: Node | None = None) -> Node:
        """A clause with its arguments. A given `subject` is understood and not said (relative clauses, control)."""
        if subject is None and rng.random() < self.domain["copular"]:
            return self.copular(rng, topic, rel, depth)
        groups = self.concepts.by_frame["intransitive"][0]
        for _ in range(20):
            frame = FRAMES.draw(rng)
            if (depth or subject) and frame in ("clausal", "control"):
                continue
            groups = pick(rng, self.concepts.by_frame[frame])
            if subject is None or subject.group in groups.subject:
                break
        verb = self.concepts.verb(rng, groups, topic)
        d = self.domain
        node = Node(
            verb.id, "VERB", rel, [], groups.frame, tense=self._tense(rng), negated=rng.random() < d["negation"]
        )
        if rng.random() < d["modal"]:
            node.modal, node.tense = pick(rng, ["can", "must"]), "pres"
        if subject is None:
            node.kids.append(self.phrase(rng, pick(rng, groups.subject), topic, "nsubj", depth))
        self._objects(rng, node, groups, topic, depth)
        self._adjuncts(rng, node, topic, depth)
        return node

    def _objects(self, rng: random.Random, node: Node, groups: Verbs, topic: str, depth: int) -> None:
        frame = groups.frame
        if frame in ("transitive", "ditransitive"):
            node.kids.append(self.phrase(rng, pick(rng, groups.object), topic, "obj", depth))
            if frame == "ditransitive":
                node.kids.append(self.phrase(rng, "person", topic, "iobj", depth + 1))
            elif node.kids[0].rel == "nsubj" and not node.modal and rng.random() < self.domain["passive"]:
                node.passive = node.kids[0].pos != "PRON" and node.kids[-1].pos != "PRON"
        elif frame == "motion":
            place = self.phrase(rng, pick(rng, ["place", "building"]), topic, "obl", depth + 1)
            place.link = pick(rng, ["to", "from"])
            node.kids.append(place)
        elif frame == "clausal":
            clause = self.clause(rng, topic, "ccomp", depth + 1)
            clause.link = "that-clause"
            node.kids.append(clause)
        elif frame == "control":
            owner = Node("", "NOUN", "", [], group="person")
            clause = self.clause(rng, topic, "xcomp", depth + 1, subject=owner)
            clause.tense, clause.modal, clause.negated, clause.passive = "inf", "", False, False
            node.kids.append(clause)

    def _adjuncts(self, rng: random.Random, node: Node, topic: str, depth: int) -> None:
        d = self.domain
        if rng.random() < d["adverbs"]:
            kind = pick(rng, ["manner", "manner", "time"])
            node.kids.append(Node(self.concepts.adverb(rng, kind, topic).id, "ADV", "advmod", [], kind))
        if rng.random() < d["obliques"] / (1 + depth):
            kind = rng.random()
            if kind < 0.40:
                other = self.phrase(rng, pick(rng, ["place", "building"]), topic, "obl", depth + 1)
                other.link = pick(rng, ["in", "in", "on", "under"])
            elif kind < 0.60:
                other = self.year(rng)
            elif kind < 0.75 and node.group == "transitive":
                other = self.phrase(rng, "tool", topic, "obl", depth + 1)
                other.link = "with"
            else:
                other = self.phrase(rng, "person", topic, "obl", depth + 1)
                other.link = pick(rng, ["for", "with"])
            other.front = rng.random() < 0.15
            node.kids.append(other)

    def year(self, rng: random.Random) -> Node:
        """`In 1987`."""
        return Node("", "NUM", "obl", [], "time", link="in", digits=str(between(rng, 1900, 2020)))

    def copular(self, rng: random.Random, topic: str, rel: str, depth: int) -> Node:
        """Someone or something is a noun, or has a quality."""
        group = pick(rng, ["person", "person", "animal", "building", "text", "place", "group", "idea"])
        subject = self.phrase(rng, group, topic, "nsubj", depth)
        quality = self.concepts.adjective(rng, group, topic)
        if quality and rng.random() < 0.6:
            node = Node(quality.id, "ADJ", rel, [], "copular")
            if rng.random() < 0.2:
                node.kids.append(Node("very", "ADV", "advmod", [], "degree"))
        else:
            node = self.noun(rng, group, topic, rel, depth + 1)
            node.definite = "" if node.definite == "that" else node.definite
        node.tense = "past" if rng.random() < 0.4 else "pres"
        node.negated = rng.random() < self.domain["negation"]
        node.kids.insert(0, subject)
        return node

    def phrase(self, rng: random.Random, group: str, topic: str, rel: str, depth: int) -> Node:
        """A noun phrase: pronoun, name or noun with what belongs to it."""
        d, draw = self.domain, rng.random()
        if group == "person" and rel in ("nsubj", "iobj") and draw < d["pronouns"]:
            word = pick(rng, ["he", "she", "they", "i", "you", "we"])
            return Node(word, "PRON", rel, [], "person", plural=PERSON[word] >= 3)
        if group in NAMED and draw < d["pronouns"] + d["names"]:
            return self.named(rng, group, topic, rel, depth)
        node = self.noun(rng, group, topic, rel, depth)
        if depth < 2 and rng.random() < d["coordination"] / 2:
            other = self.noun(rng, group, topic, "conj", 2)
            other.link = pick(rng, ["and", "and", "or"])
            node.kids.append(other)
        return node

    def named(self, rng: random.Random, group: str, topic: str, rel: str, depth: int = 2) -> Node:
        """A proper name; people may be explained by an apposition."""
        node = Node("", "PROPN", rel, [], group, name=self.names.draw(rng, group))
        if group == "person" and depth == 0 and rng.random() < 0.08:
            other = Node(self.concepts.noun(rng, "person", topic).id, "NOUN", "appos", [], "person", definite="the")
            place = Node("", "PROPN", "nmod", [], "place", name=self.names.place(rng), link="of")
            other.kids.append(place)
            node.kids.append(other)
        return node

    def noun(self, rng: random.Random, group: str, topic: str, rel: str, depth: int) -> Node:
        """A common noun with determiner, adjectives, number, joined phrase, relative clause."""
        d = self.domain
        node = Node(self.concepts.noun(rng, group, topic).id, "NOUN", rel, [], group, plural=rng.random() < 0.3)
        draw = rng.random()
        if draw < 0.82:
            node.definite = "the" if draw < 0.5 else "a"
        else:
            node.definite = pick(rng, ["this", "that", "every", "my", "his", "our", "their"])
        if node.definite == "every":
            node.plural = False
        if rng.random() < d["numbers"] and node.definite in ("the", "a"):
            node.plural, node.definite = True, "the" if node.definite == "the" else ""
            node.kids.append(self.number(rng))
        if rng.random() < d["adjectives"]:
            quality = self.concepts.adjective(rng, group, topic)
            if quality:
                node.kids.append(Node(quality.id, "ADJ", "amod", [], "quality"))
        if depth < 2 and rng.random() < d["phrases"]:
            link, other_group = pick(rng, PHRASES[group])
            other = self.phrase(rng, other_group, topic, "nmod", depth + 1)
            other.link = link
            node.kids.append(other)
        elif depth == 0 and group in ("person", "animal", "vehicle", "event") and rng.random() < d["relatives"]:
            clause = self.clause(rng, topic, "acl:relcl", 2, subject=node)
            clause.gap, clause.passive = "nsubj", False
            node.kids.append(clause)
        return node

    def number(self, rng: random.Random) -> Node:
        """A number: in words up to ten, else in digits."""
        if rng.random() < 0.5:
            return Node(pick(rng, NUMERALS[1:]), "NUM", "nummod", [], "number")
        return Node("", "NUM", "nummod", [], "number", digits=str(between(rng, 2, 99)))


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
