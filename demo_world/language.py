"""One language: its lexicon, its endings and its spelling, giving the written form of any word in any function."""

from functools import cache
from typing import Any

from crossalign.runtime.errors import UserError
from demo_world.dice import chance
from demo_world.lexicon import Lexicons
from demo_world.meanings import Concept, Name
from demo_world.spelling import VOWELS, script, speller

DEFAULTS: dict[str, Any] = {
    "order": "SVO", "subordinate": "", "adjective": "before", "adposition": "before", "genitive": "after",
    "relative": "after", "adverb": "before", "auxiliary": "before", "negation": "before", "negation_pos": "PART",
    "articles": [], "article_place": "before", "demonstrative": "before", "number": "before", "copula": True,
    "prodrop": False, "question": "initial", "question_particle": False, "question_marks": "",
    "relative_word": "pronoun", "subordinator": "before", "ditransitive": "obl", "passive": "none", "cases": {},
    "particles": [], "contract": [], "proclitic": [], "elision": False, "classifier": False, "genders": 1,
    "plural": "", "definite": "", "adjective_endings": {}, "article_endings": {}, "agree_definite": False, "verb": {},
    "place_ending": "ia", "front_a": "e", "linking": "", "adverb_ending": "", "relative_commas": False,
    "time_subtype": False, "to": False, "capital_nouns": False,
}  # fmt: skip
CHOICES = {
    "order": {"SVO", "SOV", "VSO"}, "subordinate": {"", "SVO", "SOV", "VSO"},
    "relative_word": {"pronoun", "mark", "none"},
    "passive": {"aux", "suffix", "prefix", "none"}, "ditransitive": {"iobj", "obl"}, "question": {"initial", "stay"},
    "negation": {"before", "after", "suffix"}, "copula": {True, False, "past"},
}  # fmt: skip
PUNCTUATION = {
    "Arabic": {",": "،", "?": "؟"},
    "Devanagari": {".": "।"},
    "Han": {",": "，", ".": "。", "?": "？", "!": "！", "(": "（", ")": "）"},
    "Kana": {",": "、", ".": "。", "?": "？", "!": "！", "(": "（", ")": "）"},
}
FRONT, BACK = frozenset("äeöüi"), frozenset("aouı")
CASED = ("Latin", "Cyrillic")
# The short article of names such as l': a final vowel gives way to a following one.
ELIDING = frozenset("aeiouhâéèêíóú")


class Language:
    """How one language forms and spells its words."""

    def __init__(self, code: str, lexicons: Lexicons) -> None:
        branch = lexicons.branches[code]
        self.code, self.seed, self.concepts = code, lexicons.seed, lexicons.concepts.all
        for key, value in branch.grammar.items():
            if key not in DEFAULTS:
                raise UserError(f"{code}: grammar: unknown key {key!r}; known: {', '.join(sorted(DEFAULTS))}")
            if key in CHOICES and value not in CHOICES[key]:
                raise UserError(
                    f"{code}: grammar: {key} is {value!r}; one of {', '.join(sorted(map(str, CHOICES[key])))} is right"
                )
        self.grammar = {**DEFAULTS, **branch.grammar}
        self.spelling, self.script = branch.spelling, script(branch.spelling)
        self.spell = speller(branch.spelling)
        self.latin = speller("english")
        self.stems = lexicons.words(code)
        self.spaced = self.script not in ("Han", "Kana")
        self.cased = self.script in CASED
        self._names: dict[tuple[Any, ...], str] = {}
        self._endings = {key: str(value).split() for key, value in self.grammar["verb"].items()}
        # A form is made once.
        for name in ("plain", "noun", "adjective", "article", "verb"):
            setattr(self, name, cache(getattr(self, name)))

    def mark(self, sign: str) -> str:
        """A punctuation mark as this script writes it."""
        if self.spelling == "sorani" and sign == ".":
            return sign
        return PUNCTUATION.get(self.script, {}).get(sign, sign)

    def attach(self, stem: str, ending: str, whole: bool = False) -> str:
        """Stem and ending, with vowel harmony and, unless the stem must stay whole, without two vowels in a row."""
        if not ending or ending == "ø":
            return stem
        after_vowel = stem[-1:] in VOWELS
        if ending[0] == "(":
            ending = ending[1] + ending[3:] if after_vowel else ending[3:]
        last = next((sound for sound in reversed(stem) if sound in FRONT or sound in BACK), "a")
        if "A" in ending or "I" in ending or "U" in ending:
            front = last in FRONT
            narrow = {"a": "ı", "ı": "ı", "o": "u", "u": "u", "ö": "ü", "ü": "ü"}.get(last, "i")
            ending = ending.replace("A", self.grammar["front_a"] if front else "a")
            ending = ending.replace("I", narrow if self.spelling == "turkish" else "i").replace(
                "U", "ü" if front else "u"
            )
        if after_vowel and ending[0] in VOWELS and len(stem) > 2 and not whole:
            stem = stem[:-1]
        link = self.grammar["linking"] if stem[-1:].isalpha() and not after_vowel and ending[0] not in VOWELS else ""
        return stem + link + ending

    @staticmethod
    def _prefix(prefix: str, stem: str) -> str:
        return "~" + prefix + stem[1:] if stem.startswith("~") else prefix + stem

    def gender(self, concept: str) -> str:
        """m, f or n, mostly told by the last sound of the stem."""
        count = self.grammar["genders"]
        if count == 1:
            return "m"
        last = self.stems[concept][-1]
        if last in "aāi":
            return "f"
        if count == 3 and last in "oe":
            return "n"
        return "f" if chance(self.seed, "gender", self.code, concept) < 0.3 else "m"

    def plain(self, concept: str) -> str:
        """The bare form, as in a dictionary (verbs: infinitive)."""
        stem = self.stems[concept]
        if self.concepts[concept].pos == "VERB":
            stem = self.attach(stem, self._ending("inf", 0))
        elif self.concepts[concept].pos == "ADV" and self.concepts[concept].root_of:
            stem = self.attach(stem, self.grammar["adverb_ending"])
        return self._cased(self.spell(stem), self.concepts[concept])

    def _cased(self, form: str, concept: Concept) -> str:
        noun = self.grammar["capital_nouns"] and concept.pos == "NOUN"
        return form[:1].upper() + form[1:] if noun else form

    def _ending(self, name: str, person: int) -> str:
        values = self._endings.get(name, [""])
        if values and values[0] == "pres":
            values = self._endings.get("pres", [""])
        return values[person] if len(values) == 6 else "".join(values[:1])

    def has_auxiliary(self, tense: str) -> bool:
        """Whether a tense is told by an auxiliary verb."""
        return self._endings.get(tense) == ["aux"]

    def noun(self, concept: str, plural: bool, definite: bool, role: str) -> str:
        """A noun with its number, definiteness and case."""
        stem = self.attach(self.stems[concept], self.grammar["plural"]) if plural else self.stems[concept]
        if definite and "suffix" in self.grammar["articles"]:
            ending = self.grammar["definite"]
            stem = self._prefix(ending[:-1], stem) if ending.endswith("-") else self.attach(stem, ending)
        return self._cased(self.spell(self.attach(stem, self.case_ending(role))), self.concepts[concept])

    def case_ending(self, role: str) -> str:
        """The ending of a role; a role told by an adposition takes the general oblique case."""
        cases = self.grammar["cases"]
        if role in cases or role in ("nom", "acc", "dat", ""):
            return cases.get(role, "")
        return cases.get("obl", "")

    def adjective(self, concept: str, gender: str, plural: bool, definite: bool) -> str:
        """An adjective that agrees with its noun as far as the language cares."""
        endings, article = self.grammar["adjective_endings"], self.grammar["definite"]
        stem = self.attach(self.stems[concept], endings.get("plural" if plural else gender, endings.get("m", "")))
        if definite and self.grammar["agree_definite"] and article.endswith("-"):
            stem = self._prefix(article[:-1], stem)
        return self.spell(stem)

    def article(self, concept: str, gender: str, plural: bool) -> str:
        """A determiner."""
        ending = self.grammar["article_endings"].get("plural" if plural else gender, "")
        return self.spell(self.attach(self.stems[concept], ending))

    def verb(self, concept: str, tense: str, person: int, negated: bool, passive: bool) -> str:
        """A verb form; tense is inf, pres, past, fut, part or rel."""
        stem = self.stems[concept]
        if passive and self.grammar["passive"] == "suffix":
            stem = self.attach(stem, self._ending("pass", 0))
        elif passive and self.grammar["passive"] == "prefix":
            stem = self._prefix(self._ending("pass", 0), stem)
        if negated and self.grammar["negation"] == "suffix":
            stem = self.attach(stem, self._ending("neg", 0))
        return self.spell(self.attach(stem, "" if self.has_auxiliary(tense) else self._ending(tense, person)))

    def name_stem(self, name: Name, part: str, role: str = "") -> str:
        """One part of a proper name: nearly the same string in all Latin scripts, transcribed in the others."""
        key = (part, name.country, name.letters, role)
        if key not in self._names:
            stem = part.lower() + (self.grammar["place_ending"] if name.country else "")
            full = self.attach(stem, self.case_ending(role), whole=True)
            if name.letters and self.script != "Cyrillic":
                form = part + (self.spell(full[len(stem) :]) if full != stem and self.spaced else "")
            elif name.letters:
                form = self.spell(stem).upper() + (self.spell(full[len(stem) :]) if full != stem else "")
            elif self.script == "Latin":
                # The stem is spelled in one way in all Latin scripts; endings are the language's own.
                form = (self.latin(part) + self.spell(full[len(part) :])).capitalize()
            else:
                form = self.spell("~" + full)
                form = form.capitalize() if self.cased else form
            self._names[key] = form
        return self._names[key]
