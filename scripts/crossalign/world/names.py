"""Proper names: people, places, organisations, and events or nationalities (the MISC class of news data)."""

import random
from dataclasses import dataclass, field
from typing import Any

from crossalign.world.concepts import ORGANISATION_WORDS
from crossalign.world.dice import Bag, between, dice, pick, zipf

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
