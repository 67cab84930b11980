"""Items of `study`: what the papers asked of mBERT, asked of the models that the config names."""

from crossalign.analysis.indexes import VARIANCE
from crossalign.catalog.addresses import Adapted, Adjustment, Base, Tuned
from crossalign.catalog.items import Item, Needs, needs
from crossalign.catalog.sets import DataSet, pool_set
from crossalign.catalog.studied import layer_sets, ner_sets, studied, study
from crossalign.catalog.targets import tested_on

PAPER = "study"
CORPUS = "pud"


def train_set(config: dict, task: str) -> str:
    """The English set that a task is learnt from."""
    return {"ner": f"{ner_sets(config)[0]}_en", "nli": "multinli_en"}.get(task) or study(config)["treebank"]


def tuned(config: dict, model: str, task: str, init: str = "ref") -> list[Tuned]:
    """The seeds of one fine-tuning."""
    return [Tuned(model, f"{PAPER}-{task}", train_set(config, task), init, seed) for seed in config["seeds"]]


def tasks(config: dict) -> list[str]:
    return study(config).get("tasks", [])


def others(config: dict) -> list[str]:
    """The languages that are compared with English."""
    return [lang for lang in study(config).get("languages", ()) if lang != "en"]


def sentences(config: dict) -> list[DataSet]:
    return [DataSet("parallel", CORPUS, lang) for lang in ["en", *others(config)]] if studied(config) else []


def models(config: dict) -> Needs:
    return needs(map(Base, studied(config)))


def similarity(config: dict) -> Needs:
    return needs(map(Base, studied(config)), sentences(config))


def references(config: dict) -> list[Tuned]:
    """The fine-tuned models with no layer drawn anew."""
    return [run for model in studied(config) for task in tasks(config) for run in tuned(config, model, task)]


def random_init(config: dict) -> Needs:
    """Every task with every set of layers drawn anew."""
    drawn = [
        run
        for model in studied(config)
        for task in tasks(config)
        for layers in layer_sets(config, model).values()
        for run in tuned(config, model, task, f"random-{layers}")
    ]
    return needs([*references(config), *drawn])


def transfer(config: dict) -> Needs:
    return needs(references(config))


def correlation(config: dict) -> Needs:
    """Only pretrained models are compared: what is asked is whether similarity foretells transfer."""
    return needs([*references(config), *map(Base, studied(config))], sentences(config))


def vocabulary(config: dict) -> Needs:
    """The words of the treebanks that models are tested on."""
    languages = ["en", *others(config), *study(config).get("unseen", ())]
    return needs(map(Base, studied(config)), [tested_on(config, "pos", lang) for lang in languages if studied(config)])


def adjusted(config: dict, model: str, lang: str) -> list[Adapted]:
    """A model after its adjustment to a language, with the seeds of the study."""
    paper = config["adjust"]
    made = Adjustment(lang, paper["pairs"], paper["aggregation"], paper["tokens"])
    return [Adapted(model, made, seed) for seed in config["seeds"]]


ADJUSTED_TASKS = ("nli", "ner")


def words(config: dict) -> Needs:
    """Distances of words before and after an adjustment, which the first seed shows, as in `adjust`."""
    languages = study(config).get("adjusted_languages", ())
    made = [adjusted(config, model, lang)[0] for model in studied(config) for lang in languages]
    return needs([*map(Base, studied(config)), *made], [pool_set(config, lang) for lang in languages])


def gains(config: dict) -> Needs:
    """Scores before and after an adjustment."""
    names = [
        name
        for model in studied(config)
        for lang in study(config).get("adjusted_languages", ())
        for name in (model, adjusted(config, model, lang)[0].name)
    ]
    return needs(run for name in names for task in ADJUSTED_TASKS for run in tuned(config, name, task))


def no_adjustment(config: dict) -> str:
    return "" if study(config).get("adjusted_languages") else "study.adjusted_languages names no languages"


def compared(id: str, title: str, *indexes: str) -> Item:
    return Item(id, title, similarity, indexes=indexes)


ITEMS = [
    Item("table1", "The models", models, reads=("model",)),
    Item("table2", "RANDOM-INIT: what layers are worth, here and elsewhere", random_init),
    Item("table3", "Zero-shot transfer by language", transfer),
    Item("table4", "Correlation of similarity and transfer", correlation, indexes=("cka", "anc"), compares=(Base,)),
    Item("table5", "Vocabulary by language", vocabulary, reads=("tokenizer",)),
    Item("table6", "Distances of words before and after adjustment", words, lacks=no_adjustment),
    Item("table7", "Scores before and after adjustment", gains, lacks=no_adjustment),
    compared("figure1", "Similarity with English by layer", "cka", "anc", "matching"),
    compared("figure2", "CKA with English by language", "cka"),
    compared("figure3", "ANC with English by language", "anc"),
    compared("figure4", "Sentence matching by language", "matching"),
    Item("figure5", "RANDOM-INIT by depth", random_init),
    compared(
        "figure6",
        "Large neurons, and what is left without their weight",
        *("cka", "cka-standardised", "matching", "matching-standardised", *VARIANCE),
    ),
    Item(
        "figure7",
        "Correlation of similarity and transfer by layer",
        correlation,
        indexes=("cka", "anc"),
        compares=(Base,),
    ),
]
