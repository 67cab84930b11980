"""Proper names as words: people, places, and organisations with a translated part (university, river)."""

from crossalign.world.language import Language
from crossalign.world.trees import Node
from crossalign.world.words import Word


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
