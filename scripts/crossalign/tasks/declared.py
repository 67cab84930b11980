"""The tasks, those on treebanks first. Catalog, plan and tables read this list and load nothing else."""

from typing import NamedTuple


class Declared(NamedTuple):
    """What people call a task, the kind of prepared data that it reads, and the metric that fills tables."""

    label: str
    data: str
    metric: str


TASKS = {
    "parsing": Declared("Parsing", "trees", "LAS"),
    "pos": Declared("POS", "trees", "accuracy"),
    "ner": Declared("NER", "ner", "F1"),
    "nli": Declared("NLI", "nli", "accuracy"),
    "qa": Declared("QA", "qa", "F1"),
}
