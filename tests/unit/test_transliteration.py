"""Romanisations against known spellings, and what must hold of every one."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossalign.data.transliteration import (
    BUCKWALTER,
    LANGUAGES,
    source_letters,
    to_buckwalter,
    transliterator,
)
from crossalign.runtime.errors import UserError

KNOWN = {
    # Uyghur: Turkish words of the same origin, or Turkish spellings of the same names.
    "ug": "ئۇيغۇر uyğur كىتاب kitab مەكتەپ mektep دۆلەت dölet جۇمھۇرىيەت cumhuriyet ئالما alma ياخشى yahşi چاي çay"
    " قىز kiz ئۆي öy ئۈزۈم üzüm ژۇرنال jurnal مەسئۇل mes'ul سائەت saet يېڭى yeni ئىككى ikki ھاۋا hava گۈل gül",
    # Sorani: the Kurmanji spelling of the same words.
    "ckb": "کوردستان kurdistan کوردی kurdî زمان ziman ژیان jiyan نەورۆز newroz یەک yek من min دڵ dil شار şar ڕۆژ roj"
    " برا bira هەولێر hewlêr هاتن hatin کردن kirdin دەست dest پشت pişt ئێران êran ئیسلام îslam سیاسی siyasî و û"
    " گوڵ gul چای çay وشە wişe شیر şîr خوێندن xwêndin دوو dû",
    "ar": "كتاب ktAb العربية AlErbyp مدرسة mdrsp شمس $ms ذهب *hb قلب qlb غرفة grfp ضوء Dw' ؟ ?",
    "xmf": "თბილისი tbilisi მარგალური margaluri გამარჯობა gamarjoba ჸუდე 'ude შქვით shqvit ჷ ə ღორონთი ghoronti",
    "mhr": "марий marij кӱшычын küshychyn пӧрт pört еҥ eng Ӱдыр Üdyr",
    "bxr": "буряад burjaad үгы ügy һайн hajn өөрөө ööröö Һая Haja",
    "myv": "эрзянь erzjan' кель kel' мастор mastor",
    "ru": "Москва Moskva Россия Rossija Чехов Chehov щука schuka объект ob'ekt ёж ezh",
    "ja": "東京 tokyo 学校 gakkou カレー karee すし sushi 、 , 本 hon っ tsu NBA NBA",
}


@pytest.mark.parametrize("lang", LANGUAGES)
def test_known_spellings(lang):
    signs = KNOWN[lang].split()
    forms, expected = signs[::2], signs[1::2]
    assert [transliterator(lang).form(form) for form in forms] == expected


def test_running_text():
    assert transliterator("ug").line("ئۇيغۇر تىلى، ياخشى؟") == "uyğur tili, yahşi?"
    assert transliterator("ckb").line("من و تۆ؛ ٢٠٢٠") == "min û to; 2020"
    assert transliterator("ja").line("NBAの本を読む。") == "NBA no hon wo yomu."
    assert transliterator("ru").line("Да,  нет — 5%") == "Da, net — 5%"


def test_odd_forms_and_an_unknown_language():
    # Fragments of letters are left out.
    assert transliterator("ug").form("\ufe73") == "-"
    assert transliterator("ug").form("\ufe73\u0628") == "b"
    with pytest.raises(UserError, match="no transliteration for language 'de'; there is one for ar, bxr"):
        transliterator("de")


SCRIPT_RANGES = {
    "ar": [(0x600, 0x6FF), (0x750, 0x77F), (0x8A0, 0x8C7), (0xFB50, 0xFDFF), (0xFE70, 0xFEFC)],
    "mhr": [(0x400, 0x52F), (0x1C80, 0x1C88), (0xA640, 0xA69F)],
    "xmf": [(0x10A0, 0x10FF), (0x1C90, 0x1CBF), (0x2D00, 0x2D2F)],
    "ja": [(0x3005, 0x30FF), (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0xFF66, 0xFF9F), (0x20000, 0x2A6DF)],
}
SCRIPT_RANGES |= {"ug": SCRIPT_RANGES["ar"], "ckb": SCRIPT_RANGES["ar"]}
SCRIPT_RANGES |= dict.fromkeys(("bxr", "myv", "ru"), SCRIPT_RANGES["mhr"])


def characters(lang):
    own = [st.characters(min_codepoint=low, max_codepoint=high, codec="utf-8") for low, high in SCRIPT_RANGES[lang]]
    return st.one_of(*own, st.sampled_from("aZ9.-'\u200c\u200d"))


@pytest.mark.parametrize("lang", LANGUAGES)
@settings(deadline=None, max_examples=150)
@given(st.data())
def test_any_form_loses_its_script_and_stays_one_word(lang, data):
    form = data.draw(st.text(characters(lang), min_size=1, max_size=8).filter(lambda text: len(text.split()) == 1))
    latin = transliterator(lang).form(form)
    assert latin.strip()
    assert len(latin.split()) == 1
    assert source_letters(latin, lang) == ""
    assert transliterator(lang).form(form) == latin


@pytest.mark.parametrize("lang", LANGUAGES)
def test_latin_words_stay(lang):
    for form in ("Wikipedia", "2020", "É", "a-b", "U.S."):
        assert transliterator(lang).form(form) == form


def test_no_two_signs_have_one_letter_of_buckwalter():
    signs = [*BUCKWALTER, *"،؛؟٠١٢٣٤٥٦٧٨٩ \n"]
    assert len({to_buckwalter(sign) for sign in signs}) == len(signs)
