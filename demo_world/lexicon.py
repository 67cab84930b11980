"""The words of each language: roots handed down a family tree, sound laws, loans, and new coinages."""

import re
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any

from crossalign.runtime.errors import UserError
from demo_world.dice import chance, dice, pick
from demo_world.meanings import Concept, Concepts
from demo_world.spelling import speller

# Characters of Chinese words; Japanese borrows some of the words whole.
HAN_POOL = (
    "人口手足目耳心力山川水火木金土石田日月星雨雪风云天地海江河湖花草树林果米麦豆茶酒肉鱼鸟马牛羊犬虎龙虫衣布纸笔书文字画"
    "诗歌音乐车船门窗户房屋楼城市村路桥园校店家国军兵王民公私工农商学生师医法律理论数科技电机光色形声味香新旧大小长短高低"
    "多少早晚冷热干湿快慢强弱轻重黑白红青黄明暗古今東西南北左右上下中内外前後開閉出入来去行走飛食飲見聞言語思知愛惡喜怒"
    "買賣取放作用立坐起止動静勝敗始終生死老幼男女父母兄弟友客主神鬼夢刀弓旗玉珠銀銅鐵塩糖油薬病"
)
SHORT_SHAPES = ["CV", "VC", "CVC", "CV", "CVC", "CVCV"]
TONE_SIGNS = "123456"


@dataclass
class Branch:
    """A group or a language in the family tree."""

    name: str
    parent: "Branch | None"
    keep: float
    laws: list[tuple[re.Pattern[str], str]]
    phonology: dict[str, Any]
    grammar: dict[str, Any]
    loans: dict[str, float]
    spelling: str = ""
    words: dict[str, str] = field(default_factory=dict)

    def lineage(self) -> list[str]:
        """The names from this branch up to the root of its tree."""
        return [self.name] + (self.parent.lineage() if self.parent else [])


def build_branches(settings: dict[str, Any]) -> dict[str, Branch]:
    """All groups and languages, parents before children."""
    specs = {**settings["groups"], **settings["languages"]}
    branches: dict[str, Branch] = {}

    def build(name: str, below: tuple[str, ...]) -> Branch:
        if name in branches:
            return branches[name]
        if name not in specs:
            raise UserError(f"languages: {below[-1]} has the parent {name!r}, which is neither a group nor a language")
        if name in below:
            raise UserError(f"languages: {name} is its own ancestor")
        spec = specs[name]
        parent = build(spec["parent"], (*below, name)) if spec.get("parent") else None
        laws = []
        for law in spec.get("changes", []):
            old, arrow, new = law.rpartition(">")
            if not arrow or not old:
                raise UserError(f"{name}: changes: {law!r} is not of the form old>new")
            laws.append((re.compile(old), new))
        phonology = spec.get("phonology") or (parent.phonology if parent else None)
        if not phonology:
            raise UserError(f"{name}: phonology is missing (neither it nor its parents have one)")
        # A child's own settings over the parent's; `verb` endings are one system, taken whole.
        grammar = (parent.grammar if parent else {}) | spec.get("grammar", {})
        loans, spelling = spec.get("loans", {}), spec.get("spelling", "")
        branches[name] = Branch(name, parent, spec.get("keep", 0.0), laws, phonology, grammar, loans, spelling)
        return branches[name]

    for name in specs:
        build(name, ())
    return branches


class Lexicons:
    """Roots of every concept in every branch, made when first asked for."""

    def __init__(self, settings: dict[str, Any], concepts: Concepts) -> None:
        self.seed, self.concepts = settings["seed"], concepts
        self.branches = build_branches(settings)
        for name, branch in self.branches.items():
            for donor in branch.loans:
                if donor not in settings["languages"]:
                    raise UserError(f"{name}: loans: {donor!r} is not a language")
        # Words come from parents and donors; a circle would have no first word.
        sources = {name: [*each.loans, *each.lineage()[1:2]] for name, each in self.branches.items()}
        try:
            TopologicalSorter(sources).prepare()
        except CycleError as error:
            circle = " <- ".join(reversed(error.args[1]))
            raise UserError(f"loans: words go round in a circle: {circle}; leave one of these loans out") from None
        self._roots: dict[tuple[str, str], str] = {}

    def coin(self, branch: Branch, concept: Concept, salt: int = 0) -> str:
        """A new root in the sound pattern of a branch."""
        rng = dice(self.seed, "coin", branch.name, concept.id, salt)
        phonology = branch.phonology
        shapes = phonology["shapes"]
        shape = pick(rng, shapes)
        if concept.function and "consonants" in phonology and "X" not in shape:
            shape = pick(rng, SHORT_SHAPES)
        elif concept.function:
            shape = shapes[0]
        consonants, vowels = phonology.get("consonants", "").split(), phonology.get("vowels", "").split()
        out: list[str] = []
        front = None
        for sign in shape:
            if sign == "C":
                out.append(pick(rng, consonants))
            elif sign == "V":
                vowel = pick(rng, vowels)
                if "ü" in vowels:  # vowel harmony: all vowels of a root are front, or all are back
                    while front is not None and (vowel in "äeöü") != front and vowel != "i":
                        vowel = pick(rng, vowels)
                    front = vowel in "äeöü" if vowel != "i" else front
                out.append(vowel)
            elif sign == "N":
                out.append(pick(rng, [c for c in consonants if c in "mnŋ"]))
            elif sign == "K":
                out.append(pick(rng, [c for c in consonants if c in "tčk"]))
            elif sign == "H":
                out.append(pick(rng, HAN_POOL))
            elif sign == "X":
                out.append(pick(rng, TONE_SIGNS))
            else:
                out.append(sign)
        return "".join(out)

    def root(self, name: str, concept: Concept) -> str:
        """The root of a concept in a group or language: borrowed, inherited or coined."""
        key = (name, concept.id)
        if key not in self._roots:
            self._roots[key] = self._find_root(self.branches[name], concept)
        return self._roots[key]

    def _find_root(self, branch: Branch, concept: Concept) -> str:
        if concept.root_of:
            return self.root(branch.name, self.concepts.all[concept.root_of])
        if not concept.function:
            # Chinese makes its own words for international things, and gives none away but to Japanese.
            if concept.international and branch.name != "zh":
                return "~" + self._international(concept)
            draw = chance(self.seed, "loan", branch.name, concept.id)
            for donor, share in branch.loans.items():
                if draw < share:
                    loan = self.root(donor, concept)
                    return loan if donor == "zh" else "~" + loan.lstrip("~")
                draw -= share
        keep = (1 + branch.keep) / 2 if concept.function else branch.keep
        if branch.parent and chance(self.seed, "keep", branch.name, concept.id) < keep:
            root = self.root(branch.parent.name, concept)
            if not root.startswith("~"):
                for pattern, new in branch.laws:
                    root = pattern.sub(new, root) or root
            return root
        return self.coin(branch, concept)

    def _international(self, concept: Concept) -> str:
        rng = dice(self.seed, "international", concept.id)
        consonants, vowels = "ptkbdgmnlrsf", "aeio"
        word = "".join(pick(rng, consonants) + pick(rng, vowels) for _ in range(2))
        return word + pick(rng, consonants) + pick(rng, ["", "a", "ia"])

    def _homonym(self, code: str, concept: Concept, others: list[Concept]) -> Concept | None:
        """An unrelated word of another part of speech that happens to sound alike, for a share of the words."""
        if chance(self.seed, "homonym", code, concept.id) >= self.concepts.settings["homonyms"]:
            return None
        choice = [other for other in others if other.pos != concept.pos]
        return choice[int(chance(self.seed, "twin", code, concept.id) * len(choice))] if choice else None

    def words(self, code: str) -> dict[str, str]:
        """Stem (in sounds) of every concept in a language; words that sound alike do so on purpose."""
        branch = self.branches[code]
        if branch.words:
            return branch.words
        spell = speller(branch.spelling)
        taken: dict[str, str] = {}
        content: list[Concept] = []
        for concept in self.concepts.all.values():
            stem, salt = self.root(code, concept), 0
            owner = concept.root_of or concept.id
            if not concept.function and not concept.root_of:
                twin = self._homonym(code, concept, content)
                if twin is not None:
                    branch.words[concept.id] = branch.words[twin.id]
                    continue
                content.append(concept)
            while taken.setdefault(spell(stem), owner) != owner or not spell(stem):
                salt += 1
                # Lengthening keeps a cognate recognisable; coining anew is the last resort.
                stem = self.coin(branch, concept, salt) if salt > 3 or concept.function else stem + "aei"[salt - 1]
            branch.words[concept.id] = stem
        return branch.words
