"""The meanings that all languages share: concepts, proper names, and abstract sentences as trees over them."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from demo_world.dice import Bag, between, chance, dice, pick, zipf

# Function words by part of speech. Their names are English glosses for the reader only.
FUNCTION_WORDS = {
    "DET": ["the", "a", "this", "that", "every", "how-many"],
    "ADP": ["of", "in", "on", "from", "to", "with", "for", "under", "about", "by", "nom", "acc", "dat"],
    "PRON": ["i", "you", "he", "she", "it", "we", "they", "which", "who", "what", "my", "your", "his", "our", "their"],
    "AUX": ["be", "will", "can", "must", "did", "does", "get", "not-aux"],
    "CCONJ": ["and", "or", "but"],
    "SCONJ": ["because", "if", "while", "that-clause"],
    "PART": ["not", "to-do", "question", "relative"],
    "ADV": ["where", "when", "very", "also"],
    "NUM": ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"],
    "INTJ": ["oh", "wow", "yes", "well"],
    "NOUN": ["piece"],
}
# One word for two functions, as English `to` and `that`: only the context tells the part of speech.
SAME_WORD = {"to-do": "to", "that-clause": "that", "while": "when", "my": "i", "our": "we"}
NUMERALS = FUNCTION_WORDS["NUM"]
PERSON = {"i": 0, "you": 1, "he": 2, "she": 2, "it": 2, "we": 3, "they": 5}
# Roles in which organisations appear as part of a name, and those of places.
ORGANISATION_WORDS = ["company", "university", "club", "museum", "party", "bank"]
PLACE_WORDS = ["river", "lake", "island", "new", "north"]
GENRE_WORDS = ["singer", "village", "film", "year"]


@dataclass(frozen=True, slots=True)
class Concept:
    """One meaning."""

    id: str
    pos: str
    group: str
    topic: str = ""
    opposite: str = ""
    general: str = ""
    # The word whose root this one has: a verb a noun's, an adverb an adjective's.
    root_of: str = ""
    international: bool = False
    function: bool = False


@dataclass(frozen=True)
class Verbs:
    """Verbs of one frame with the noun classes they go with."""

    frame: str
    subject: tuple[str, ...]
    object: tuple[str, ...]
    members: tuple[Concept, ...] = field(repr=False)


class Concepts:
    """All meanings of the world, and weighted draws from them."""

    def __init__(self, settings: dict[str, Any], seed: int) -> None:
        self.settings, self.seed = settings, seed
        self.all: dict[str, Concept] = {}
        self.nouns: dict[str, list[Concept]] = {}
        self.verbs: list[Verbs] = []
        self.adjectives: dict[str, list[Concept]] = {name: [] for name in settings["nouns"]}
        self.adverbs: dict[str, list[Concept]] = {}
        self._bags: dict[tuple[str, str], Bag] = {}
        for pos, words in FUNCTION_WORDS.items():
            for word in words:
                self._add(Concept(word, pos, "function", function=True, root_of=SAME_WORD.get(word, "")))
        for word in ORGANISATION_WORDS + PLACE_WORDS + GENRE_WORDS:
            self._add(Concept(word, "ADJ" if word in ("new", "north") else "NOUN", "naming"))
        self._make_nouns()
        self._make_verbs()
        self._make_modifiers()

    def _add(self, concept: Concept) -> Concept:
        self.all[concept.id] = concept
        return concept

    def _content(self, group: str, number: int, pos: str, **more: Any) -> Concept:
        name = f"{group}-{number}"
        topics = self.settings["topics"]
        topic = topics[int(chance(self.seed, "topic", name) * len(topics))]
        international = chance(self.seed, "international", name) < self.settings["international"]
        return self._add(Concept(name, pos, group, topic=topic, international=international, **more))

    def _make_nouns(self) -> None:
        for group, size in self.settings["nouns"].items():
            kinds = [self._content(group, n, "NOUN", general=f"{group}-0" if n else "") for n in range(size)]
            self.nouns[group] = kinds

    def _make_verbs(self) -> None:
        free_nouns = [noun for group in ("tool", "food", "text", "event", "idea") for noun in self.nouns[group][1:]]
        for index, spec in enumerate(self.settings["verbs"]):
            group = f"{spec['frame']}{index}"
            members = []
            for n in range(spec["size"]):
                root = ""
                if free_nouns and chance(self.seed, "conversion", group, n) < self.settings["conversion"]:
                    root = free_nouns.pop(int(chance(self.seed, "root", group, n) * len(free_nouns))).id
                members.append(self._content(group, n, "VERB", opposite=f"{group}-{n ^ 1}", root_of=root))
            subject, target = tuple(spec["subject"]), tuple(spec.get("object", ()))
            self.verbs.append(Verbs(spec["frame"], subject, target, tuple(members)))

    def _make_modifiers(self) -> None:
        for index, spec in enumerate(self.settings["adjectives"]):
            group = f"quality{index}"
            members = [self._content(group, n, "ADJ", opposite=f"{group}-{n ^ 1}") for n in range(spec["size"])]
            for noun_class in spec["of"]:
                self.adjectives[noun_class].extend(members)
        for group, size in self.settings["adverbs"].items():
            # Adverbs of manner are made from adjectives.
            roots = sorted({c.id: c for cs in self.adjectives.values() for c in cs}) if group == "manner" else []
            names = [roots[int(chance(self.seed, "adverb", n) * len(roots))] if roots else "" for n in range(size)]
            self.adverbs[group] = [self._content(f"{group}ly", n, "ADV", root_of=name) for n, name in enumerate(names)]

    def _bag(self, key: tuple[str, str], members: list[Concept]) -> Bag:
        if key not in self._bags:
            pull = self.settings["topic_pull"]
            weights = [w * (pull if c.topic == key[1] else 1) for c, w in zip(members, zipf(len(members)), strict=True)]
            self._bags[key] = Bag(members, weights)
        return self._bags[key]

    def noun(self, rng: Any, group: str, topic: str) -> Concept:
        """A noun of a class; general terms are as likely as any kind."""
        return self._bag(("noun " + group, topic), self.nouns[group]).draw(rng)

    def verb(self, rng: Any, verbs: Verbs, topic: str) -> Concept:
        """A verb of a frame."""
        return self._bag(("verb " + verbs.members[0].group, topic), list(verbs.members)).draw(rng)

    def adjective(self, rng: Any, group: str, topic: str) -> Concept | None:
        """An adjective that suits a noun class, if there is one."""
        members = self.adjectives.get(group)
        return self._bag(("adjective " + group, topic), members).draw(rng) if members else None

    def adverb(self, rng: Any, group: str, topic: str) -> Concept:
        """An adverb of manner or time."""
        return self._bag(("adverb " + group, topic), self.adverbs[group]).draw(rng)

    @cached_property
    def by_frame(self) -> dict[str, list[Verbs]]:
        """Verb groups by frame."""
        frames: dict[str, list[Verbs]] = {}
        for verbs in self.verbs:
            frames.setdefault(verbs.frame, []).append(verbs)
        return frames


CONSONANTS, VOWELS = "bdfgklmnprstvz", "aeiou"
FIRST_ENDINGS = ["a", "ia", "en", "o", "i", "is", "ina", "el"]
LAST_ENDINGS = ["son", "ov", "ini", "ez", "er", "man", "ski", "eau"]
PLACE_ENDINGS = ["burg", "ton", "vil", "grad", "stan", "polis", "dal", "ona"]


@dataclass(slots=True)
class Name:
    """A name with its class. Parts are stems in sounds; `word` is a translated part such as `university`."""

    kind: str
    parts: list[str] = field(default_factory=list)
    word: str = ""
    place: "Name | None" = None
    # Place names in -ia end as each language likes it: -ie, -ien, -ija.
    country: bool = False
    letters: bool = False


class Names:
    """The name pool of the world."""

    def __init__(self, settings: dict[str, Any], seed: int) -> None:
        self.fresh = settings["fresh"]
        self.bags: dict[str, Bag] = {}
        for kind in ("first", "last", "place", "organisation"):
            rng = dice(seed, "names", kind)
            stems: dict[str, None] = {}
            while len(stems) < settings[kind]:
                stems[self._stem(rng, kind)] = None
            self.bags[kind] = Bag(list(stems), zipf(len(stems)))

    def _stem(self, rng: random.Random, kind: str) -> str:
        if kind == "organisation":
            return "".join(pick(rng, CONSONANTS) + pick(rng, VOWELS) for _ in range(2)) + pick(rng, "xnksr").replace(
                "x", "ks"
            )
        endings = {"first": FIRST_ENDINGS, "last": LAST_ENDINGS, "place": PLACE_ENDINGS}[kind]
        start = pick(rng, CONSONANTS) + pick(rng, VOWELS) + pick(rng, CONSONANTS)
        if rng.random() < 0.4:
            start += pick(rng, VOWELS) + pick(rng, CONSONANTS)
        return start + pick(rng, endings)

    def stem(self, rng: random.Random, kind: str) -> str:
        """A stem of that kind: well known, or made up on the spot."""
        return self._stem(rng, kind) if rng.random() < self.fresh else self.bags[kind].draw(rng)

    def person(self, rng: random.Random) -> Name:
        """First name, last name or both; some last names are names of places."""
        last = self.stem(rng, "place" if rng.random() < 0.08 else "last")
        draw = rng.random()
        if draw < 0.25:
            return Name("PER", [last])
        first = self.stem(rng, "first")
        return Name("PER", [first]) if draw < 0.35 else Name("PER", [first, last])

    def place(self, rng: random.Random) -> Name:
        """A town, a country, or a river, lake or island."""
        draw = rng.random()
        if draw < 0.55:
            return Name("LOC", [self.stem(rng, "place")])
        if draw < 0.80:
            stem = pick(rng, CONSONANTS) + pick(rng, VOWELS) + self.stem(rng, "organisation")[2:]
            return Name("LOC", [stem], country=True)
        word = pick(rng, ["river", "lake", "island", "new", "north"])
        return Name("LOC", [self.stem(rng, "place")], word=word)

    def organisation(self, rng: random.Random) -> Name:
        """A company with its kind, an institution of a place, or letters."""
        draw = rng.random()
        if draw < 0.40:
            stem = self.stem(rng, "organisation") if rng.random() < 0.8 else self.stem(rng, "last")
            return Name("ORG", [stem], word=pick(rng, ORGANISATION_WORDS))
        if draw < 0.75:
            return Name("ORG", word=pick(rng, ORGANISATION_WORDS), place=Name("LOC", [self.stem(rng, "place")]))
        if draw < 0.90:
            return Name("ORG", [self.stem(rng, "organisation")])
        return Name("ORG", ["".join(pick(rng, "BCDFGKLMNPRST") for _ in range(between(rng, 2, 4)))], letters=True)

    def event(self, rng: random.Random) -> Name:
        """A cup or a work of art: MISC in news data."""
        return Name("MISC", [self.stem(rng, pick(rng, ["organisation", "place"]))], word=pick(rng, ["film", "year"]))

    def draw(self, rng: random.Random, group: str) -> Name:
        """A name for a noun class: person, place or group."""
        if group == "person":
            return self.person(rng)
        return self.place(rng) if group in ("place", "building") else self.organisation(rng)


@dataclass(slots=True, eq=False)
class Node:
    """A word of the abstract tree. Articles, cases and auxiliaries are features; languages make words of them."""

    concept: str
    pos: str
    rel: str
    kids: "list[Node]"
    group: str = ""
    plural: bool = False
    definite: str = ""
    tense: str = ""
    modal: str = ""
    negated: bool = False
    passive: bool = False
    name: Name | None = None
    # The adposition of an oblique, or the conjunction of a clause or conjunct.
    link: str = ""
    front: bool = False
    # In a relative clause: which role the described noun plays in it.
    gap: str = ""
    question: bool = False
    digits: str = ""
    id: int = -1


@dataclass(slots=True)
class Sentence:
    """A tree and its final mark."""

    root: Node
    mark: str = "."


def nodes(root: Node) -> Iterator[Node]:
    """The nodes below one and itself, parents before children."""
    yield root
    for kid in root.kids:
        yield from nodes(kid)


def number_nodes(root: Node) -> Node:
    """Give the nodes their numbers: the identity that translations share."""
    for number, node in enumerate(nodes(root)):
        node.id = number
    return root
