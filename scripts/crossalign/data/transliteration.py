"""Latin copies of texts in other scripts. Only the letters change; words stay words.

| code           | from     | to                            | by                                       |
|----------------|----------|-------------------------------|------------------------------------------|
| ug             | Arabic   | Latin, Turkish conventions    | own rules                                |
| ckb            | Arabic   | Latin, Kurmanji conventions   | own rules                                |
| ar             | Arabic   | Buckwalter                    | own table, reversible                    |
| xmf            | Georgian | Latin                         | package `transliterate` (ka), own extras |
| mhr bxr myv ru | Cyrillic | Latin                         | package `transliterate` (ru), own extras |
| ja             | Japanese | Latin, Hepburn                | `cutlet` with `unidic-lite`              |
"""

import re
import unicodedata
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

from crossalign.data.text import squeeze
from crossalign.runtime.errors import UserError


def letter_table(pairs: str) -> dict[str, str]:
    """The table written as `ж zh ш sh`, each letter followed by its Latin spelling."""
    signs = pairs.split()
    letters, latin = signs[::2], signs[1::2]
    if len(set(letters)) != len(letters):
        raise ValueError(f"a letter comes twice in {pairs!r}")
    return dict(zip(letters, latin, strict=True))


PUNCTUATION = {"،": ",", "؛": ";", "؟": "?", "٪": "%", "٫": ".", "٬": ",", "۔": ".", "٭": "*"}
DIGITS = {char: str(value) for row in ("٠١٢٣٤٥٦٧٨٩", "۰۱۲۳۴۵۶۷۸۹") for value, char in enumerate(row)}

# Letters outside an alphabet, which names and loans bring along, by the sound they have nearly everywhere.
FOREIGN = letter_table(
    "ء ' آ a أ a ؤ w إ i ئ y ا a ب b ة e ت t ث s ج c ح h خ h د d ذ z ر r ز z س s ش ş ص s ض z ط t ظ z ع ' غ ğ ف f ق k"
    " ك k ل l م m ن n ه h و v ى i ي y ٱ a پ p چ ç ژ j ڤ v گ g ڭ n ک k ی y ە e ہ h ھ h ے e ۀ e ۇ u ۆ ö ۈ ü ۋ v ې e ۅ ö"
    " ۉ ü ێ e ڵ l ڕ r ڧ k"
)

# The 32 letters of Uyghur as a Turkish writer would spell their sounds. Turkish has one letter where Uyghur has
# two for ك ق (k), خ ھ (h), ن ڭ (n), ە ې (e), so these fall together: the price of looking like Turkish words.
UYGHUR = letter_table(
    "ا a ە e ب b پ p ت t ج c چ ç خ h د d ر r ز z ژ j س s ش ş غ ğ ف f ق k ك k گ g ڭ n ل l م m ن n ھ h و o ۇ u ۆ ö ۈ ü"
    " ۋ v ې e ى i ي y"
)
# Twins of these letters that keyboards of other languages produce.
UYGHUR |= letter_table("ه h ک k ی i ۅ ö ۉ ü ڧ k")
HAMZA = "ئ"  # carries a vowel that begins a word or a syllable
UYGHUR_VOWELS = "اەوۇۆۈېىeaouöüi"

ARABIC_LETTERS = "\u0620-\u064a\u066e-\u06d3\u06d5\u06e5\u06e6\u06ee\u06ef\u06fa-\u06fc\u06ff\u0750-\u077f\u0870-\u08c9"
_WORD = re.compile(f"[{ARABIC_LETTERS}]+")
# Vowel points, lengthening strokes and joiners say nothing in these spellings.
_JOINERS = (0x0640, 0x0670, 0x200C, 0x200D, 0x200E, 0x200F)
_SILENT = dict.fromkeys([*_JOINERS, *range(0x064B, 0x0660), *range(0x06D6, 0x06DD), *range(0x06DF, 0x06E5)])
_SIGNS = str.maketrans({**PUNCTUATION, **DIGITS})


def plain_forms(text: str) -> str:
    """The text with presentation forms (ﻼ, ﺎ) as plain letters."""
    return re.sub("[\ufb50-\ufefc]", lambda match: unicodedata.normalize("NFKC", match.group()), text)


def plain_arabic(text: str) -> str:
    """The text in plain letters, silent signs gone, punctuation and digits Latin."""
    return plain_forms(text).translate(_SILENT).translate(_SIGNS)


def foreign_letter(letter: str) -> str:
    """A Latin spelling for any letter of the Arabic block: by the table, else the first letter of its Unicode name."""
    if letter in FOREIGN:
        return FOREIGN[letter]
    name = unicodedata.name(letter, "ARABIC LETTER X").partition(" LETTER ")[2]
    return name[:1].lower() or "'"


def uyghur_to_latin(text: str) -> str:
    """Uyghur text in Latin letters, Turkish conventions: ئۇيغۇرچە gives uyğurçe."""
    return _WORD.sub(_uyghur_word, plain_arabic(text))


def _uyghur_word(match: re.Match[str]) -> str:
    word, latin = match.group(), []
    for place, letter in enumerate(word):
        if letter == HAMZA:
            # Silent before the first vowel and between vowels; after a consonant it parts syllables (مەسئۇل mes'ul).
            if (place and word[place - 1] not in UYGHUR_VOWELS) or len(word) == 1:
                latin.append("'")
        else:
            latin.append(UYGHUR.get(letter) or foreign_letter(letter))
    return "".join(latin)


BUCKWALTER = dict(
    zip(
        "ءآأؤإئابةتثجحخدذرزسشصضطظعغـفقكلمنهوىيًٌٍَُِّْٰٱپچڤگ",
        "'|>&<}AbptvjHxd*rzs$SDTZEg_fqklmnhwYyFNKaui~o`{PJVG",
        strict=True,
    )
)
_BUCKWALTER_SIGNS = {"،": ",", "؛": ";", "؟": "?", **dict(zip("٠١٢٣٤٥٦٧٨٩", "0123456789", strict=True))}
_TO_BUCKWALTER = str.maketrans({**BUCKWALTER, **_BUCKWALTER_SIGNS})
# Letters of other languages in Arabic script, to the nearest that Buckwalter has.
_NEAREST = str.maketrans(dict(zip("کیےہھەۀڭژۆۇۈۋېێ", "كيىهههةكزوووويي", strict=True)))


def to_buckwalter(text: str) -> str:
    """Arabic text in Buckwalter's letters, one for one: كتاب gives ktAb."""
    latin = plain_forms(text).translate(_TO_BUCKWALTER)
    if _WORD.search(latin):
        latin = _WORD.sub(lambda match: match.group().translate(_NEAREST).translate(_TO_BUCKWALTER), latin)
        latin = _WORD.sub(lambda match: "".join(map(foreign_letter, match.group())), latin)
    return latin


# Sorani Kurdish in the Latin letters of Kurmanji (the Hawar alphabet). Arabic-script Sorani writes all vowels but one:
# the short i (bizroke) is left out, و is both w and u, ی both y and î. The rules:
# 1. وو is û. A و beside a vowel or at the beginning is w, the word و (and) is û, elsewhere it is u.
# 2. A ی beside a vowel or at the beginning is y, with i before it after a consonant (ژیان jiyan); elsewhere it is î.
# 3. ئ only carries a vowel and is dropped.
# 4. A short i goes where consonants would pile up: after the first of two that begin a word (برا bira), into words
#    without a vowel (من min), into three or more between vowels (کوردستان kurdistan), before a final n, r, l, m after
#    an obstruent (هاتن hatin). This is a guess that holds for most words (گرنگ is giring, the rules say girnig).
SORANI = letter_table(
    "ا a آ a ب b پ p ت t ج c چ ç ح h خ x د d ر r ڕ r ز z ژ j س s ش ş ع ' غ x ف f ڤ v ق q ک k گ g ل l ڵ l م m ن n ه h"
    " ھ h ە e ێ ê ۆ o ۊ û"
)
# Letters of Arabic words and of other keyboards.
SORANI |= letter_table("ك k ۇ u ۋ v ة e ص s ض z ط t ظ z ث s ذ z ې ê")
WAW, YEH = "و", "ی"
SORANI_VOWELS = "aeêiîouûö"
_SONORANTS = "nrlm"


def sorani_to_latin(text: str) -> str:
    """Sorani text in Latin letters, Kurmanji conventions: کوردی gives kurdî."""
    # Older spelling writes e as h with a non-joiner; both kinds of final y are one letter.
    text = re.sub("[هھ]\u200c", "ە", text)
    text = plain_arabic(text).replace("ي", YEH).replace("ى", YEH)
    return _WORD.sub(lambda match: _sorani_word(match.group()), text)


def _sorani_word(word: str) -> str:
    if word == WAW:
        return "û"
    if word == HAMZA:
        return "'"
    units: list[str] = []  # Latin letters, with the two ambiguous ones still in Arabic
    for letter in word.replace(WAW + WAW, "ۊ"):
        if letter in (WAW, YEH):
            units.append(letter)
        elif letter != HAMZA:
            units.append(SORANI.get(letter) or foreign_letter(letter))
    # A vowel cannot begin a word without ئ, so a first و or ی is a consonant.
    if units and units[0] in (WAW, YEH) and word[0] != HAMZA:
        units[0] = "w" if units[0] == WAW else "y"
    return _insert_short_i(_decide(units)) or "'"


def _decide(units: list[str]) -> list[str]:
    """Decide for every و and ی, from the left, whether it is a vowel or a consonant."""
    result: list[str] = []
    for place, unit in enumerate(units):
        if unit not in (WAW, YEH):
            result.append(unit)
            continue
        before = result[-1] if result else ""
        after = units[place + 1] if place + 1 < len(units) else ""
        if after and after in SORANI_VOWELS:
            glide = "w" if unit == WAW else "y"
            result.extend(["i", glide] if unit == YEH and before and before not in SORANI_VOWELS else [glide])
        elif before and before in SORANI_VOWELS:
            result.append("w" if unit == WAW else "y")
        else:
            result.append("u" if unit == WAW else "î")
    return result


def _insert_short_i(letters: list[str]) -> str:
    parts = re.split(f"([{SORANI_VOWELS}]+)", "".join(letters))
    # Consonant runs stand at even places; between them the vowels.
    last = len(parts) - 1
    for place in range(0, last + 1, 2):
        parts[place] = _break_run(parts[place], first=place == 0, final=place == last)
    return "".join(parts)


def _break_run(run: str, first: bool, final: bool) -> str:
    """Break up a run of consonants; `first` and `final` say whether the word begins and ends with it."""
    if len(run) < 2 or "'" in run:
        return run
    done = ""
    if not first:
        done, run = run[0], run[1:]  # the coda of the syllable before
        if final and len(run) == 1:
            return done + _final_pair(done, run)
    while run:
        # xw, gw, dw are good beginnings of the syllable that follows.
        if not final and (len(run) == 1 or run[1:] == "w"):
            break
        onset, run = run[0], run[1:]
        if final and len(run) == 2:
            return f"{done}{onset}i{run[0]}{_final_pair(*run)}"
        coda = int(final or len(run) > 1)
        done += f"{onset}i{run[:coda]}"
        run = run[coda:]
    return done + run


def _final_pair(before: str, last: str) -> str:
    """The last of two consonants that end a word; a sonorant cannot follow an obstruent without a vowel."""
    return f"i{last}" if last in _SONORANTS and before not in _SONORANTS + "wy'" else last


# The package `transliterate` knows the letters of Russian and modern Georgian. Mari, Buryat and Mingrelian have more,
# and so have the names in any text; those follow the spelling of related languages in Latin script (ӱ ü, ӧ ö, ҥ ng).
# The package writes х as h, so Buryat х and һ fall together.
# Letters of Mari (ӓ ӧ ӱ ӹ ҥ), Buryat (ү ө һ), then of neighbours, whose names turn up.
CYRILLIC_EXTRAS = {
    **letter_table("ӓ ä ӧ ö ӱ ü ӹ ÿ ҥ ng ү ü ө ö һ h"),
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


UNREADABLE = "?"


@cache
def _reader() -> Any:
    import cutlet

    reader = cutlet.Cutlet()
    # カレー is karee, not curry: the spelling of other languages would be a translation.
    reader.use_foreign_spelling = False
    return reader


# Latin words and numbers in the text stay as they are.
_LATIN = re.compile(r"([0-9A-Za-z\u00c0-\u024f]+)")
# Small kana only modify a neighbour and have no reading alone, which is how files of single characters have them.
_ALONE = letter_table("っ tsu ぁ a ぃ i ぅ u ぇ e ぉ o ゃ ya ゅ yu ょ yo ゎ wa")
_ALONE |= letter_table("ッ tsu ァ a ィ i ゥ u ェ e ォ o ャ ya ュ yu ョ yo ヮ wa ツ tsu")


def _read_aloud(piece: str) -> str:
    try:
        return _reader().romaji(piece, capitalize=False).lower()
    except (KeyError, IndexError):
        # cutlet stumbles over kana that its table lacks; then sign by sign, and only the culprit is lost.
        return "".join(map(_read_aloud, piece)) if len(piece) > 1 else UNREADABLE


def japanese_to_latin(text: str) -> str:
    """Japanese text in Latin letters, words separated by spaces: 日本語の本 gives nippon go no hon.

    All letters are small: cutlet gives names capitals, which would tell a tagger of names what the dictionary knows.
    """
    if text in _ALONE:
        return _ALONE[text]
    pieces = []
    for place, piece in enumerate(_LATIN.split(text)):
        if piece:
            pieces.append(piece if place % 2 else _read_aloud(piece))
    # What is left are iteration marks and characters that the dictionary has no reading for.
    return re.sub(f"[{_SCRIPTS['Japanese']}]+", UNREADABLE, " ".join(pieces))


# What remains of a form that is made of signs without a Latin counterpart, such as a lone lengthening stroke.
PLACEHOLDER = "-"


class Transliterator:
    """Turns words and lines of one language into Latin script."""

    def __init__(self, lang: str, romanise: Callable[[str], str]) -> None:
        self.lang = lang
        self._romanise = romanise
        # Corpora have far fewer words than tokens; the bound is for endless ones.
        self.form = lru_cache(1_000_000)(self._form)

    def _form(self, form: str) -> str:
        """One word of a treebank or NER file: never empty, and without spaces that it did not have."""
        latin = self._latin(form)
        if len(latin.split()) > len(form.split()):
            latin = "".join(latin.split())
        return latin if latin.strip() else PLACEHOLDER

    def line(self, line: str) -> str:
        """A line of running text, spaces squeezed; where the script has none, words are parted. Never empty."""
        return squeeze(self._latin(line)) or PLACEHOLDER

    def _latin(self, text: str) -> str:
        latin = self._romanise(unicodedata.normalize("NFC", text))
        # Fragments of letters and other rarities that no table knows are left out.
        for letter in set(source_letters(latin, self.lang)):
            latin = latin.replace(letter, "")
        return latin


ROMANISERS = {
    **{"ug": uyghur_to_latin, "ckb": sorani_to_latin, "ar": to_buckwalter, "xmf": georgian_to_latin},
    **{"ja": japanese_to_latin, **dict.fromkeys(("mhr", "bxr", "myv", "ru"), cyrillic_to_latin)},
}
LANGUAGES = tuple(sorted(ROMANISERS))


@cache
def transliterator(lang: str) -> Transliterator:
    """The transliterator of a language."""
    if lang not in ROMANISERS:
        raise UserError(f"no transliteration for language '{lang}'; there is one for {', '.join(LANGUAGES)}")
    return Transliterator(lang, ROMANISERS[lang])


_SCRIPTS = {
    "Arabic": r"\u0600-\u06ff\u0750-\u077f\u0870-\u08ff\ufb50-\ufdff\ufe70-\ufefc",
    "Cyrillic": r"\u0400-\u052f\u1c80-\u1c8f\u2de0-\u2dff\ua640-\ua69f",
    "Georgian": r"\u10a0-\u10ff\u1c90-\u1cbf\u2d00-\u2d2f",
    "Japanese": r"\u3005-\u3007\u3031-\u3035\u303b\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
    r"\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U0001aff0-\U0001b16f\U00020000-\U0003ffff",
}
_SCRIPT_OF = {"ar": "Arabic", "ckb": "Arabic", "ug": "Arabic", "xmf": "Georgian", "ja": "Japanese"}


def source_letters(text: str, lang: str) -> str:
    """The letters of the language's own script in a text; a transliterated text has none."""
    signs = re.findall(f"[{_SCRIPTS[_SCRIPT_OF.get(lang, 'Cyrillic')]}]", text)
    return "".join(char for char in signs if unicodedata.category(char)[0] == "L")
