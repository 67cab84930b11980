"""The five tasks: POS tagging, NER, dependency parsing, NLI, extractive QA."""

from collections.abc import Sequence
from importlib import import_module

from crossalign.runtime.errors import UserError
from crossalign.tasks.base import Task

_CLASSES = {
    "pos": ("tagging", "PosTask"),
    "ner": ("tagging", "NerTask"),
    "parsing": ("parsing", "ParsingTask"),
    "nli": ("nli", "NliTask"),
    "qa": ("qa", "QaTask"),
}
NAMES = tuple(_CLASSES)


def file_of(name: str) -> str:
    """The file of a task, below `scripts/`: it is looked up by name, so that no import statement leads to it."""
    return f"crossalign/tasks/{_CLASSES[name][0]}.py"


def get_task(name: str, labels: Sequence[str] | None = None) -> Task:
    """The task `name`; NER and parsing need `labels` (see `labels_from`) before a head can be made."""
    if name not in _CLASSES:
        raise UserError(f"unknown task '{name}'; the tasks are {', '.join(NAMES)}")
    module, cls = _CLASSES[name]
    return getattr(import_module(f"crossalign.tasks.{module}"), cls)(labels)


def labels_from(name: str, records: Sequence[dict]) -> list[str]:
    """The labels that task `name` learns from its training records."""
    return get_task(name).labels_from(records)
