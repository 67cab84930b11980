"""Each claim fails where numbers contradict its sentence, and is unclear where noise hides it."""

import pytest
from tests.unit.claim_mutants import (
    DECLARED,
    both,
    centres,
    draw,
    gain,
    hump,
    noisy,
    put,
    same,
    steady,
    unlearnt,
    verdict,
)
from tests.unit.paper_results import read, write

from crossalign.results.claims.claim import FAILS, HOLDS, NOT_RUN, UNCHECKED, UNCLEAR

ALIGN = "align-predict"
A1, A2, A4, A5, A6 = (f"{ALIGN}/table{place}" for place in (1, 2, 4, 5, 6))
ANC = "anc/table1"
J2, J3, J4, J5, J6, J7, J8, J9 = (f"adjust/table{place}" for place in range(2, 10))
TALK2, TALK5 = "talk/table2", "talk/table5"
SHORT = {"parse": "parsing", "pos": "pos", "ner": "ner"}
TUNED = ["Parsing", "POS", "NER"]
SOURCES = ("en", "ru", "ar")
FLAT, RISING = [0.5] * 13, [0.05 * layer for layer in range(13)]
DIP = [y - 0.2 if layer == 3 else y for layer, y in enumerate(hump(0.78, 5))]
DEEP = range(6, 13)
FRENCH = {"series": "English-French"}
NORMFORMER = {"panel": "NormFormer"}
CONTINUAL = "adjusted+continual"
MIXED, PLAIN, MONO = ({"setting": name} for name in ("mixed-language", "original", "monolingual"))
CROSS = {"setting": ("question target, paragraph en", "question en, paragraph target")}


def figure(paper, place):
    return f"{paper}/figure{place}"


def named(paper, cases):
    return [((paper, name), why, edit) for name, why, edit in cases]


def rho(value, p, item=A4, **keys):
    return both(put(item, value, metric="spearman", **keys), put(item, p, metric="p", **keys))


def delta(name, value, home):
    """The change in the source language, or elsewhere, of a claim drop-ru-pos or upper-ru-pos."""
    kind, source, *_, short = name.split("-")
    layers = "1-2" if kind == "drop" else "11-12"
    return put(A1, value, task=SHORT[short], source=source, target=source if home else "X", layers=layers)


def domain(value, **keys):
    return put(A2, value, layers="1-2", **keys)


def score(item, value, mark="", **keys):
    """Another number; without a mark it does not differ significantly."""
    return put(item, value, mark, **keys)


def sized(dataset, size, amount):
    return score(J5, amount, dataset=dataset, variant=f"size={size}")


def varied(item, variant, amount, **keys):
    name = "aggregation" if item == J6 else "aligned tokens"
    return score(item, amount, variant=f"{name}={variant}", **keys)


def bar(system, value, lang):
    return put(figure("talk", 2), value, series=system, x=lang)


def latin(value, panel):
    return put(figure("talk", 3), value, series="Latin script", panel=panel)


def all_gains(amount, continual_amount, *marks):
    """Of every model of tables 2 to 4 over the one before."""
    pairs = (("adjusted", amount, marks[0]), (CONTINUAL, continual_amount, marks[1]))
    return both(*(gain(item, by, mark, model) for item in (J2, J3, J4) for model, by, mark in pairs))


IN_KIND = [key for key, (_, claim) in DECLARED.items() if claim.test]
HISTOGRAMS = [key for key in IN_KIND if key[0] == "adjust" and "figure" in DECLARED[key][1].item]
DROPS, UPPERS = ([name for _, name in IN_KIND if name.startswith(kind)] for kind in ("drop-", "upper-"))
UPPERS = [name for name in UPPERS if len(name.split("-")) > 2]
# What is said in amount alone.
AMOUNTS = [("anc", name) for name in ("anc-peak", "match-fr", "ccas")]

# Numbers that would bear out what the paper's own do not; docs/understand/verdicts.md tells why these do not.
MENDED = {
    (ALIGN, "spearman-ft-ner"): rho(0.6, 0.011, task="ner"),
    (ALIGN, "spearman-pre-ner"): rho(0.6, 0.011, task="ner"),
    (ALIGN, "spearman-strong"): rho(0.7, 0.002, task="ner"),
    (ALIGN, "upper-ar-pos"): delta("upper-ar-pos", -0.5, home=False),
    ("adjust", "mixed-gain-adjust"): gain(J2, 5, "*", **MIXED),
    ("adjust", "continual-nli-only"): score(J3, 65.0, "**", model=CONTINUAL, language="ru"),
    ("adjust", "qa-continual"): gain(J4, -3, "**", CONTINUAL, "adjusted"),
    ("adjust", "qa-peak-size"): sized("tydiqa", "5K", 1.5),
    ("adjust", "qa-few-pairs"): sized("tydiqa", "5K", 1.5),
    ("adjust", "size-ner"): sized("wikiann", "250K", 4.0),
    ("adjust", "qa-cross-gains"): score(J4, 67.5, "", model="adjusted", language="ru", **CROSS),
    ("adjust", "agg-start-ner"): varied(J6, "start", 4.5, task="ner"),
    ("adjust", "words-all"): varied(J7, "all", 4.5),
    ("adjust", "qa-cls"): varied(J7, "all", 2.0),
    ("adjust", "embert-gain"): gain(J9, 3, ""),
    ("adjust", "embert-better"): score(J9, 80, task="ner"),
    ("adjust", "ner-es-falls"): score(J3, 71.0, "*", model="adjusted", language="es"),
    ("talk", "zero-shot-all"): put(A6, 30, source="en", target="ja", layers="ref"),
    ("talk", "spearman-strong"): put(TALK5, 0.7, metric="spearman", task="ner"),
}

# Claim, why the numbers contradict it, and the numbers.
CONTRADICTIONS = [
    *named(
        ALIGN,
        [
            *(
                (f"cka-peak-{task.lower()}", why, both(*more, draw(figure(ALIGN, 1), values, series=task)))
                for task in TUNED
                for why, values, *more in (
                    ("falls from layer 1 on", hump(0.78, 1)),
                    ("increases to layer 9", hump(0.78, 9)),
                    ("falls at layer 3, so not constantly", DIP),
                    ("no fall to be seen", hump(0.78, 5, 0.002), steady),
                )
            ),
            ("cka-peak-layer", "falls from layer 1 on", draw(figure(ALIGN, 5), hump(0.78, 1), series=TUNED)),
            (
                "cka-peak-layer",
                "two of five languages have another trend",
                draw(figure(ALIGN, 5), RISING, series=TUNED, panel=["English-French", "English-Turkish"]),
            ),
            *(
                (name, why, draw([figure(ALIGN, 1), figure(ALIGN, 5)], values, series=series))
                for name, why, values, series in (
                    ("cka-peak-pretrained", "the pretrained model never falls", RISING, "pretrained"),
                    ("cka-preserved", "fine-tuning halves the similarity", hump(0.4, 5, 0.02), TUNED),
                    ("cka-ner-upper", "the lower layers change", [0.1] * 6 + hump(0.78, 5)[6:], "NER"),
                )
            ),
            (
                "cka-ner-languages",
                "three languages never fall",
                draw(figure(ALIGN, 4), RISING, series=["Finnish", "Turkish", "Hindi"]),
            ),
            (
                "cka-lower-reinit",
                "above the re-initialised layers it is higher than before",
                draw([figure(ALIGN, place) for place in (6, 7, 8)], [0.0] * 3 + [0.7] * 10, series="layers 1-2"),
            ),
            *(
                (
                    f"spearman-{short}-{task}",
                    "similar languages transfer worse",
                    rho(-0.7, 0.002, task=task, model=model),
                )
                for short, model in (("ft", "fine-tuned"), ("pre", "pretrained"))
                for task in SHORT.values()
            ),
            ("spearman-strong", "significant, but 0.2 is not strong", rho(0.2, 0.04, task="parsing")),
            *(
                (f"spearman-{name}", why, draw(figure(ALIGN, 3), values, series=series))
                for name, why, values, series in (
                    ("layer", "layer 11 correlates most for NER", hump(0.8, 11), "NER, pretrained"),
                    ("ner-upper", "no decrease", RISING, "NER, fine-tuned"),
                    ("ner-upper", "neither increase nor decrease", FLAT, "NER, fine-tuned"),
                    ("ft-varies", "POS does not vary", FLAT, "POS, fine-tuned"),
                    ("ft-varies", "parsing varies more than NER", hump(0.9, 6, 0.15), "Parsing, fine-tuned"),
                )
            ),
            *((name, "the source language loses more than moderately", delta(name, -12, True)) for name in DROPS),
            *((name, "no sharp drop elsewhere", delta(name, -0.2, False)) for name in DROPS),
            *(
                (
                    name,
                    "the source language loses more",
                    both(steady, delta(name, -3.3, True), delta(name, -2.2, False)),
                )
                for name in DROPS
            ),
            *((name, "harms", delta(name, -6, home)) for name in UPPERS for home in (True, False)),
            ("sets-lower", "English loses more", put(A5, 20, target="en", layers=["1", "2", "1-3", "1-4"])),
            ("sets-upper", "harm elsewhere", put(A5, 10, target=["fr", "de", "tr"], layers=["10-12", "9-12"])),
            *(
                (name, why, edit)
                for name in ("domain-lit", "domain-fr")
                for why, edit in (
                    ("11.84 is not very moderate", domain(-11.84, task="parsing", domain="literature")),
                    ("French loses little", domain(-0.5, task="parsing", domain="translation of in-domain test")),
                )
            ),
            *(
                (
                    f"domain-{short}",
                    "English loses more",
                    both(steady, domain(-3.3, target="en"), domain(-2.2, target="fr")),
                )
                for short in (*SHORT, "lit", "fr")
            ),
            ("domain-parse", "not moderate for the web", domain(-9, task="parsing", domain="web")),
            ("domain-parse", "no large drop in French", domain(-0.5, task="parsing", domain="wiki")),
            ("domain-pos", "not moderate for literature", domain(-9, task="pos", domain="literature")),
            ("domain-ner", "not moderate for news", domain(-9, task="ner", domain="news")),
            *((f"domain-{task}", "no large drop", domain(-0.5, task=task, target="fr")) for task in ("pos", "ner")),
        ],
    ),
    *named(
        "anc",
        [
            (name, why, draw(figure("anc", place), values, **keys))
            for name, why, place, values, keys in (
                ("anc-peak", "far from 0.7", 3, 0.3, {"panel": "mBERT"}),
                ("match-fr", "below one half in one of the layers", 2, {12: 0.4}, FRENCH),
                ("match-deep", "as near zero as CKA", 2, dict.fromkeys(DEEP, 0.02), {}),
                ("match-deep", "CKA is higher there", 1, dict.fromkeys(DEEP, 0.95), NORMFORMER),
                ("match-deep", "no decline", 2, {12: 0.95}, FRENCH),
                ("cka-others", "low in one of the two models", 1, 0.1, {"panel": "Post-LN"}),
                ("cka-normformer-high", "falls from layer 0 on", 1, dict.fromkeys(range(1, 6), 0.2), FRENCH),
                ("cka-normformer-drop", "a gentle fall", 1, {6: 0.5}, NORMFORMER | FRENCH),
                ("cka-normformer-zero", "high in one layer of one language", 1, {9: 0.5}, NORMFORMER | FRENCH),
                ("cka-normformer-v2", "not near zero", 7, {8: 0.3}, FRENCH),
                ("cka-normformer-v2", "not the same curve", 7, dict.fromkeys(range(6), 0.3), {}),
                ("cka-tuned", "CKA captures the middle", 8, {8: 0.4}, FRENCH | {"panel": "CKA"}),
                ("cka-tuned", "CKA fails at the last layer", 8, {12: 0.05}, FRENCH | {"panel": "CKA"}),
                ("cka-tuned", "ANC fails at one layer", 8, {3: 0.1}, FRENCH | {"panel": "ANC"}),
                ("ccas", "far above 0.8", 9, {7: 0.95}, FRENCH | {"panel": "SVCCA"}),
                ("cca-passes", "SVCCA near zero as well", 9, dict.fromkeys(DEEP, 0.05), {"panel": "SVCCA"}),
                ("cca-passes", "CKA shows as much", 1, dict.fromkeys(DEEP, 0.9), NORMFORMER),
                ("scaling-pattern", "one model aligns to its end", 5, {48: 0.9}, {"panel": "XLM-R XXL"}),
                ("scaling-pattern", "one model only falls", 6, {0: 0.9, 1: 0.8}, {"panel": "XGLM 1.7B"}),
                ("clm-pattern", "a causal model peaks at layer 1", 6, {1: 0.9}, {"panel": "XGLM 7.5B"}),
                ("mbert-vs-xlmr", "mBERT is nearer to English", 3, 0.9, {"panel": "mBERT"}),
                ("anc-known", "XLM-R aligns to its end", 3, {12: 0.9}, FRENCH | {"panel": "XLM-R base"}),
                ("anc-normformer", "no divergence", 4, {12: 0.9}, NORMFORMER | FRENCH),
                ("anc-normformer", "a peak in layer 2", 4, {2: 0.75}, NORMFORMER),
                ("anc-deep", "near zero like CKA", 4, dict.fromkeys(DEEP, 0.05), NORMFORMER),
                ("anc-others", "Pre-LN has no such pattern", 4, {12: 0.9}, {"panel": "Pre-LN"}),
            )
        ],
    ),
    *named(
        "anc",
        [
            ("transfer-gap", "one language as good as English", put(ANC, 0.83, model="scale_pre", target="bg")),
            ("norm-transfer", "a loss by one scheme", put(ANC, 0.6, model="scale_normformer", target=("fr", "bg"))),
            ("norm-transfer", "a gain by one scheme", put(ANC, 0.85, model="scale_pre", target=("fr", "bg"))),
        ],
    ),
    *named(
        "adjust",
        [
            ("nli-gain-adjust", "a loss in one", score(J2, 66, "*", model="adjusted", language="vi", **PLAIN)),
            ("nli-gain-continual", "a loss in one", score(J2, 72, "**", model=CONTINUAL, language="es", **PLAIN)),
            ("nli-mixed-hi", "below the original model", score(J2, 50, model=CONTINUAL, language="hi", **MIXED)),
            ("mixed-gain-adjust", "the mixed set gains less", gain(J2, -1, "*", **MIXED)),
            (
                "mixed-gain-continual",
                "the mixed set gains less",
                score(J2, 54, model=CONTINUAL, language="hi", **MIXED),
            ),
            ("ner-gain-hi", "a loss", score(J3, 60, "*", model="adjusted", language="hi")),
            ("ner-gain-hi", "another language gains more", score(J3, 70, "*", model="adjusted", language="ru")),
            ("ner-langs", "Spanish gains as well", score(J3, 76, "*", model="adjusted", language="es")),
            ("ner-langs", "Vietnamese loses", score(J3, 68, "*", model="adjusted", language="vi")),
            ("ner-es-falls", "a gain", score(J3, 76, "*", model="adjusted", language="es")),
            ("ner-continual", "Hindi gains as well", score(J3, 72, "**", model=CONTINUAL, language="hi")),
            ("ner-continual", "Russian loses", score(J3, 60, "**", model=CONTINUAL, language="ru")),
            ("continual-nli-only", "QA gains as well", gain(J4, 3, "**", CONTINUAL, "adjusted", language="es")),
            ("latin-script", "Russian above Vietnamese", score(J2, 74, model="original", language="ru", **PLAIN)),
            ("qa-deteriorations", "gains everywhere", gain(J4, 3, "*", **MONO)),
            ("qa-gains", "a gain", score(J4, 60, "*", model="adjusted", language="hi", dataset="xquad", **MONO)),
            ("qa-falls-where", "Hindi falls as well", gain(J4, -3, "*", language="hi", **MONO)),
            ("qa-falls-where", "Spanish gains on one set", gain(J4, 3, "*", language="es", dataset="xquad", **MONO)),
            ("qa-continual", "gains in more than a tenth", gain(J4, 3, "**", CONTINUAL, "adjusted", language="hi")),
            ("xquad-mlqa", "MLQA above XQuAD in one language", score(J4, 75, language="vi", dataset="mlqa", **MONO)),
            ("qa-peak-size", "QA grows with the corpus", both(sized("tydiqa", "250K", 4), sized("xquad", "250K", 4))),
            ("qa-few-pairs", "a loss", sized("xquad", "5K", -1.5)),
            ("size-nli", "no growth", sized("xnli", "250K", -2.0)),
            ("size-nli", "a fall on the way", sized("xnli", "100K", -4.0)),
            ("size-ner", "a fall", sized("wikiann", "250K", 0.0)),
            ("qa-cross-gains", "Spanish gains as well", gain(J4, 3, "*", language="es", **CROSS)),
            ("qa-cross-some", "losses everywhere", gain(J4, -3, "*", **CROSS)),
            ("agg-subword", "NLI is worse as well", varied(J6, "subword alignment", -3, task="nli")),
            ("agg-subword", "QA is better", varied(J6, "subword alignment", 3, dataset="xquad")),
            ("agg-start-ner", "the first sub-word is worse", varied(J6, "start", 1, task="ner")),
            ("words-cls", "[CLS] is better on NLI", varied(J7, "[CLS]", 4, task="nli")),
            ("words-all", "special tokens harm", varied(J7, "all", 1)),
            ("qa-cls", "[CLS] alone is best", varied(J7, "[CLS]", 5)),
            ("mono-diff", "adjustment harms", score(J8, 85, model="adjusted", language="ru")),
            ("embert-gain", "a loss", score(J9, 60, model="adjusted", dataset="xnli")),
            ("embert-qa", "losses", gain(J9, -3, "", task="qa")),
            ("embert-better", "below mBERT in QA", score(J9, 40, task="qa")),
            # In the paper's shapes related and unrelated words lie at 20 and 24 in the original model, at 14 and 24 in
            # the adjusted one, about 8 in tuned ones, and at 10 and 18 after continual learning.
            ("hist-adjust", "unrelated words come closer, too", centres("adjusted", 10, 17)),
            ("hist-adjust", "related words do not come closer", centres("adjusted", 22, 30, "Russian")),
            ("hist-ft", "no overlap", centres("original, NLI", 8, 14, "Hindi")),
            ("hist-ft", "no overlap of the adjusted model", centres("adjusted, NLI", 8, 14)),
            ("hist-ft", "overlap before", both(centres("original", 20, 20.2), centres("original, NLI", 8, 9))),
            ("ft-closer", "unrelated words stay where they are", centres("original, NLI", None, 24)),
            ("ft-closer", "words of the adjusted model stay where they are", centres("adjusted, NLI", 14, 15)),
            ("ft-forgets", "one task does not", both(centres("adjusted", 14, 18), centres("adjusted, QA", 8, 20))),
            ("hist-adjusted-ft", "the original model separates better", centres("original, NLI", 8, 12)),
            ("hist-adjusted-ft", "no modest effect", centres("adjusted, NLI", 8, 18)),
            ("hist-cl", "one task separates worse", centres("continual, QA", 8, 8, "Vietnamese")),
            ("cl-keeps", "half of the separation is lost", centres("continual, NLI", 10, 13)),
            ("hist-ner-es", "Hindi separates best", centres("adjusted, NER", 8, 18, "Hindi")),
            ("separation-no-help", "scores grow wherever separation does", all_gains(5, 10, "*", "**")),
        ],
    ),
    *named(
        "talk",
        [
            ("gsw-category", "mBERT does not outperform the baseline: not Easy", bar("mBERT", 40, "Swiss German")),
            ("wo-category", "mBERT outperforms the baseline without MLM: Easy", bar("mBERT", 60, "Wolof")),
            ("wo-category", "nor does mBERT after MLM: Hard", bar("mBERT+MLM", 45, "Wolof")),
            ("ug-category", "mBERT after MLM outperforms the baseline: Intermediate", bar("mBERT+MLM", 60, "Uyghur")),
            ("ug-category", "mBERT outperforms the baseline: Easy", bar("mBERT", 60, "Uyghur")),
            ("translit-effect", "one point is no high impact", latin(61, "Uyghur, Parsing")),
            ("translit-effect", "Latin script hurts", latin(40, "Uyghur, Parsing")),
            ("translit-sorani", "Latin script hurts", latin(40, "Sorani, NER")),
            ("translit-relatives", "Mari profits though its relatives' script is its own", latin(90, "Mari, NER")),
            ("translit-seen-effect", "Russian profits though it was seen in its script", latin(90, "Russian, NER")),
            ("related-script", "the baseline is better on a related language", bar("BiLSTM", 90, "Faroese")),
            ("zero-shot-all", "trivial on French", put(A6, 9, source="en", target="fr", layers="ref")),
            ("same-language-small", "a large drop", put(TALK2, -9, source="ru", target="ru", layers="5-6")),
            *(
                (f"{kind}-{source}", "elsewhere", put(TALK2, value, source=source, target="X", layers=layers))
                for kind, layers, value in (("lower", "1-2", -0.2), ("upper", "11-12", -6))
                for source in SOURCES
            ),
            ("cka-en-de", "aligns in the upper part", draw(figure("talk", 1), hump(0.78, 9), series="pretrained")),
            ("cka-en-de", "right above the embeddings", draw(figure("talk", 1), hump(0.78, 1), series="pretrained")),
            ("cka-en-de", "NER loses half of it", draw(figure("talk", 1), hump(0.4, 5, 0.02), series="NER")),
            ("spearman-pos", "the better, the worse", rho(-0.7, 0.002, TALK5)),
            ("spearman-strong", "0.2 is not strong", put(TALK5, 0.2, metric="spearman", task="pos")),
        ],
    ),
]
# The spread of single runs is a declared one; it hides small differences of histograms.
HIDDEN = named(
    "adjust",
    [
        ("hist-adjust", "related words as far as before", centres("adjusted", 20, 24)),
        ("hist-adjust", "unrelated words a tenth closer", centres("adjusted", 10, 21.6)),
        ("hist-ft", "four fifths in common", centres("original, NLI", 8, 9.6)),
        ("ft-closer", "a tenth closer", centres("original, NLI", 18, 18.3)),
        ("ft-forgets", "as before", centres("adjusted, NER", 14, 24)),
        ("hist-adjusted-ft", "no difference", centres("adjusted, NLI", 8, 8.3)),
        ("hist-cl", "no difference", centres("continual, NER", 8, 9, "Hindi")),
        ("cl-keeps", "four fifths are left", centres("continual, NLI", 10, 15.5)),
        ("hist-ner-es", "one language as good", centres("adjusted, NER", 8, 12, "Hindi")),
        ("separation-no-help", "no score changes", all_gains(0, 0, "", "")),
    ],
)


def told(value):
    return value if isinstance(value, str) else "/".join(value) if isinstance(value, tuple) else ""


def test_every_sentence_can_fail_and_be_unclear():
    assert {key for key, *_ in CONTRADICTIONS} == {*IN_KIND, *AMOUNTS}
    assert {key for key, *_ in HIDDEN} == set(HISTOGRAMS)


@pytest.mark.parametrize("key", MENDED, ids=told)
def test_where_the_papers_numbers_do_not_support_it_better_ones_would(paper, key):
    assert verdict(key, paper, MENDED[key], amounts=key[0] == "adjust").verdict == HOLDS


@pytest.mark.parametrize(("key", "why", "edit"), CONTRADICTIONS, ids=told)
def test_the_sentence_fails_for_its_own_reason(paper, key, why, edit):
    assert verdict(key, paper, both(MENDED.get(key, same), edit), amounts=key in AMOUNTS).verdict == FAILS, why


@pytest.mark.parametrize("key", [key for key in IN_KIND if key not in HISTOGRAMS], ids=told)
def test_noise_makes_it_unclear(paper, key):
    # Whether the task is learnt is the one claim itself; "no significant gain" is what noise brings about.
    edit = (lambda item, row: row | {"std": "100"}) if key[1] == "zero-shot-all" else noisy
    assert verdict(key, paper, edit).verdict == (HOLDS if key[1] == "qa-gains" else UNCLEAR)


@pytest.mark.parametrize(("key", "why", "edit"), HIDDEN, ids=told)
def test_what_noise_could_turn_round(paper, key, why, edit):
    assert verdict(key, paper, edit).verdict == UNCLEAR, why


@pytest.mark.parametrize("key", IN_KIND, ids=told)
def test_what_was_not_learnt_cannot_be_checked(paper, key):
    """Every claim on scores needs a floor of competence; similarity itself has none."""
    item, shape = DECLARED[key][1].item, DECLARED[key][1].shape
    on_scores = "table" in item or (key[0] in (ALIGN, "talk") and not shape) or key[1] == "separation-no-help"
    found = verdict(key, paper, unlearnt)
    has_floor = found.verdict == UNCHECKED and found.detail.startswith("not learnt: ")
    assert has_floor == (on_scores and key[1] != "zero-shot-all")


def test_not_learnt_tells_the_numbers(paper):
    edit = put(A1, 12, task="ner", source="ru", target="X", layers="ref")
    found = verdict((ALIGN, "drop-ru-ner"), paper, edit)
    assert found.detail == "not learnt: NER X 12.00 ± 0.58, where guessing may reach 20"
    assert verdict((ALIGN, "drop-en-ner"), paper, edit).verdict == HOLDS
    found = verdict(("anc", "norm-transfer"), paper, put(ANC, 0.34, model="scale_post", target="bg"))
    assert found.verdict == UNCHECKED and found.detail.startswith("not learnt: NLI scale_post bg 34.00 ±")


def test_shapes_are_judged_again_with_length_taken_out(paper, tmp_path):
    """A peak that length made: as measured the claim holds, under control it does not."""
    name = f"figures/{figure(ALIGN, 1)}.csv"
    rows = read(paper[1] / name)
    peakless = [row | {"control": "length", "y": f"{RISING[int(row['x'])]:.4f}"} for row in rows]
    write(tmp_path / name, [row | {"control": "none"} for row in rows] + peakless)
    found = verdict((ALIGN, "cka-peak-ner"), (paper[0], tmp_path))
    assert (found.verdict, found.controlled) == (HOLDS, FAILS)
    assert found.controlled_measured.startswith("CKA of English and Russian is largest at layer 12 (0.60)")


def test_facts_printed_twice_are_one():
    facts = {f"{paper}/{name}": claim.same_as for (paper, name), (_, claim) in DECLARED.items() if claim.same_as}
    assert facts == {
        f"{ALIGN}/drop-en-x-parse": f"{ALIGN}/drop-en-en-parse",
        f"{ALIGN}/upper-en-x-parse": f"{ALIGN}/upper-en-en-parse",
        f"{ALIGN}/domain-fr": f"{ALIGN}/domain-lit",
        "anc/matching-n": "anc/parallel-n",
        "talk/lower-en": f"{ALIGN}/drop-en-en-parse",
        "talk/upper-en": f"{ALIGN}/upper-en-en-parse",
        **{f"talk/lower-{source}": f"{ALIGN}/drop-{source}-parse" for source in ("ru", "ar")},
        **{f"talk/upper-{source}": f"{ALIGN}/upper-{source}-parse" for source in ("ru", "ar")},
        "talk/spearman-pos": f"{ALIGN}/spearman-ft-pos",
        "talk/spearman-strong": f"{ALIGN}/spearman-strong",
    }
    assert set(facts.values()) <= {"/".join(key) for key in DECLARED}


# Claim, what is done to the numbers, and what the claim says of it.
SPECIAL = [
    # The plain formula of PWCCA gives other values, which decide nothing.
    (("anc", "ccas"), draw(figure("anc", 9), 0.0, panel="PWCCA"), HOLDS, ""),
    (("anc", "cca-passes"), draw(figure("anc", 9), 0.0, panel="PWCCA"), HOLDS, ""),
    (
        ("anc", "ccas"),
        lambda item, row: None if "library" in row.get("panel", "") else row,
        UNCHECKED,
        "has no PWCCA (authors' library)",
    ),
    # Languages "diverge slightly only at deep layers".
    (("anc", "anc-normformer"), draw(figure("anc", 4), {11: 0.75}, **NORMFORMER), HOLDS, ""),
    # A single model's curve has the spread over language pairs for its `std`, which is no noise.
    (("anc", "scaling-pattern"), lambda item, row: row | {"std": "0.2", "n": "1"}, HOLDS, ""),
    # Overlap is said of NLI alone.
    (("adjust", "hist-ft"), both(centres("original, NER", 8, 16), centres("adjusted, QA", 8, 18)), HOLDS, ""),
    (
        ("adjust", "separation-no-help"),
        both(
            *(centres(f"{kind}, {task}", 8, 8.3) for kind in ("adjusted", "continual") for task in ("NLI", "NER", "QA"))
        ),
        UNCHECKED,
        "no model of this run separates related words better",
    ),
    (("adjust", "cl-keeps"), centres("adjusted", 20, 20), UNCHECKED, "no better than chance"),
    (
        (ALIGN, "domain-ner"),
        lambda item, row: row | ({"task": "none"} if row.get("domain") == "news" else {}),
        UNCHECKED,
        f"{A2} of this run has no other English domain for NER than the one trained on",
    ),
    # Hard languages are counted with noise: Sorani may be hard or not (39.9 against 40), or one language more.
    (("talk", "hard-count"), same, HOLDS, ""),
    (("talk", "hard-count"), bar("BiLSTM", 90, "Wolof"), FAILS, ""),
    (("talk", "hard-count"), bar("BiLSTM", 39.9, "Sorani"), UNCLEAR, ""),
    (("talk", "hard-count"), bar("BiLSTM", 60.1, "Maltese"), UNCLEAR, ""),
]


@pytest.mark.parametrize(("key", "edit", "expected", "detail"), SPECIAL, ids=told)
def test_what_a_claim_is_said_of(paper, key, edit, expected, detail):
    found = verdict(key, paper, edit, amounts=key in [*AMOUNTS, ("talk", "hard-count")])
    assert found.verdict == expected and detail in found.detail


@pytest.mark.parametrize(("away", "expected"), [("1", FAILS), ("9", HOLDS)])
def test_of_two_ner_scores_the_nearer_one_is_judged(paper, away, expected):
    """By entity F1 continual learning helps Spanish as well; that decides where it is nearer to what is printed."""

    def edit(item, row):
        if item != J3:
            return row
        helped = row["model"] == CONTINUAL and row["language"] == "es"
        entity = row | {"metric": "entity F1", "difference": away} | ({"mean": "80"} if helped else {})
        return [row | {"difference": "5"}, entity]

    assert verdict(("adjust", "ner-continual"), paper, edit).verdict == expected


def test_table_3_decides_between_two_ner_scores_for_all_tables(paper):
    """Gains in entity F1 may be nearer to the printed ones, and fall with more pairs; the paper has one score."""

    def edit(item, row):
        if item == J3:
            return [row | {"difference": "5"}, row | {"metric": "entity F1", "difference": "9"}]
        if item == J5 and row["dataset"] == "wikiann":
            token, entity = (sized("wikiann", "250K", most)(item, row) for most in (4.0, 0.0))
            return [token | {"difference": "5"}, entity | {"metric": "entity F1", "difference": "1"}]
        return row

    assert verdict(("adjust", "size-ner"), paper, edit).verdict == HOLDS


def test_the_slides_alone_say_nothing_of_other_languages(paper):
    config, folder = paper
    slides = config | {"talk": config["talk"] | {"profile_languages": ["gsw", "wo", "ug"], "transliterated_seen": []}}
    for name in ("translit-sorani", "translit-relatives", "translit-seen-effect", "related-script", "hard-count"):
        found = verdict(("talk", name), (slides, folder))
        assert found.verdict == NOT_RUN and "shows the languages of talk.profile_languages" in found.detail
    few = config | {"talk": config["talk"] | {"languages": ["wo", "ug"]}}
    details = [verdict(("talk", name), (few, folder)).detail for name in ("related-script", "translit-sorani")]
    assert details[0] == "neither Faroese nor Naija is among the languages of this run"
    assert details[1] == "Sorani: not transliterated in this run"
