"""Arabic script to Latin: Uyghur by Turkish conventions, Arabic by Buckwalter's table."""

import re
import unicodedata

from crossalign.data.letters import letter_table

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
VOWELS = "اەوۇۆۈېىeaouöüi"

ARABIC_LETTERS = "\u0620-\u064a\u066e-\u06d3\u06d5\u06e5\u06e6\u06ee\u06ef\u06fa-\u06fc\u06ff\u0750-\u077f\u0870-\u08c9"
_WORD = re.compile(f"[{ARABIC_LETTERS}]+")
# Vowel points, lengthening strokes and joiners say nothing in these spellings.
_JOINERS = (0x0640, 0x0670, 0x200C, 0x200D, 0x200E, 0x200F)
_SILENT = dict.fromkeys([*_JOINERS, *range(0x064B, 0x0660), *range(0x06D6, 0x06DD), *range(0x06DF, 0x06E5)])
_SIGNS = str.maketrans({**PUNCTUATION, **DIGITS})


def plain_arabic(text: str) -> str:
    """The text with presentation forms (ﻼ, ﺎ) as plain letters, silent signs gone, punctuation and digits Latin."""
    if any("\ufb50" <= char <= "\ufefc" for char in text):
        text = "".join(unicodedata.normalize("NFKC", c) if "\ufb50" <= c <= "\ufefc" else c for c in text)
    return text.translate(_SILENT).translate(_SIGNS)


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
            if (place and word[place - 1] not in VOWELS) or len(word) == 1:
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
_FROM_BUCKWALTER = str.maketrans({latin: char for char, latin in {**BUCKWALTER, **_BUCKWALTER_SIGNS}.items()})
# Letters of other languages in Arabic script, to the nearest that Buckwalter has.
_NEAREST = str.maketrans(dict(zip("کیےہھەۀڭژۆۇۈۋېێ", "كيىهههةكزوووويي", strict=True)))


def to_buckwalter(text: str) -> str:
    """Arabic text in Buckwalter's letters, one for one: كتاب gives ktAb."""
    if any("\ufb50" <= char <= "\ufefc" for char in text):
        text = "".join(unicodedata.normalize("NFKC", c) if "\ufb50" <= c <= "\ufefc" else c for c in text)
    latin = text.translate(_TO_BUCKWALTER)
    if _WORD.search(latin):
        latin = _WORD.sub(lambda match: match.group().translate(_NEAREST).translate(_TO_BUCKWALTER), latin)
        latin = _WORD.sub(lambda match: "".join(map(foreign_letter, match.group())), latin)
    return latin


def from_buckwalter(latin: str) -> str:
    """The Arabic text that `to_buckwalter` turned into `latin`, if it had only Arabic letters, signs and digits."""
    return latin.translate(_FROM_BUCKWALTER)
