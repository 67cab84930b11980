"""Items of `align-predict`: RANDOM-INIT of mBERT's layers, and CKA between languages."""

from collections.abc import Iterable, Iterator

from crossalign.catalog.addresses import Base, Run, Tuned, trial_init
from crossalign.catalog.items import Item, Needs, needs
from crossalign.catalog.sets import DataSet
from crossalign.catalog.targets import base_of, bases, having

TASKS = ("parsing", "pos", "ner")
PAPER = "align-predict"


def train_set(config: dict, task: str, lang: str) -> str:
    """The set that a source language is trained on."""
    return f"wikiann_{lang}" if task == "ner" else config[PAPER]["treebanks"][lang]


def inits(layer_sets: Iterable[str]) -> list[str]:
    return [f"random-{layers}" for layers in layer_sets]


def tuned(config: dict, tasks: Iterable[str], source: str, initials: Iterable[str]) -> Iterator[Tuned]:
    """One fine-tuning per task, initialisation and seed, on the usual training set of `source`."""
    initials = list(initials)
    for task in tasks:
        for init in initials:
            for seed in config["seeds"]:
                yield Tuned(base_of(config, seed), task, train_set(config, task, source), init, seed)


def pair_inits(config: dict) -> list[str]:
    return ["ref", *inits(config[PAPER]["layer_pairs"])]


def parallel_sets(languages: Iterable[str]) -> list[DataSet]:
    return [DataSet("parallel", "pud", lang) for lang in sorted({"en", *languages})]


def pud_languages(config: dict) -> list[str]:
    """The languages with parallel sentences: those whose test set is their PUD treebank."""
    return [lang for lang in config[PAPER]["languages"] if lang not in config[PAPER]["test_treebanks"]]


def overview(tasks: Iterable[str]):
    """RANDOM-INIT of layer pairs, all sources."""
    tasks = list(tasks)

    def declared(config: dict) -> Needs:
        pairs = [(task, source) for task in tasks for source in having(config, "sources", task)]
        return needs(run for task, source in pairs for run in tuned(config, [task], source, pair_inits(config)))

    return declared


def domains(config: dict) -> Needs:
    """The domain study trains on ParTUT; its NER models are those of the overview."""
    paper = config[PAPER]
    runs: set[Run] = {
        Tuned(base_of(config, seed), task, paper["domains"]["train"], init, seed)
        for task in ("parsing", "pos")
        for init in pair_inits(config)
        for seed in config["seeds"]
    }
    return needs(runs | set(tuned(config, ["ner"], "en", pair_inits(config))))


def grid(config: dict) -> Needs:
    """Trials of the hyper-parameter search, and the fine-tunings whose run times are reported."""
    paper = config[PAPER]
    trials = {
        Tuned(bases(config)[0], task, train_set(config, task, "en"), trial_init(batch, rate), seed)
        for task in TASKS
        for batch in paper["grid"]["batch"]
        for rate in paper["grid"]["learning_rate"]
        for seed in range(1, paper["grid"]["seeds"][task] + 1)
    }
    return needs(trials)


def correlation(config: dict) -> Needs:
    """Similarity and gap of all languages: the pretrained model and the English REF models."""
    runs = {*map(Base, bases(config)), *tuned(config, TASKS, "en", ["ref"])}
    return needs(runs, parallel_sets(pud_languages(config)))


def other_layers(config: dict) -> Needs:
    return needs(tuned(config, TASKS, "en", ["ref", *inits(config[PAPER]["layer_sets"])]))


def similarity(languages: list[str] | None):
    """CKA of the pretrained model and the English REF models; None: the languages of the config but Russian."""

    def declared(config: dict) -> Needs:
        chosen = languages or [lang for lang in config[PAPER]["similarity_languages"] if lang != "ru"]
        runs = {*map(Base, bases(config)), *tuned(config, TASKS, "en", ["ref"])}
        return needs(runs, parallel_sets(chosen))

    return declared


# Figure 2's second panel: blocks of four layers.
BLOCKS = ("1-4", "5-8", "9-12")


def random_init_similarity(task: str, languages: list[str] | None, blocks: bool = False):
    def declared(config: dict) -> Needs:
        initials = pair_inits(config)
        if blocks:
            initials = initials + inits(block for block in BLOCKS if block in config[PAPER]["layer_sets"])
        chosen = languages or config[PAPER]["similarity_languages"]
        return needs(tuned(config, [task], "en", initials), parallel_sets(chosen))

    return declared


def all_targets(config: dict) -> Needs:
    return needs(tuned(config, ["ner"], "en", ["ref"]), parallel_sets(pud_languages(config)))


ITEMS = [
    Item("table1", "RANDOM-INIT on pairs of layers", overview(TASKS)),
    Item("table2", "Does the target's domain matter?", domains),
    Item("table3", "Hyper-parameters, grid search and run time", grid, ("scores", "training")),
    Item("table4", "Correlation of transfer gap and similarity", correlation),
    Item("table5", "RANDOM-INIT on other sets of layers", other_layers),
    Item("table6", "Parsing by target language", overview(["parsing"])),
    Item("table7", "POS tagging by target language", overview(["pos"])),
    Item("table8", "NER by target language", overview(["ner"])),
    Item("figure1", "English-Russian similarity, pretrained and fine-tuned", similarity(["ru"])),
    Item("figure2", "English-Russian similarity under RANDOM-INIT, NER", random_init_similarity("ner", ["ru"], True)),
    Item("figure3", "Correlation of gap and similarity by layer", correlation),
    Item("figure4", "Similarity of English with every target, NER", all_targets),
    Item("figure5", "Similarity for five more languages", similarity(None)),
    Item("figure6", "Similarity under RANDOM-INIT, parsing", random_init_similarity("parsing", None)),
    Item("figure7", "Similarity under RANDOM-INIT, POS", random_init_similarity("pos", None)),
    Item("figure8", "Similarity under RANDOM-INIT, NER", random_init_similarity("ner", None)),
]
