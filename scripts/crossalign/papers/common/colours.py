"""One colour for one thing in all figures: tasks, layers, languages, systems, kinds of word pairs.

Hues after Okabe and Ito and after Tol, which stay apart for colour-blind readers; lines differ in dashes or markers.
"""

from dataclasses import dataclass

BLACK, GREY = "#222222", "#8a8a8a"
BLUE, SKY, GREEN, ORANGE = "#0072B2", "#56B4E9", "#009E73", "#E69F00"
VERMILLION, PURPLE, WINE, OLIVE, TEAL, INDIGO = "#D55E00", "#CC79A7", "#882255", "#999933", "#44AA99", "#332288"


@dataclass(frozen=True)
class Look:
    """How a curve is drawn; `dash` is a matplotlib line style."""

    colour: str
    marker: str = "o"
    dash: str | tuple = "-"
    width: float = 1.3


SHORT, DOTS = (0, (4, 1.5)), (0, (1, 1.2))

TASKS = {
    "parsing": Look(BLUE, "o"),
    "pos": Look(ORANGE, "s"),
    "ner": Look(GREEN, "^"),
    "nli": Look(VERMILLION, "D"),
    "qa": Look(PURPLE, "v"),
    "pretrained": Look(BLACK, "x", SHORT),
}

# Ordered things get ordered colours: from dark and low layers to light and high ones.
DEPTHS = ("#7b3294", "#2f5fb3", "#1f9e9a", "#7aa634", "#dd9a1a", "#c2410c")
DEPTH_MARKERS = ("o", "s", "^", "D", "v", "P")

LANGUAGES = {
    "fr": Look(BLUE, "o"),
    "et": Look(GREEN, "s"),
    "bg": Look(ORANGE, "^"),
    "lt": Look(PURPLE, "D"),
    "lv": Look(OLIVE, "v"),
    "pl": Look(WINE, "P"),
    "de": Look(SKY, "X"),
    "ru": Look(VERMILLION, "s"),
    "ar": Look(INDIGO, "^"),
    "zh": Look(TEAL, "D"),
    "cs": Look(GREEN, "v", SHORT),
    "fi": Look(TEAL, "o", SHORT),
    "id": Look(OLIVE, "s", SHORT),
    "it": Look(BLUE, "^", SHORT),
    "ja": Look(PURPLE, "D", SHORT),
    "hi": Look(ORANGE, "v", SHORT),
    "pt": Look(INDIGO, "P", SHORT),
    "sl": Look(WINE, "X", SHORT),
    "sv": Look(SKY, "o", SHORT),
    "es": Look(VERMILLION, "s", SHORT),
    "tr": Look(GREY, "^", SHORT),
    "vi": Look(GREY, "D"),
}

SYSTEMS = {
    "bilstm": Look("#b8b8b8"),
    "mono": Look("#e9c46a"),
    "mbert": Look("#6fb1d6"),
    "mlm": Look("#0b5a8a"),
}
SCRIPTS = {"original": Look("#5e548e"), "latin": Look("#d98c3f")}
PAIRS = {"related": Look(BLUE), "unrelated": Look(ORANGE)}
SCALING = Look(BLUE, "o")


def language(code: str) -> Look:
    """The look of a language; one that the papers do not have is grey."""
    return LANGUAGES.get(code, Look(GREY, "o", DOTS))


def depth(place: int, count: int, dash: str | tuple = "-") -> Look:
    """The look of the `place`-th of `count` layer sets, from low to high."""
    step = 0 if count < 2 else round(place * (len(DEPTHS) - 1) / (count - 1))
    return Look(DEPTHS[step], DEPTH_MARKERS[place % len(DEPTH_MARKERS)], dash)
