"""Cyrillic and Georgian to Latin: the tables of the package `transliterate`, and the letters that it leaves alone.

The package knows the letters of Russian and of modern Georgian. Mari, Buryat and Mingrelian have more, and so have the
names in any text; those follow the spelling of related languages in Latin script (ӱ ü, ӧ ö, ҥ ng). The package writes
х as h, so Buryat х and һ fall together.
"""

import unicodedata
from functools import cache

from crossalign.data.letters import letter_table

# Letters of Mari (ӓ ӧ ӱ ӹ ҥ), Buryat (ү ө һ), then of neighbours, whose names turn up.
CYRILLIC_EXTRAS = {
    **letter_table("ӓ ä ӧ ö ӱ ü ӹ ÿ ҥ ng"),
    **letter_table("ү ü ө ö һ h"),
    **letter_table("і i ї ji є je ґ g ў w ә ä ң ng қ q ғ gh ұ u ҡ q ҙ dh ҫ th җ zh ҳ h ҷ j ӣ i ӯ u ӑ a ӗ e ҕ gh ҝ g"),
    **letter_table("ђ dj ћ c џ dzh љ lj њ nj ј j ѕ dz ќ kj ѓ gj ѣ e ѳ f ѵ i ѫ u ѧ ja ѡ o"),
    **letter_table("ӏ ' ӄ q ӈ ng ԓ lh ӷ gh ҟ k ҧ p ҭ t ҵ ts ҩ o ҽ ch ҿ ch ӡ dz ӕ ä"),
}

# Mingrelian ჷ (a schwa) and ჸ (a glottal stop), then letters of Svan and of old texts.
GEORGIAN_EXTRAS = letter_table("ჷ ə ჸ ' ჱ ej ჲ j ჳ w ჴ q ჵ o ჶ f ჹ g ჺ ' ჼ n ჽ ' ჾ ' ჿ w")


@cache
def _cyrillic_table() -> dict[int, str]:
    table = {}
    for block in (range(0x400, 0x530), range(0x1C80, 0x1C90), range(0x2DE0, 0x2E00), range(0xA640, 0xA6A0)):
        for code in block:
            if unicodedata.category(chr(code))[0] == "L":
                table[code] = _cyrillic_letter(chr(code))
    return table


def _cyrillic_letter(letter: str) -> str:
    latin = _by_package(letter, "ru")
    if latin != letter:
        return latin
    small = letter.lower()
    if small in CYRILLIC_EXTRAS:
        latin = CYRILLIC_EXTRAS[small]
    elif (base := unicodedata.normalize("NFD", small)[0]) != small:
        latin = _cyrillic_letter(base)  # a letter with a mark: as without
    else:
        latin = _by_name(small)
    return latin if letter == small else latin.capitalize()


def _by_name(letter: str) -> str:
    """The sound in the Unicode name of a rare letter: CYRILLIC SMALL LETTER KOMI DZJE gives `dzje`."""
    words = unicodedata.name(letter).partition(" LETTER ")[2].split(" WITH ")[0].split()
    return words[-1].lower() if words else "'"


@cache
def _georgian_table() -> dict[int, str]:
    table = {ord(char): latin for char, latin in GEORGIAN_EXTRAS.items()}
    for offset in range(0x2B):
        modern = chr(0x10D0 + offset)
        latin = GEORGIAN_EXTRAS.get(modern) or _by_package(modern, "ka")
        # The same alphabet four times: modern, its capitals, and the two of the church.
        for start in (0x10D0, 0x1C90, *((0x10A0, 0x2D00) if offset < 0x26 else ())):
            table[start + offset] = latin
    table.update({0x10C7: "j", 0x10CD: "'", 0x2D27: "j", 0x2D2D: "'", 0x1CBD: "'", 0x1CBE: "'", 0x1CBF: "w"})
    return table


@cache
def _by_package(letter: str, lang: str) -> str:
    from transliterate import translit

    return translit(letter, lang, reversed=True)


def cyrillic_to_latin(text: str) -> str:
    """Any Cyrillic text in Latin letters."""
    return text.translate(_cyrillic_table())


def georgian_to_latin(text: str) -> str:
    """Georgian or Mingrelian text in Latin letters."""
    return text.translate(_georgian_table())
