"""Items of `anc`: neuron-wise correlation, normalisation schemes, models of all sizes."""

from collections.abc import Callable, Iterable

from crossalign.analysis.indexes import ANC, CCA, CKA
from crossalign.catalog.addresses import Base, Tuned
from crossalign.catalog.items import Item, Needs, needs
from crossalign.catalog.sets import DataSet

PAPER = "anc"

# The names under which the paper's numbers know our models.
PRINTED_MODELS = {"mbert": "bert-base-multilingual-cased"}
PRINTED_MODELS |= {f"xlmr-{size}": f"xlm-roberta-{size}" for size in ("base", "large", "xl", "xxl")}
PRINTED_MODELS |= {f"xglm-{size.lower()}": f"xglm-{size}" for size in ("564M", "1.7B", "2.9B", "4.5B", "7.5B")}
PRINTED_MODELS |= {f"scale-{scheme}": f"scale_{scheme}" for scheme in ("post", "pre", "normformer", "normformer-v2")}


def sentences(languages: Iterable[str]) -> list[DataSet]:
    return [DataSet("parallel", "xnliext", lang) for lang in sorted({"en", *languages})]


def xnli_tuned(config: dict, models: Iterable[str]) -> list[Tuned]:
    # A config of an earlier run, of which a page is made again, lacks the key.
    source = config[PAPER].get("trained_on", "multinli_en")
    return [Tuned(model, "anc-nli", source, "ref", seed) for model in models for seed in config[PAPER]["seeds"]]


def xnli(config: dict) -> Needs:
    return needs(xnli_tuned(config, config[PAPER]["schemes"]))


def scheme_similarity(config: dict) -> Needs:
    return needs(map(Base, config[PAPER]["schemes"]), sentences(config[PAPER]["norm_languages"]))


def normformer(config: dict) -> str:
    """The NormFormer model is the last of the schemes."""
    return config[PAPER]["schemes"][-1]


def normformer_similarity(config: dict) -> Needs:
    return needs([Base(normformer(config))], sentences(config[PAPER]["norm_languages"]))


def second_normformer(config: dict) -> Needs:
    return needs([Base(config[PAPER]["second_normformer"])], sentences(config[PAPER]["norm_languages"]))


def tuned_normformer(config: dict) -> Needs:
    return needs(xnli_tuned(config, [normformer(config)]), sentences(config[PAPER]["norm_languages"]))


def similarity(models: str, languages: str):
    """ANC of the models in one key of the config over the languages in another."""

    def declared(config: dict) -> Needs:
        return needs(map(Base, config[PAPER][models]), sentences(config[PAPER][languages]))

    return declared


def models(config: dict) -> Needs:
    """The models whose layers, neurons and parameters are counted."""
    return needs(map(Base, [*config[PAPER]["xlmr"], *config[PAPER]["xglm"]]))


def figure(id: str, title: str, declared: Callable[[dict], Needs], *indexes: str) -> Item:
    # The largest models are where it counts: the CCA family of 4,096 neurons takes hours on a CPU.
    return Item(id, title, declared, indexes=indexes)


ITEMS = [
    Item("table1", "XNLI accuracy by normalisation scheme", xnli),
    Item("table2", "Models compared", models, reads=("model",)),
    figure("figure1", "CKA of three normalisation schemes", scheme_similarity, *CKA),
    figure("figure2", "Sentence matching of the NormFormer model", normformer_similarity, "matching"),
    figure("figure3", "ANC of mBERT and XLM-R base", similarity("known_models", "known_languages"), *ANC),
    figure("figure4", "ANC of three normalisation schemes", scheme_similarity, *ANC),
    figure("figure5", "ANC of XLM-R by size", similarity("xlmr", "scaling_languages"), *ANC),
    figure("figure6", "ANC of XGLM by size", similarity("xglm", "scaling_languages"), *ANC),
    figure("figure7", "CKA of a second NormFormer model", second_normformer, *CKA),
    figure("figure8", "CKA and ANC of the tuned NormFormer model", tuned_normformer, *CKA, *ANC),
    figure("figure9", "PWCCA and SVCCA of the NormFormer model", normformer_similarity, *CCA),
]
