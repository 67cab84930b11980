"""Word order: where each kind of dependent stands relative to its head.

A place is a number: negative before the head, positive after it, the larger the farther. Dependents of clauses
have places in the hundreds, those of noun phrases below, so that a noun or adjective that is the predicate of a
clause keeps its own modifiers close.
"""

from typing import Any

from crossalign.world.trees import Node

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
