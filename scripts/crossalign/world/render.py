"""From abstract trees to sentences of a language: function words, word order, agreement, written words and tokens."""

from crossalign.world.concepts import PERSON
from crossalign.world.language import Language
from crossalign.world.name_words import name_words
from crossalign.world.order import Order
from crossalign.world.trees import Node, Sentence
from crossalign.world.words import Word, is_under, join_words

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
        passive = node.passive and self.g["passive"] != "none"
        subject = next((kid for kid in node.kids if kid.rel == ("obj" if passive else "nsubj")), None)
        if node.pos in ("NOUN", "PRON", "NUM", "DET"):
            self._noun_words(node, word, role, pieces, order, predicate)
        elif node.pos == "ADJ" and not predicate:
            self._adjective(node, word, parent)
        elif node.pos == "ADV":
            word.form = word.lemma = self.language.plain(node.concept)
        if predicate:
            self._predicate_words(node, word, subject, parent, pieces, order, passive)
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

    def _role(self, node: Node, parent: Node | None) -> str:
        if node.rel == "obj":
            return "nom" if parent.passive and self.g["passive"] != "none" else "acc"
        if node.rel == "iobj":
            return "dat" if self.g["ditransitive"] == "iobj" else "to"
        if node.rel == "nsubj":
            return "by" if parent is not None and parent.passive and self.g["passive"] != "none" else "nom"
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
            word.feats = (
                f"Gender={ {'m': 'Masc', 'f': 'Fem', 'n': 'Neut'}[gender] }|Number={'Plur' if plural else 'Sing'}"
            )

    def _predicate_words(
        self,
        node: Node,
        word: Word,
        subject: Node | None,
        parent: Node | None,
        pieces: list,
        order: Order,
        passive: bool,
    ) -> None:
        g, lang = self.g, self.language
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
            verbal = g["negation_pos"] == "AUX"
            rel = "aux" if verbal else "advmod"
            pieces.append(
                (order.negation, [self._word("not-aux" if verbal else "not", g["negation_pos"], rel, word, "neg")])
            )
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
