"""From abstract trees to sentences of a language: function words, word order, agreement, written words and tokens."""

from dataclasses import dataclass, field
from typing import Any

from demo_world.language import ELIDING, Language
from demo_world.meanings import PERSON, Node, Sentence
from demo_world.spelling import VOWELS

CLAUSES = {
    "SVO": {"nsubj": -500, "iobj": 200, "obj": 300, "obl": 400, "xcomp": 350, "ccomp": 500, "advcl": 600},
    "SOV": {"nsubj": -500, "obl": -400, "iobj": -350, "obj": -300, "xcomp": -150, "ccomp": -250, "advcl": -550},
    "VSO": {"nsubj": 100, "iobj": 250, "obj": 300, "obl": 400, "xcomp": 350, "ccomp": 500, "advcl": 600},
}
QUESTION_WORDS = ("who", "what", "where", "when")


class Order:
    """Places for one language and one kind of clause."""

    def __init__(self, grammar: dict[str, Any], clause: str) -> None:
        def side(key: str, before: int, after: int) -> int:
            return before if grammar[key] == "before" else after

        self.clause = dict(CLAUSES[clause])
        final = clause == "SOV"
        if final and grammar["subordinator"] == "before":
            # A conjunction at the front of the clause: the clause itself follows the verb.
            self.clause |= {"ccomp": 500, "advcl": 600}
        self.clause["advmod"] = -200 if final else side("adverb", -80, 250)
        self.question_first = grammar["question"] == "initial"
        self.adposition = side("adposition", -70, 22)
        self.article = side("article_place", -60, 15)
        self.demonstrative = side("demonstrative", -55, 16)
        self.auxiliary = side("auxiliary", -150, 50)
        self.negation = -100 if grammar["negation"] == "before" else 60
        self.copula = 30 if final else -120
        self.subordinator = side("subordinator", -900, 800)
        self.infinitive = -160
        self.conjunction = -950
        self.relative_pronoun = -890
        self.relative_mark = 850
        self.question_particle = 850
        self.noun = {
            "amod": side("adjective", -20, 10),
            "nummod": side("number", -40, 12),
            "det": side("number", -40, 12),
            "nmod": side("genitive", -50, 20),
            "acl:relcl": side("relative", -65, 40),
            "appos": 50,
            "conj": 900,
            "advmod": -30,
        }

    def place(self, kid: Node) -> int:
        """Where a dependent stands."""
        if kid.rel == "conj":
            return 900
        if kid.rel == "nmod" and kid.link != "of" and self.adposition < 0:
            return 25
        if kid.rel == "discourse":
            return -970
        if kid.rel in ("nsubj", "obj", "iobj", "obl", "xcomp", "ccomp", "advcl") or (
            kid.rel == "advmod" and kid.group != "degree"
        ):
            asked = kid.concept in QUESTION_WORDS or any(child.concept == "how-many" for child in kid.kids)
            if kid.front or (asked and self.question_first):
                return -880
            return self.clause[kid.rel]
        return self.noun.get(kid.rel, 30)


@dataclass(slots=True, eq=False)
class Word:
    """A syntactic word of a rendered sentence. `key` names the meaning it renders, in all languages alike."""

    form: str
    lemma: str
    pos: str
    rel: str
    head: "Word | None"
    key: tuple[int, str] = (-1, "")
    concept: str = ""
    feats: str = "_"
    entity: tuple[str, int] | None = None
    space: bool = True
    # Words of one group are written together: `surface` stands at the first, the others have an empty one.
    surface: str | None = None
    node: Node | None = None


@dataclass(slots=True)
class Token:
    """What is written between spaces and punctuation: one word, or several written together."""

    form: str
    words: list[Word] = field(default_factory=list)
    space: bool = True


def join_words(language: Language, words: list[Word]) -> None:
    """Spaces, contractions, clitics, elision, capitals."""
    g, lang = language.grammar, language
    # A closing comma before another mark is dropped.
    keep = [
        w
        for w, after in zip(words, [*words[1:], None], strict=True)
        if not (w.key[1] == "comma" and after is not None and after.pos == "PUNCT")
    ]
    words[:] = keep[1:] if keep and keep[0].key[1] == "comma" else keep
    for word, after in zip(words, words[1:], strict=False):
        if after.pos == "PUNCT" or not lang.spaced:
            word.space = False
        if after.pos == "PUNCT" or word.surface is not None or not after.form[:1].isalpha():
            continue
        if word.pos == "ADP" and word.concept in g["contract"] and after.concept == "the":
            base = word.form[:-1] if word.form[-1] in VOWELS and len(word.form) > 1 else word.form
            word.surface, after.surface = base + after.form, ""
        elif g["elision"] and word.concept == "the" and word.form[-1] in VOWELS and after.form[:1].lower() in ELIDING:
            word.form, word.space = word.form[:-1] + "'", False
    for i in range(len(words) - 2, -1, -1) if g["proclitic"] else ():
        word, after = words[i], words[i + 1]
        if word.concept in g["proclitic"] and word.pos in ("ADP", "CCONJ", "DET") and after.form[:1].isalpha():
            word.surface, after.surface = word.form + (after.surface or after.form), ""
    words[-1].space = False
    if lang.cased:
        first = next((word for word in words if word.pos != "PUNCT"), None)
        if first is not None:
            first.form = first.form[:1].upper() + first.form[1:]
            first.surface = first.surface and first.surface[:1].upper() + first.surface[1:]


def is_under(word: Word | None, top: Word) -> bool:
    """Whether a word is `top` or depends on it, directly or not."""
    while word is not None:
        if word is top:
            return True
        word = word.head
    return False


def tokens(words: list[Word]) -> list[Token]:
    """The written tokens of a sentence: contractions and clitics are one token."""
    out: list[Token] = []
    for word in words:
        if word.surface == "" and out:
            out[-1].words.append(word)
            out[-1].space = word.space
        else:
            out.append(Token(word.surface or word.form, [word], word.space))
    return out


def text(words: list[Word]) -> str:
    """The sentence as it is written."""
    return "".join(token.form + (" " if token.space else "") for token in tokens(words)).strip()


def _title(language: Language, form: str) -> str:
    return form[:1].upper() + form[1:] if language.cased else form


def name_words(language: Language, node: Node, head: Word | None, role: str) -> tuple[Word, list[Word]]:
    """The head word of a name, and all its words in order; they form one entity."""
    name, g, entity = node.name, language.grammar, (node.name.kind, node.id)

    def word(form: str, rel: str, over: Word | None, kind: str, concept: str = "", pos: str = "PROPN") -> Word:
        return Word(form, form, pos, rel, over, (node.id, kind), concept, "_", entity)

    if name.place is not None:
        top = word(_title(language, language.noun(name.word, False, False, role)), node.rel, head, "")
        has_case = "of" in g["cases"]
        place = word(
            language.name_stem(name.place, name.place.parts[0], "of" if has_case else ""), "nmod", top, "place"
        )
        of = [] if has_case else [word(language.plain("of"), "case", place, "of", "of", "ADP")]
        phrase = [place, *of] if g["adposition"] == "after" else [*of, place]
        words = [*phrase, top] if g["genitive"] == "before" else [top, *phrase]
    elif len(name.parts) == 2:
        top = word(language.name_stem(name, name.parts[0]), node.rel, head, "")
        last = word(language.name_stem(name, name.parts[1], role), "flat", top, "last")
        last.lemma = language.name_stem(name, name.parts[1])
        words = [top, last]
    else:
        top = word(language.name_stem(name, name.parts[0], role), node.rel, head, "")
        words = [top]
        if name.word:
            rel = "amod" if name.word in ("new", "north") else "compound"
            kind = word(_title(language, language.plain(name.word)), rel, top, "word", name.word)
            # Lake Foo everywhere; Foo Company where adjectives precede, Compagnie Foo where they follow.
            first = name.kind != "ORG" or g["adjective"] == "after"
            words = [kind, top] if first else [top, kind]
    top.node = node
    return top, words


FEATURES = {"past": "Tense=Past", "pres": "Tense=Pres", "fut": "Tense=Fut", "inf": "VerbForm=Inf"}
CASE_NAMES = {"acc": "Acc", "dat": "Dat", "of": "Gen", "in": "Loc", "from": "Abl", "with": "Ins", "to": "Lat"}
POSSESSIVE = ("my", "your", "his", "our", "their")


class Renderer:
    """Renders sentences in one language."""

    def __init__(self, language: Language) -> None:
        self.language, self.g = language, language.grammar
        self.orders = {False: Order(language.grammar, language.grammar["order"])}
        self.orders[True] = Order(language.grammar, self.g["subordinate"] or self.g["order"])
        self._punctuation = language.mark

    def render(self, sentence: Sentence) -> list[Word]:
        """The words of a sentence in order, with final mark."""
        words = self._emit(sentence.root, None, None)
        root = next(word for word in words if word.head is None)
        marks = self.g["question_marks"] if sentence.mark == "?" else ""
        if len(marks) == 2:
            words.insert(0, Word(marks[0], marks[0], "PUNCT", "punct", root, space=False))
        self._comma_after_fronted(words, sentence.root)
        mark = self._punctuation(sentence.mark)
        words.append(Word(mark, mark, "PUNCT", "punct", root, (0, "end")))
        join_words(self.language, words)
        return words

    def _word(self, concept: str, pos: str, rel: str, head: Word, kind: str, form: str | None = None) -> Word:
        plain = self.language.plain(concept)
        return Word(plain if form is None else form, plain, pos, rel, head, (head.key[0], kind), concept)

    def _emit(self, node: Node, head: Word | None, parent: Node | None, shared: str = "") -> list[Word]:
        """Words of a subtree in order. `shared` is the role a conjunct has in common with its head."""
        if node.name is not None:
            return self._emit_name(node, head, parent)
        role = shared or self._role(node, parent)
        word = Word("", "", node.pos, node.rel, head, (node.id, ""), node.concept, node=node)
        # Each piece: place in the sentence, then words. Clauses place things farther out than noun phrases do.
        pieces: list[tuple[int, list[Word]]] = [(0, [word])]
        predicate = bool(node.tense) or node.pos == "VERB"
        subordinate = node.rel in ("ccomp", "xcomp", "advcl", "acl:relcl")
        order = self.orders[subordinate]
        passive = self._passive(node)
        subject = next((kid for kid in node.kids if kid.rel == ("obj" if passive else "nsubj")), None)
        if node.pos in ("NOUN", "PRON", "NUM", "DET"):
            self._noun_words(node, word, role, pieces, order, predicate)
        elif node.pos == "ADJ" and not predicate:
            self._adjective(node, word, parent)
        elif node.pos == "ADV":
            word.form = word.lemma = self.language.plain(node.concept)
        if predicate:
            self._predicate_words(node, word, subject, parent, pieces, order)
        if node.rel == "conj":
            pieces.append((order.conjunction, [self._word(node.link, "CCONJ", "cc", word, "cc")]))
        for kid in node.kids:
            if self.g["prodrop"] and kid.rel == "nsubj" and kid.pos == "PRON" and kid.concept not in ("who", "what"):
                continue
            words = self._emit(kid, word, node, role if kid.rel == "conj" and not kid.tense else "")
            self._relate(words, word, kid, passive)
            if kid.rel == "appos" or (kid.rel == "acl:relcl" and self.g["relative_commas"]):
                words = self._commas(words, both=True)
            elif kid.rel == "conj" and kid.tense:
                words = self._commas(words, both=False)
            pieces.append((order.place(kid), words))
        pieces.sort(key=lambda piece: piece[0])
        return [item for _, part in pieces for item in part]

    def _passive(self, node: Node) -> bool:
        return node.passive and self.g["passive"] != "none"

    def _role(self, node: Node, parent: Node | None) -> str:
        if node.rel == "obj":
            return "nom" if self._passive(parent) else "acc"
        if node.rel == "iobj":
            return "dat" if self.g["ditransitive"] == "iobj" else "to"
        if node.rel == "nsubj":
            return "by" if parent is not None and self._passive(parent) else "nom"
        return node.link if node.rel in ("obl", "nmod") else ""

    def _relate(self, words: list[Word], head: Word, kid: Node, passive: bool) -> None:
        """Relations that depend on the language: passive subjects, agents, recipients."""
        top = next(word for word in words if word.head is head and word.key == (kid.id, ""))
        if passive and kid.rel == "obj":
            top.rel = "nsubj:pass"
        elif passive and kid.rel == "nsubj":
            top.rel = "obl:agent"
        elif kid.rel == "iobj" and self.g["ditransitive"] == "obl":
            top.rel = "obl"
        elif kid.rel == "obl" and kid.group == "time" and self.g["time_subtype"]:
            top.rel = "obl:tmod"

    def _noun_words(self, node: Node, word: Word, role: str, pieces: list, order: Order, predicate: bool) -> None:
        g, lang = self.g, self.language
        if node.digits:
            word.form = word.lemma = node.digits
        elif node.pos != "NOUN":
            word.form = word.lemma = lang.plain(node.concept)
            word.feats = f"Person={PERSON[node.concept] % 3 + 1}" if node.concept in PERSON else "_"
        else:
            word.form = lang.noun(node.concept, node.plural, node.definite == "the", role)
            word.lemma = lang.plain(node.concept)
            word.feats = ("Number=Plur" if node.plural and g["plural"] else "Number=Sing") if g["plural"] else "_"
            if role in g["cases"] and role in CASE_NAMES:
                word.feats = f"Case={CASE_NAMES[role]}|" + (word.feats if word.feats != "_" else "Number=Sing")
            self._determiner(node, word, pieces, order)
        if node.pos == "NUM" and node.rel == "nummod" and g["classifier"]:
            pieces.append((5, [self._word("piece", "NOUN", "clf", word, "clf")]))
        if not predicate and node.rel != "conj":
            self._adposition(word, role, pieces, order)

    def _adposition(self, word: Word, role: str, pieces: list, order: Order) -> None:
        core = role in ("nom", "acc", "dat", "")
        if role in self.g["cases"] or (core and role not in self.g["particles"]):
            return
        pieces.append((order.adposition, [self._word(role, "ADP", "case", word, "case")]))

    def _determiner(self, node: Node, word: Word, pieces: list, order: Order) -> None:
        g, kind = self.g, node.definite
        if (
            not kind
            or (kind == "the" and "def" not in g["articles"])
            or (kind == "a" and ("indef" not in g["articles"] or node.plural))
        ):
            return
        if kind in POSSESSIVE:
            form = self.language.plain(kind)
            pieces.append((order.demonstrative, [self._word(kind, "PRON", "nmod:poss", word, "det", form)]))
            return
        form = self.language.article(kind, self.language.gender(node.concept), node.plural)
        det = self._word(kind, "DET", "det", word, "det", form)
        det.feats = {"the": "Definite=Def|PronType=Art", "a": "Definite=Ind|PronType=Art"}.get(kind, "PronType=Dem")
        pieces.append((order.article if kind in ("the", "a") else order.demonstrative, [det]))

    def _adjective(self, node: Node, word: Word, parent: Node | None) -> None:
        """Form of an adjective beside a noun, or said of a subject."""
        noun = parent if parent is not None and parent.pos == "NOUN" else None
        gender = self.language.gender(noun.concept) if noun else "m"
        plural = bool(noun and noun.plural)
        definite = node.rel == "amod" and noun is not None and noun.definite == "the"
        word.form = self.language.adjective(node.concept, gender, plural, definite)
        word.lemma = self.language.plain(node.concept)
        if self.g["adjective_endings"]:
            gender_name = {"m": "Masc", "f": "Fem", "n": "Neut"}[gender]
            word.feats = f"Gender={gender_name}|Number={'Plur' if plural else 'Sing'}"

    def _predicate_words(
        self, node: Node, word: Word, subject: Node | None, parent: Node | None, pieces: list, order: Order
    ) -> None:
        g, lang, passive = self.g, self.language, self._passive(node)
        if subject is None and node.gap:
            subject = parent
        person = PERSON.get(subject.concept, 2) if subject is not None and subject.pos == "PRON" else 2
        if subject is not None and person == 2 and (subject.plural or any(kid.rel == "conj" for kid in subject.kids)):
            person = 5
        tense, auxiliary = node.tense or "pres", ""
        if node.gap and g["relative_word"] == "none" and "rel" in g["verb"]:
            tense = "rel"
        elif node.modal:
            tense, auxiliary = "inf", node.modal
        elif tense in ("past", "fut", "pres") and lang.has_auxiliary(tense):
            tense, auxiliary = "inf", {"past": "did", "fut": "will", "pres": "does"}[tense]
        copula = node.pos != "VERB" and (g["copula"] is True or g["copula"] == node.tense)
        if node.pos == "VERB":
            be = passive and g["passive"] == "aux"
            form_tense = "part" if be else tense
            word.form = lang.verb(node.concept, form_tense, person, node.negated and not auxiliary, passive)
            word.lemma = lang.plain(node.concept)
            word.feats = FEATURES.get(node.tense, "_") if not auxiliary else "VerbForm=Inf"
            if be:
                form = lang.verb("get", tense, person, False, False)
                pieces.append((order.copula, [self._word("get", "AUX", "aux:pass", word, "pass", form)]))
        else:
            if node.pos == "ADJ":
                self._adjective(node, word, subject)
            if copula:
                form = lang.verb("be", tense, person, node.negated and not auxiliary, False)
                pieces.append((order.copula, [self._word("be", "AUX", "cop", word, "cop", form)]))
        if auxiliary:
            form = lang.verb(auxiliary, "pres", person, node.negated, False) if g["negation"] == "suffix" else None
            pieces.append((order.auxiliary, [self._word(auxiliary, "AUX", "aux", word, "aux", form)]))
        if node.negated and (g["negation"] != "suffix" or (node.pos != "VERB" and not copula)):
            concept, rel = ("not-aux", "aux") if g["negation_pos"] == "AUX" else ("not", "advmod")
            pieces.append((order.negation, [self._word(concept, g["negation_pos"], rel, word, "neg")]))
        self._clause_words(node, word, pieces, order)

    def _clause_words(self, node: Node, word: Word, pieces: list, order: Order) -> None:
        g = self.g
        if node.rel in ("advcl", "ccomp") and node.link:
            pieces.append((order.subordinator, [self._word(node.link, "SCONJ", "mark", word, "mark")]))
        elif node.rel == "xcomp" and g["to"]:
            pieces.append((order.infinitive, [self._word("to-do", "PART", "mark", word, "mark")]))
        if node.gap and g["relative_word"] == "pronoun":
            pieces.append((order.relative_pronoun, [self._word("which", "PRON", node.gap, word, "relative")]))
        elif node.gap and g["relative_word"] == "mark":
            pieces.append((order.relative_mark, [self._word("relative", "PART", "mark", word, "relative")]))
        if node.question and g["question_particle"]:
            pieces.append((order.question_particle, [self._word("question", "PART", "discourse", word, "question")]))

    def _emit_name(self, node: Node, head: Word | None, parent: Node | None) -> list[Word]:
        """A proper name with its adposition and its explanation."""
        role = self._role(node, parent)
        top, words = name_words(self.language, node, head, role)
        case: list = []
        self._adposition(top, role, case, self.orders[False])
        for place, adposition in case:
            words = [*words, *adposition] if place > 0 else [*adposition, *words]
        for kid in node.kids:
            words += self._commas(self._emit(kid, top, node), both=True)
        return words

    def _comma(self, head: Word) -> Word:
        sign = self._punctuation(",")
        return Word(sign, sign, "PUNCT", "punct", head, (head.key[0], "comma"))

    def _commas(self, words: list[Word], both: bool) -> list[Word]:
        inside = set(map(id, words))
        top = next(word for word in words if id(word.head) not in inside)
        return [self._comma(top), *words, self._comma(top)] if both else [self._comma(top), *words]

    def _comma_after_fronted(self, words: list[Word], root: Node) -> None:
        kid = next((kid for kid in root.kids if kid.rel == "advcl" and kid.front), None)
        if kid is None:
            return
        top = next(word for word in words if word.key == (kid.id, ""))
        last = max(i for i, word in enumerate(words) if is_under(word, top))
        if last + 1 < len(words):
            words.insert(last + 1, self._comma(top))
