"""The tasks, each in its one file and found by what its class declares there."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from crossalign.runtime.errors import UserError

_CLASS = re.compile(r"^class (\w+).*:\n((?:(?: {4}.*)?\n)*)", re.MULTILINE)
_LINE = re.compile(r'^ {4}(name|label|data|metric) = "(.+)"$', re.MULTILINE)


@dataclass(frozen=True)
class Declaration:
    """What a task's class says of itself. `label` is for people; `data` is the kind of prepared data it reads."""

    name: str
    label: str
    data: str
    metric: str
    module: str
    cls: str


@cache
def declared() -> dict[str, Declaration]:
    """All tasks by name, those on treebanks first: every class here with `name`, `label`, `data` and `metric`.

    The files are searched, not imported, so that catalog, plan and tables can ask without loading NumPy or PyTorch.
    """
    found = []
    for path in sorted(Path(__file__).parent.glob("*.py")):
        for cls, body in _CLASS.findall(path.read_text(encoding="utf-8")):
            said = dict(_LINE.findall(body))
            if len(said) == 4:
                found.append(Declaration(**said, module=path.stem, cls=cls))
    return {one.name: one for one in sorted(found, key=lambda one: (one.data != "trees", one.data, one.name))}


def file_of(name: str) -> str:
    """The file of a task, below `scripts/`: it is looked up by name, so that no import statement leads to it."""
    return f"crossalign/tasks/{declared()[name].module}.py"


def get_task(name: str, labels: Sequence[str] | None = None) -> Any:
    """The task `name`, a `tasks.base.Task`; NER and parsing need `labels` before a head can be made."""
    if name not in declared():
        raise UserError(f"unknown task '{name}'; the tasks are {', '.join(declared())}")
    task = declared()[name]
    return getattr(import_module(f"crossalign.tasks.{task.module}"), task.cls)(labels)
