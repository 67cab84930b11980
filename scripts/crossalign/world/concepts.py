"""The meanings that all languages share: classes of nouns, frames of verbs, opposites, topics, function words."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from crossalign.world.dice import Bag, chance, zipf

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
