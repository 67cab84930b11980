"""The claims of `adjust` on its main results; those on its studies, figures and setup stand in files of their own."""

from crossalign.papers.adjust.claims_figures import FIGURES
from crossalign.papers.adjust.claims_quantities import (
    T2,
    T3,
    T4,
    TEST_SET,
    above,
    between_sets,
    more_when_mixed,
    ner_before,
    ner_gains,
    ner_scores,
    nli_before,
    one_word,
    qa_before,
)
from crossalign.papers.adjust.claims_setup import SETUP
from crossalign.papers.adjust.claims_studies import STUDIES
from crossalign.results.claims.claim import Claim
from crossalign.results.claims.groups import count, every, most, only, some
from crossalign.results.claims.predicates import all_of, near, negative, positive
from crossalign.results.claims.quantities import chosen, gains, largest, leads_of

PAPER = "adjust"
STUDIED = f"{PAPER}.languages"
CONTINUAL = "adjusted+continual"
CROSS = ("question target, paragraph en", "question en, paragraph target")
CROSS_SET = [*TEST_SET, "setting"]

NLI = gains(T2, "adjusted", "original", setting="original")
NLI_CONTINUAL = gains(T2, CONTINUAL, "adjusted", setting="original")
NLI_MIXED = gains(T2, CONTINUAL, "original", setting="mixed-language")
NER = ner_gains("adjusted", "original")
NER_CONTINUAL = ner_gains(CONTINUAL, "adjusted")
QA = gains(T4, "adjusted", "original", TEST_SET, setting="monolingual")
QA_CROSS = gains(T4, "adjusted", "original", CROSS_SET, setting=CROSS)
QA_CONTINUAL = gains(T4, CONTINUAL, "adjusted", CROSS_SET)

NLI_LEARNT, MIXED_LEARNT = ("nli", nli_before()), ("nli", nli_before("original", "mixed-language"))
NER_LEARNT = ("ner", ner_before)
QA_LEARNT, CROSS_LEARNT = ("qa", qa_before()), ("qa", qa_before(*CROSS, by=CROSS_SET))
ALL_QA_LEARNT = ("qa", qa_before("monolingual", *CROSS, by=CROSS_SET))


CLAIMS: dict[str, Claim] = {
    "nli-gain-adjust": Claim(
        T2,
        "adjustment changes XNLI accuracy by {gains:+} points",
        {"gains": NLI, "best": largest(NLI)},
        test=every("gains", positive),
        number=near("best", "points"),
        over=STUDIED,
        learnt=(NLI_LEARNT,),
    ),
    "nli-gain-continual": Claim(
        T2,
        "continual learning adds {gains:+} points to adjusted models, {best:+} at most",
        {"gains": NLI_CONTINUAL, "best": largest(NLI_CONTINUAL)},
        test=every("gains", positive),
        number=near("best", "points"),
        over=STUDIED,
        learnt=(NLI_LEARNT,),
    ),
    "nli-mixed-hi": Claim(
        T2,
        "adjustment and continual learning change mixed-language Hindi by {gain:+} points",
        {"gain": chosen(NLI_MIXED, "hi")},
        test=positive("gain"),
        number=near("gain", "points"),
        learnt=(("nli", chosen(nli_before("mixed-language"), "hi mixed-language")),),
    ),
    "mixed-gain-adjust": Claim(
        T2,
        "adjustment gains more on mixed-language XNLI by {more:+} points",
        {"more": more_when_mixed("adjusted")},
        test=every("more", positive),
        over=STUDIED,
        learnt=(MIXED_LEARNT,),
    ),
    "mixed-gain-continual": Claim(
        T2,
        "adjustment and continual learning gain more on mixed-language XNLI by {more:+} points",
        {"more": more_when_mixed(CONTINUAL)},
        test=every("more", positive),
        over=STUDIED,
        learnt=(MIXED_LEARNT,),
    ),
    "ner-gain-hi": Claim(
        T3,
        "adjustment changes Hindi NER by {gain:+} points, and that is more than elsewhere by {leads:+}",
        {"gain": chosen(NER, "hi"), "leads": leads_of(NER, "hi")},
        test=all_of(positive("gain"), every("leads", positive)),
        number=near("gain", "points"),
        over=STUDIED,
        learnt=(NER_LEARNT,),
    ),
    "ner-langs": Claim(
        T3,
        "adjustment changes NER by {gains:+} points",
        {"gains": NER},
        test=only("gains", ("ru", "vi", "hi"), positive),
        over=STUDIED,
        learnt=(NER_LEARNT,),
    ),
    "ner-es-falls": Claim(
        T3,
        "adjustment changes Spanish NER by {gain:+} points",
        {"gain": chosen(NER, "es")},
        test=negative("gain"),
        learnt=(("ner", chosen(ner_before, "es")),),
    ),
    "ner-continual": Claim(
        T3,
        "continual learning changes NER of adjusted models by {gains:+} points",
        {"gains": NER_CONTINUAL},
        test=only("gains", ("ru",), positive),
        over=STUDIED,
        learnt=(NER_LEARNT,),
    ),
    "continual-nli-only": Claim(
        T2,
        "continual learning changes adjusted models by {nli:+} points in NLI, {ner:+} in NER and {qa:+} in QA",
        {"nli": NLI_CONTINUAL, "ner": NER_CONTINUAL, "qa": QA_CONTINUAL},
        test=all_of(every("nli", positive), count("ner", positive, value=0), count("qa", positive, value=0)),
        over=STUDIED,
        learnt=(NLI_LEARNT, NER_LEARNT, ALL_QA_LEARNT),
    ),
    "latin-script": Claim(
        T2,
        "languages in Latin script are ahead of others by {leads:+} points",
        {"leads": above(("es", "vi"), ("ru", "hi"), NLI=nli_before(), NER=ner_scores)},
        test=every("leads", positive),
        learnt=(NLI_LEARNT, NER_LEARNT),
    ),
    "qa-deteriorations": Claim(
        T4,
        "adjustment changes monolingual QA by {gains:+} points, from {before}",
        {"gains": QA, "before": qa_before()},
        test=some("gains", negative),
        number=count("gains", negative, "test_sets"),
        over=STUDIED,
        learnt=(QA_LEARNT,),
    ),
    "qa-gains": Claim(
        T4,
        "adjustment changes monolingual QA by {gains:+} points, from {before}",
        {"gains": QA, "before": qa_before()},
        test=count("gains", positive, value=0),
        over=STUDIED,
        learnt=(QA_LEARNT,),
    ),
    "qa-falls-where": Claim(
        T4,
        "adjustment changes monolingual QA by {gains:+} points",
        {"gains": one_word(QA)},
        test=only("gains", ("es-mlqa", "es-xquad", "vi-mlqa"), negative),
        over=STUDIED,
        learnt=(QA_LEARNT,),
    ),
    "qa-continual": Claim(
        T4,
        "continual learning changes QA of adjusted models by {gains:+} points",
        {"gains": QA_CONTINUAL},
        test=most("gains", negative),
        over=STUDIED,
        learnt=(ALL_QA_LEARNT,),
    ),
    "xquad-mlqa": Claim(
        T4,
        "F1 on XQuAD is above that on MLQA by {leads:+} points",
        {"leads": between_sets("xquad", "mlqa")},
        test=every("leads", positive),
        over=STUDIED,
        learnt=(QA_LEARNT,),
    ),
    "qa-cross-gains": Claim(
        T4,
        "adjustment changes cross-lingual QA by {gains:+} points",
        {"gains": QA_CROSS},
        test=only("gains", ("vi", "hi"), positive),
        over=STUDIED,
        learnt=(CROSS_LEARNT,),
    ),
    "qa-cross-some": Claim(
        T4,
        "adjustment changes cross-lingual QA by {gains:+} points",
        {"gains": QA_CROSS},
        test=some("gains", positive),
        over=STUDIED,
        learnt=(CROSS_LEARNT,),
    ),
    **STUDIES,
    **SETUP,
    **FIGURES,
}
