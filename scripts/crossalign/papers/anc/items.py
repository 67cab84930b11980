"""Items of `anc`: neuron-wise correlation, normalisation schemes, models of all sizes."""

from collections.abc import Iterable

from crossalign.catalog.addresses import Base, Tuned
from crossalign.catalog.sets import DataSet
from crossalign.papers.common.needs import Item, Needs, facts, needs

PAPER = "anc"


def sentences(languages: Iterable[str]) -> list[DataSet]:
    return [DataSet("parallel", "xnliext", lang) for lang in sorted({"en", *languages})]


def xnli_tuned(config: dict, models: Iterable[str]) -> list[Tuned]:
    return [Tuned(model, "anc-nli", "multinli_en", "ref", seed) for model in models for seed in config[PAPER]["seeds"]]


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


ITEMS = [
    Item("table1", "XNLI accuracy by normalisation scheme", xnli),
    Item("table2", "Models compared", facts),
    Item("figure1", "CKA of three normalisation schemes", scheme_similarity),
    Item("figure2", "Sentence matching of the NormFormer model", normformer_similarity),
    Item("figure3", "ANC of mBERT and XLM-R base", similarity("known_models", "known_languages")),
    Item("figure4", "ANC of three normalisation schemes", scheme_similarity),
    Item("figure5", "ANC of XLM-R by size", similarity("xlmr", "scaling_languages")),
    Item("figure6", "ANC of XGLM by size", similarity("xglm", "scaling_languages")),
    Item("figure7", "CKA of a second NormFormer model", second_normformer),
    Item("figure8", "CKA and ANC of the tuned NormFormer model", tuned_normformer),
    Item("figure9", "PWCCA and SVCCA of the NormFormer model", normformer_similarity),
]
