"""From sounds to letters: one speller per writing system, with the letters that the real languages use.

Sounds are one sign each (the settings explain them). A sound that a language lacks becomes its nearest neighbour.
Han characters may stand inside a word and are kept.
"""

import unicodedata
from collections.abc import Callable

from crossalign.runtime.errors import UserError
from crossalign.world.letters import (
    ARABIC_CONSONANTS,
    CYRILLIC,
    DEVANAGARI,
    DEVANAGARI_LETTERS,
    DEVANAGARI_SIGNS,
    GEORGIAN,
    HAN,
    HAN_CODA,
    KANA,
    KANA_NEAREST,
    LATIN,
    NEAREST,
    SINDHI,
    SINDHI_VOWELS,
    SORANI,
    SORANI_VOWELS,
    TONES,
    UYGHUR,
    UYGHUR_VOWELS,
    VIETNAMESE,
    WRITTEN_VOWELS,
)


def _is_han(sign: str) -> bool:
    return "\u4e00" <= sign <= "\u9fff"


def fit(sounds: str, known: frozenset[str], nearest: dict[str, str] = NEAREST) -> str:
    """The word with every sound that is not in `known` replaced by its nearest neighbour."""
    out = []
    for sound in sounds:
        while sound and sound not in known and not _is_han(sound) and sound in nearest:
            sound = nearest[sound]
        out.append(sound)
    return "".join(out)


def _letters(table: dict[str, str]) -> Callable[[str], str]:
    known = frozenset(key for key in table if len(key) == 1)

    def spell(sounds: str) -> str:
        sounds = fit(sounds, known)
        out, i = [], 0
        while i < len(sounds):
            pair = sounds[i : i + 2]
            if len(pair) == 2 and pair in table:
                out.append(table[pair])
                i += 2
            else:
                out.append(table.get(sounds[i], sounds[i]))
                i += 1
        return "".join(out)

    return spell


def _seated(consonants: dict[str, str], vowels: dict[str, str], seat: str) -> Callable[[str], str]:
    """Arabic script with all vowels written; a vowel after no consonant sits on `seat`."""
    known = frozenset(consonants) | frozenset(vowels)

    def spell(sounds: str) -> str:
        out, after_consonant = [], False
        for sound in fit(sounds, known):
            if sound in vowels:
                out.append(vowels[sound] if after_consonant else seat + vowels[sound])
            else:
                out.append(consonants.get(sound, sound))
            after_consonant = sound not in vowels
        return "".join(out)

    return spell


def _arabic(sounds: str) -> str:
    """Short vowels are not written, except at the start of a word."""
    known = frozenset(ARABIC_CONSONANTS) | frozenset("aiu")
    word = fit(sounds, known, NEAREST | {"p": "b", "v": "f", "č": "š", "e": "i", "o": "u", "a": "a"})
    out = ["ا"] if word[:1] and word[0] in "aiu" else []
    return "".join(out + [ARABIC_CONSONANTS.get(sound, "" if sound in "aiu" else sound) for sound in word])


def _devanagari(sounds: str) -> str:
    known = frozenset(DEVANAGARI) | frozenset(DEVANAGARI_SIGNS)
    out, after_consonant = [], False
    for sound in fit(sounds, known):
        if sound in DEVANAGARI_SIGNS:
            out.append((DEVANAGARI_SIGNS if after_consonant else DEVANAGARI_LETTERS)[sound])
            after_consonant = False
        else:
            out.append(DEVANAGARI.get(sound, sound))
            after_consonant = sound in DEVANAGARI
    return "".join(out)


def _kana(sounds: str) -> str:
    """Hiragana; after `~` (a foreign word) katakana. A consonant without a vowel gets `u`, except `n`."""
    foreign, sounds = sounds.startswith("~"), sounds.lstrip("~")
    known = frozenset("aiueokgsztdnhbpmyrw")
    sounds = fit(sounds, known, NEAREST | KANA_NEAREST)
    out, i = [], 0
    while i < len(sounds):
        if sounds[i : i + 2] in KANA and sounds[i] not in "aiueo":
            sign, i = KANA[sounds[i : i + 2]], i + 2
        elif sounds[i] == "n":
            sign, i = "ん", i + 1
        else:
            sign, i = KANA.get(sounds[i], KANA.get(sounds[i] + "u", sounds[i])), i + 1
        out.append(chr(ord(sign) + 0x60) if foreign and "\u3041" <= sign <= "\u3096" else sign)
    return "".join(out)


def _han(sounds: str) -> str:
    sounds = fit(sounds, frozenset("aeioubptdkgfvszščhmnlrywcǰ"))
    out, i = [], 0
    while i < len(sounds):
        if sounds[i : i + 2] in HAN and sounds[i] not in "aeiou":
            out.append(HAN[sounds[i : i + 2]])
            i += 2
        else:
            out.append(HAN.get(sounds[i]) or HAN_CODA.get(sounds[i], sounds[i]))
            i += 1
    return "".join(out)


def _vietnamese(sounds: str) -> str:
    """A tone digit after the vowel or at the end of the syllable becomes a mark on its vowel."""
    plain = _letters(VIETNAMESE)
    tone = next((sign for sign in sounds if sign in TONES), "1")
    word = plain("".join(sign for sign in sounds if sign not in TONES))
    at = next((i for i, sign in enumerate(word) if sign in "aeiouơư"), None)
    if at is None:
        return word
    return unicodedata.normalize("NFC", word[: at + 1] + TONES[tone] + word[at + 1 :])


SPELLERS: dict[str, Callable[[str], str]] = {name: _letters(table) for name, table in (LATIN | CYRILLIC).items()}
SPELLERS |= {
    "georgian": _letters(GEORGIAN),
    "arabic": _arabic,
    "uyghur": _seated(UYGHUR, UYGHUR_VOWELS, "ئ"),
    "sorani": _seated(SORANI, SORANI_VOWELS, "ئ"),
    "sindhi": _seated(SINDHI, SINDHI_VOWELS, ""),
    "devanagari": _devanagari,
    "kana": _kana,
    "han": _han,
    "vietnamese": _vietnamese,
}


def speller(name: str) -> Callable[[str], str]:
    """The speller of that name. A leading `~` marks a foreign word; only some scripts show it."""
    if name not in SPELLERS:
        raise UserError(f"unknown spelling {name!r}; known: {', '.join(sorted(SPELLERS))}")
    spell = SPELLERS[name]
    if name == "kana":
        return spell
    if name == "arabic":  # foreign words have all their vowels written
        return lambda sounds: spell(sounds[1:].translate(WRITTEN_VOWELS) if sounds.startswith("~") else sounds)
    return lambda sounds: spell(sounds.lstrip("~"))


def script(name: str) -> str:
    """The script a spelling belongs to: Latin, Cyrillic, Arabic, Georgian, Devanagari, Han or Kana."""
    if name in LATIN or name == "vietnamese":
        return "Latin"
    if name in CYRILLIC:
        return "Cyrillic"
    if name in ("arabic", "uyghur", "sorani", "sindhi"):
        return "Arabic"
    return name.capitalize()


def alphabet(name: str) -> list[str]:
    """The letters of a spelling, sorted; none for Han and kana, whose signs are too many to list."""
    tables: dict[str, list[dict[str, str]]] = {
        "georgian": [GEORGIAN],
        "arabic": [ARABIC_CONSONANTS],
        "uyghur": [UYGHUR, UYGHUR_VOWELS, {"seat": "ئ"}],
        "sorani": [SORANI, SORANI_VOWELS, {"seat": "ئ"}],
        "sindhi": [SINDHI, SINDHI_VOWELS],
        "vietnamese": [VIETNAMESE],
        "devanagari": [DEVANAGARI, DEVANAGARI_LETTERS],
    }
    chosen = tables.get(name) or [(LATIN | CYRILLIC).get(name, {})]
    return sorted({letter for table in chosen for letters in table.values() for letter in letters})
