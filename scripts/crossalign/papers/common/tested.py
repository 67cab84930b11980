"""Which set stands behind a cell: the test set of a task in a language, as each paper has it."""

from crossalign.catalog.sets import DataSet
from crossalign.papers.align_predict.items import PAPER


def tested_on(config: dict, task: str, lang: str) -> DataSet:
    """`align-predict`, tables 1, 6, 7, 8: the PUD treebank or the one named instead of it; WikiANN for NER."""
    if task == "ner":
        return DataSet("ner", f"wikiann_{lang}", "test")
    return DataSet("trees", config[PAPER]["test_treebanks"].get(lang, f"{lang}_pud"), "test")


def own_set(config: dict, task: str, lang: str, split: str = "test") -> DataSet:
    """`align-predict`, table 5: the language's own treebank."""
    if task == "ner":
        return DataSet("ner", f"wikiann_{lang}", split)
    paper = config[PAPER]
    return DataSet("trees", paper["own_treebanks"].get(lang) or paper["treebanks"][lang], split)


def counted_languages(config: dict) -> list[str]:
    """The languages that count in the means: those beside them do not."""
    paper = config[PAPER]
    return [lang for lang in paper["languages"] if lang not in paper["extra_targets"]]
