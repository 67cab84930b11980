"""Sorani Kurdish in the Latin letters of Kurmanji (the Hawar alphabet).

Arabic-script Sorani writes all vowels but one: the short i (bizroke) is left out, و is both w and u, ی both y and î.
The rules:

1. وو is û. A و beside a vowel or at the beginning is w, the word و (and) is û, elsewhere it is u.
2. A ی beside a vowel or at the beginning is y, with i before it after a consonant (ژیان jiyan); elsewhere it is î.
3. ئ only carries a vowel and is dropped.
4. A short i goes where consonants would pile up: after the first of two that begin a word (برا bira), into words
   without a vowel (من min), into three or more between vowels (کوردستان kurdistan), before a final
   n, r, l, m after an obstruent (هاتن hatin).

Rule 4 is a guess that holds for most words, not for all (گرنگ is giring, the rules say girnig).
"""

import re

from crossalign.data.letters import letter_table
from crossalign.data.romanise_arabic import ARABIC_LETTERS, foreign_letter, plain_arabic

LETTERS = letter_table(
    "ا a آ a ب b پ p ت t ج c چ ç ح h خ x د d ر r ڕ r ز z ژ j س s ش ş ع ' غ x ف f ڤ v ق q ک k گ g ل l ڵ l م m ن n ه h"
    " ھ h ە e ێ ê ۆ o ۊ û"
)
# Letters of Arabic words and of other keyboards.
LETTERS |= letter_table("ك k ۇ u ۋ v ة e ص s ض z ط t ظ z ث s ذ z ې ê")
WAW, YEH, HAMZA = "و", "ی", "ئ"
VOWELS = "aeêiîouûö"
_SONORANTS = "nrlm"
_WORD = re.compile(f"[{ARABIC_LETTERS}]+")


def sorani_to_latin(text: str) -> str:
    """Sorani text in Latin letters, Kurmanji conventions: کوردی gives kurdî."""
    # Older spelling writes e as h with a non-joiner; both kinds of final y are one letter.
    text = re.sub("[هھ]\u200c", "ە", text)
    text = plain_arabic(text).replace("ي", YEH).replace("ى", YEH)
    return _WORD.sub(lambda match: _word(match.group()), text)


def _word(word: str) -> str:
    if word == WAW:
        return "û"
    if word == HAMZA:
        return "'"
    units: list[str] = []  # Latin letters, with the two ambiguous ones still in Arabic
    for letter in word.replace(WAW + WAW, "ۊ"):
        if letter in (WAW, YEH):
            units.append(letter)
        elif letter != HAMZA:
            units.append(LETTERS.get(letter) or foreign_letter(letter))
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
        if after and after in VOWELS:
            glide = "w" if unit == WAW else "y"
            result.extend(["i", glide] if unit == YEH and before and before not in VOWELS else [glide])
        elif before and before in VOWELS:
            result.append("w" if unit == WAW else "y")
        else:
            result.append("u" if unit == WAW else "î")
    return result


def _insert_short_i(letters: list[str]) -> str:
    parts = re.split(f"([{VOWELS}]+)", "".join(letters))
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
