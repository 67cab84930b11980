"""The tasks, each in a file of its name: `PosTask` in `pos.py`. `declared` lists them."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from crossalign.runtime.errors import UserError


def file_of(name: str) -> str:
    """The file of a task, below `scripts/`: it is looked up by name, so that no import statement leads to it."""
    return f"crossalign/tasks/{name}.py"


def get_task(name: str, labels: Sequence[str] | None = None) -> Any:
    """The task `name`, a `tasks.base.Task`; NER and parsing need `labels` before a head can be made."""
    module, cls = f"crossalign.tasks.{name}", f"{name.capitalize()}Task"
    try:
        task = getattr(import_module(module), cls, None)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        task = None
    if task is None:
        raise UserError(f"unknown task '{name}': no {cls} in scripts/{file_of(name)}")
    return task(labels)
