"""Items of `talk`: the findings of `align-predict` again, unseen languages, transliteration."""

from collections.abc import Iterable, Iterator

from crossalign.catalog.addresses import Tuned
from crossalign.catalog.items import Item, Needs, needs, no_inputs
from crossalign.catalog.sets import text_set
from crossalign.catalog.targets import base_of
from crossalign.papers.align_predict import items as align_predict

PAPER = "talk"
TASKS = ("parsing", "pos", "ner")


def train_set(config: dict, task: str, lang: str, seed: int, suffix: str = "") -> str:
    """What a language is trained on; a treebank without training data gives one fold per seed."""
    if task == "ner":
        return f"wikiann_{lang}{suffix}"
    treebank = config[PAPER]["treebanks"][lang]
    fold = f"+fold{(seed - 1) % 5 + 1}" if treebank in config[PAPER]["folded"] else ""
    return f"{treebank}{fold}{suffix}"


def systems(
    config: dict, lang: str, tasks: Iterable[str], models: Iterable[str], suffix: str = "", study: str = "unseen-"
) -> Iterator[Tuned]:
    """Fine-tunings of some systems on a language, supervised; `suffix` is `+latn` for the transliterated copy."""
    text = f"{lang}{suffix}"
    names = {"mbert": "{}", "mlm": f"{{}}+mlm-{text}", "mono": f"mono-{text.replace('+', '.')}", "bilstm": "bilstm"}
    for model in models:
        for task in tasks:
            for seed in config["seeds"]:
                name = names[model].format(base_of(config, seed, PAPER))
                yield Tuned(name, f"{study}{task}", train_set(config, task, lang, seed, suffix), "ref", seed)


def task_of(config: dict, lang: str) -> str:
    """The task that the kind of a language is told by: parsing, or else NER."""
    return "parsing" if lang in config[PAPER]["treebanks"] else "ner"


def typology(config: dict) -> Needs:
    """Four systems on unseen languages."""
    four = ("mbert", "mlm", "mono", "bilstm")
    languages = config[PAPER]["profile_languages"]
    return needs(run for lang in languages for run in systems(config, lang, [task_of(config, lang)], four))


def in_latin(config: dict) -> dict[str, list[str]]:
    """The tasks of unseen languages in Latin script."""
    chosen = config[PAPER]["profile_languages"]
    return {lang: tasks for lang, tasks in config[PAPER]["transliterated"].items() if lang in chosen}


def transliteration(config: dict) -> Needs:
    """Original against Latin script."""
    three = ("mbert", "mlm", "mono")
    runs: set[Tuned] = set()
    for lang, tasks in in_latin(config).items():
        runs |= {*systems(config, lang, tasks, (*three, "bilstm")), *systems(config, lang, tasks, three, "+latn")}
    for lang in config[PAPER]["transliterated_seen"]:
        # A language that mBERT knows is trained as in `align-predict`, whose Arabic and Russian models these are.
        runs |= set(systems(config, lang, ["ner"], ["mbert"], study=""))
        runs |= set(systems(config, lang, ["ner"], ("mbert", "mlm"), "+latn", study=""))
    return needs(runs)


def zero_shot(config: dict) -> Needs:
    return needs(align_predict.tuned(config, ["parsing"], "en", ["ref"]))


def raw_text(languages: str, *splits: str):
    """The raw text of the languages in one key of the config."""

    def declared(config: dict) -> Needs:
        return needs(sets=[text_set(config, lang, split) for lang in config[PAPER][languages] for split in splits])

    return declared


def by_name(name: str):
    """What the item of that name in `align-predict` needs."""
    return next(item.needs for item in align_predict.ITEMS if item.id == name)


ITEMS = [
    Item("table1", "Zero-shot parsing with mBERT", zero_shot),
    Item("table2", "RANDOM-INIT, parsing", by_name("table6")),
    Item("table3", "Unseen languages", raw_text("languages", "train", "dev")),
    Item("table4", "Profiles of unseen languages", raw_text("profile_languages", "train"), ("text",)),
    Item("table5", "Correlation of gap and similarity", by_name("table4")),
    Item("figure1", "English-German similarity", align_predict.similarity(["de"])),
    Item("figure2", "Easy, intermediate and hard languages", typology),
    Item("figure3", "Transliteration", transliteration),
    Item("figure4", "XLM-R by size on MLQA", no_inputs),
    Item("figure5", "Correlation by layer", by_name("figure3")),
]
