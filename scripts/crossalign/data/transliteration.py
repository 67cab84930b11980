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
from functools import cache

from crossalign.data.tokenise import squeeze
from crossalign.runtime.errors import UserError

LANGUAGES = ("ar", "bxr", "ckb", "ja", "mhr", "myv", "ru", "ug", "xmf")

# What remains of a form that is made of signs without a Latin counterpart, such as a lone lengthening stroke.
PLACEHOLDER = "-"


class Transliterator:
    """Turns words and lines of one language into Latin script."""

    def __init__(self, lang: str, romanise: Callable[[str], str]) -> None:
        self.lang = lang
        self._romanise = romanise
        self._known: dict[str, str] = {}

    def form(self, form: str) -> str:
        """One word of a treebank or NER file: never empty, and without spaces that it did not have."""
        known = self._known.get(form)
        if known is None:
            latin = self._latin(form)
            if len(latin.split()) > len(form.split()):
                latin = "".join(latin.split())
            latin = latin if latin.strip() else PLACEHOLDER
            # Corpora have far fewer words than tokens; the bound is for endless ones.
            if len(self._known) < 1_000_000:
                self._known[form] = latin
            known = latin
        return known

    def line(self, line: str) -> str:
        """A line of running text, spaces squeezed; where the script has none, words are parted. Never empty."""
        return squeeze(self._latin(line)) or PLACEHOLDER

    def _latin(self, text: str) -> str:
        latin = self._romanise(unicodedata.normalize("NFC", text))
        # Fragments of letters and other rarities that no table knows are left out.
        for letter in set(source_letters(latin, self.lang)):
            latin = latin.replace(letter, "")
        return latin


@cache
def transliterator(lang: str) -> Transliterator:
    """The transliterator of a language."""
    match lang:
        case "ug":
            from crossalign.data.romanise_arabic import uyghur_to_latin as romanise
        case "ckb":
            from crossalign.data.romanise_sorani import sorani_to_latin as romanise
        case "ar":
            from crossalign.data.romanise_arabic import to_buckwalter as romanise
        case "mhr" | "bxr" | "myv" | "ru":
            from crossalign.data.romanise_package import cyrillic_to_latin as romanise
        case "xmf":
            from crossalign.data.romanise_package import georgian_to_latin as romanise
        case "ja":
            from crossalign.data.romanise_japanese import japanese_to_latin as romanise
        case _:
            raise UserError(f"no transliteration for language '{lang}'; there is one for {', '.join(LANGUAGES)}")
    return Transliterator(lang, romanise)


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
    found = re.findall(f"[{_SCRIPTS[_SCRIPT_OF.get(lang, 'Cyrillic')]}]", text)
    return "".join(char for char in found if unicodedata.category(char)[0] == "L")
