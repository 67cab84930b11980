"""From sounds to letters: one speller per writing system, with the letters that the real languages use.

Sounds are one sign each (the settings explain them). A sound that a language lacks becomes its nearest neighbour.
Han characters may stand inside a word and are kept.
"""

import unicodedata
from collections.abc import Callable

from crossalign.runtime.errors import UserError

# The nearest sound, followed until one is found that the language can write.
NEAREST = {
    "θ": "t", "ð": "d", "ŋ": "n", "ɲ": "n", "ħ": "h", "ʕ": "", "q": "k", "x": "h", "ž": "š", "š": "s", "č": "š",
    "ǰ": "ž", "c": "s", "z": "s", "f": "p", "v": "w", "w": "v", "y": "i", "h": "", "p": "b", "g": "k",
    "ö": "o", "ü": "u", "ı": "i", "ä": "a", "ə": "e", "ā": "a", "ī": "i", "ū": "u", "õ": "o", "e": "i", "o": "u",
}  # fmt: skip

BASIC = {letter: letter for letter in "abdefghiklmnoprstuv"}
LONG = {"ā": "a", "ī": "i", "ū": "u"}


def _latin(text: str, **more: str) -> dict[str, str]:
    pairs = dict(pair.split("=") for pair in text.split())
    return BASIC | LONG | pairs | more


LATIN = {
    "english": _latin("š=sh č=ch ǰ=j ž=zh c=ts x=kh y=y w=w θ=th ð=th z=z k=k ö=o ü=u ä=a ə=e ŋ=ng ɲ=ny ı=y"),
    "german": _latin("š=sch č=tsch ǰ=dsch c=z x=ch y=j w=w ö=ö ü=ü ä=ä z=s ŋ=ng ə=e"),
    "swedish": _latin("š=sj č=tj y=j ö=ö ü=y ä=ä ə=e ŋ=ng x=h"),
    "faroese": _latin("ð=ð y=j á=á ö=ø ä=æ š=sj ŋ=ng ə=e x=h"),
    "french": _latin("š=ch ž=j č=tch z=z y=y k=qu w=ou ö=eu ü=u ä=è ə=e ɲ=gn", ka="ca", ko="co", ku="cu", kr="cr"),
    "spanish": _latin("č=ch x=j ɲ=ñ y=y z=z k=qu ž=j š=s θ=z", ka="ca", ko="co", ku="cu", kr="cr", kl="cl"),
    "italian": _latin("č=ci ǰ=gi š=sci c=z z=z k=ch ɲ=gn w=u", ka="ca", ko="co", ku="cu", kr="cr", kl="cl"),
    "portuguese": _latin("š=ch ž=j ɲ=nh z=z k=qu", ka="ca", ko="co", ku="cu", kr="cr", kl="cl"),
    "czech": _latin("š=š č=č ž=ž c=c x=ch y=j z=z ǰ=dž ı=y"),
    "polish": _latin("š=sz č=cz ž=ż c=c x=ch y=j z=z w=ł v=w ı=y õ=ą ǰ=dż"),
    "slovene": _latin("š=š č=č ž=ž c=c y=j z=z ǰ=dž"),
    "lithuanian": _latin("š=š č=č ž=ž c=c y=j z=z ū=ū"),
    "latvian": _latin("š=š č=č ž=ž c=c y=j z=z ā=ā ī=ī ū=ū"),
    "finnish": _latin("y=j ü=y ö=ö ä=ä"),
    "estonian": _latin("y=j ü=ü ö=ö ä=ä õ=õ š=š"),
    "livvi": _latin("y=j ü=y ö=ö ä=ä š=š č=č ž=ž z=z"),
    "turkish": _latin("š=ş č=ç ǰ=c ž=j y=y ı=ı ö=ö ü=ü z=z"),
    "indonesian": _latin("č=c ǰ=j y=y w=w ŋ=ng ɲ=ny š=sy z=z x=kh"),
    "maltese": _latin("š=x č=ċ ǰ=ġ c=z z=ż ħ=ħ ʕ=għ q=q y=j w=w"),
    "arabizi": _latin("š=ch x=kh ħ=7 ʕ=3 q=9 y=y w=w ǰ=j z=z č=tch"),
    "wolof": _latin("č=c ǰ=j ŋ=ŋ ɲ=ñ y=y w=w x=x ə=ë"),
    "bambara": _latin("č=c ǰ=j ŋ=ŋ ɲ=ɲ y=y w=w e=ɛ o=ɔ ä=e"),
}

_RUSSIAN = dict(zip("abvgdežziyklmnoprstufxcčšıə", "абвгдежзийклмнопрстуфхцчшыэ", strict=True))
_RUSSIAN |= {"ya": "я", "yu": "ю", "yo": "ё", "ǰ": "дж", "w": "в", "h": "х"}
CYRILLIC = {
    "russian": _RUSSIAN,
    "bulgarian": {k: v for k, v in _RUSSIAN.items() if k not in ("ı", "yo")} | {"ə": "ъ", "y": "й"},
    "mari": _RUSSIAN | {"ö": "ӧ", "ü": "ӱ", "ŋ": "ҥ"},
    "buryat": _RUSSIAN | {"ö": "ө", "ü": "ү", "h": "һ"},
}
GEORGIAN = dict(zip("abgdevzθiklmnopžrstufqščcǰxhy", "აბგდევზთიკლმნოპჟრსტუფყშჩცჯხჰჲ", strict=True)) | {"w": "ვ"}

_ARABIC = dict(zip("btθǰħxdðrzsšʕgfqklmnhwy", "بتثجحخدذرزسشعغفقكلمنهوي", strict=True))
_PERSIAN = {"p": "پ", "č": "چ", "ž": "ژ"}
ARABIC_CONSONANTS = _ARABIC | {"ā": "ا", "ī": "ي", "ū": "و"}
UYGHUR = dict(zip("bptǰčxdrzžsšfqkgŋlmnhvy", "بپتجچخدرزژسشفقكگڭلمنھۋي", strict=True))
UYGHUR_VOWELS = {"a": "ا", "e": "ە", "i": "ى", "o": "و", "u": "ۇ", "ö": "ۆ", "ü": "ۈ"}
SORANI = {k: v for k, v in (_ARABIC | _PERSIAN).items() if k not in "θð"}
SORANI |= {"k": "ک", "g": "گ", "y": "ی", "h": "ھ", "v": "ڤ"}
SORANI_VOWELS = {"a": "ا", "e": "ێ", "i": "ی", "o": "ۆ", "u": "وو", "ə": "ە"}
SINDHI = _ARABIC | _PERSIAN | {"k": "ڪ", "g": "گ", "š": "ش", "v": "و", "ŋ": "ڱ", "ɲ": "ڃ"}
SINDHI_VOWELS = {"a": "ا", "e": "ي", "i": "ي", "o": "و", "u": "و"}

DEVANAGARI = dict(zip("kgčǰtdnpbmyrlvsšhθðfxŋɲ", "कगचजतदनपबमयरलवसशहथधफखङञ", strict=True)) | {"z": "ज", "w": "व"}
DEVANAGARI_SIGNS = {"a": "ा", "e": "े", "i": "ि", "o": "ो", "u": "ु", "ə": ""}
DEVANAGARI_LETTERS = {"a": "आ", "e": "ए", "i": "इ", "o": "ओ", "u": "उ", "ə": "अ"}

_KANA_ROWS = {
    "": "あいうえお", "k": "かきくけこ", "g": "がぎぐげご", "s": "さしすせそ", "z": "ざじずぜぞ", "t": "たちつてと",
    "d": "だぢづでど", "n": "なにぬねの", "h": "はひふへほ", "b": "ばびぶべぼ", "p": "ぱぴぷぺぽ", "m": "まみむめも",
    "y": "やいゆえよ", "r": "らりるれろ", "w": "わいうえを",
}  # fmt: skip
KANA = {row + vowel: signs[i] for row, signs in _KANA_ROWS.items() for i, vowel in enumerate("aiueo")}
KANA_NEAREST = {"l": "r", "v": "b", "f": "h", "š": "s", "č": "t", "ž": "z", "ǰ": "z", "c": "t", "x": "h", "q": "k"}

_HAN_ROWS = {
    "": "阿埃伊奥乌", "b": "巴贝比博布", "p": "帕佩皮波普", "t": "塔特蒂托图", "d": "达德迪多杜",
    "k": "卡克基科库", "g": "加格吉戈古", "f": "法费菲福富", "v": "瓦韦维沃武", "s": "萨塞西索苏",
    "z": "扎泽齐佐祖", "š": "沙舍希绍舒", "č": "查切奇乔楚", "h": "哈赫希霍胡", "m": "马梅米莫穆",
    "n": "纳内尼诺努", "l": "拉莱利洛卢", "r": "拉雷里罗鲁", "y": "亚耶伊约尤", "w": "瓦韦威沃武",
    "c": "察采齐措楚", "ǰ": "贾杰吉乔朱",
}  # fmt: skip
HAN = {row + vowel: signs[i] for row, signs in _HAN_ROWS.items() for i, vowel in enumerate("aeiou")}
HAN_CODA = dict(zip("bptdkgfvszščhmnlrywcǰ", "布普特德克格夫夫斯兹什奇赫姆恩尔尔伊沃茨奇", strict=True))

TONES = {"1": "", "2": "\u0301", "3": "\u0300", "4": "\u0309", "5": "\u0303", "6": "\u0323"}
VIETNAMESE = BASIC | {"k": "c", "d": "đ", "f": "ph", "x": "kh", "č": "ch", "ŋ": "ng", "ɲ": "nh", "ə": "ơ", "ö": "ư"}
VIETNAMESE |= LONG | {"ke": "ke", "ki": "ki", "y": "y", "z": "d"}

VOWELS = frozenset("aeiouöüäıəāīūõáéíóúâêèàãò")
WRITTEN_VOWELS = str.maketrans("aäəeiouöüı", "āāāīīūūūūī")


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


def _signs(sounds: str, pairs: dict[str, str], single: Callable[[str], str]) -> list[str]:
    """The signs of a word: one for two sounds where `pairs` has them, else what `single` makes of one."""
    out, i = [], 0
    while i < len(sounds):
        pair = sounds[i : i + 2]
        known = len(pair) == 2 and pair in pairs
        out.append(pairs[pair] if known else single(sounds[i]))
        i += 1 + known
    return out


def _letters(table: dict[str, str]) -> Callable[[str], str]:
    known = frozenset(key for key in table if len(key) == 1)
    return lambda sounds: "".join(_signs(fit(sounds, known), table, lambda sound: table.get(sound, sound)))


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
    signs = _signs(sounds, KANA, lambda sound: {"n": "ん"}.get(sound) or KANA.get(sound, KANA.get(sound + "u", sound)))
    return "".join(chr(ord(sign) + 0x60) if foreign and "\u3041" <= sign <= "\u3096" else sign for sign in signs)


def _han(sounds: str) -> str:
    sounds = fit(sounds, frozenset("aeioubptdkgfvszščhmnlrywcǰ"))
    return "".join(_signs(sounds, HAN, lambda sound: HAN.get(sound) or HAN_CODA.get(sound, sound)))


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
