"""Words of a rendered sentence, and how they are written: spaces, contractions, clitics, capitals."""

from dataclasses import dataclass, field

from crossalign.world.language import ELIDING, Language
from crossalign.world.letters import VOWELS
from crossalign.world.trees import Node


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
