"""A finding of a paper: one function that takes tidy frames and gives quantities by seed, and what must hold of them.

    @finding("drop-en-pos", paper="align-predict", where="table 7", says="...", sentence="...", task="pos",
             holds="elsewhere < -2 and elsewhere < home")
    def lower_layers_en_pos(scores): ...

The function names the frames that it reads: `scores`, `similarity`, `distances` (views.py says which columns) and
`config`. It returns one row per seed, and per language or whatever else the index names, with a column per quantity.
A column that begins with `score` is judged by no comparison: it must lie above the floor of the task.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from inspect import signature

import pandas as pd

from crossalign.results.findings.expression import Comparison, comparisons, names_in
from crossalign.runtime.errors import UserError

HOLDS, FAILS, UNSURE = "holds", "does not hold", "cannot tell"
UNLEARNT, NOT_RUN = "not learnt", "not run"
VERDICTS = (HOLDS, FAILS, UNSURE, UNLEARNT, NOT_RUN)
FRAMES = ("scores", "similarity", "distances")


class NotRun(Exception):
    """Why a finding has nothing to say of a run."""


def items_of(paper: str, where: str) -> tuple[str, ...]:
    """The items of places in a paper: `table 7, figure 1`."""
    return tuple(f"{paper}/{kind}{number}" for kind, number in re.findall(r"(table|figure) (\d+)", where))


@dataclass(frozen=True)
class Finding:
    """A finding with its function.

    `says` tells it in plain words, `sentence` in the paper's. `holds` are comparisons joined by `and`; each is judged
    on the mean over languages or, for every group of the index levels `each`, apart. Then all groups must agree or,
    with `most`, more than half of them. `printed` gives estimates that the paper states, by group and quantity, where
    its tables by language do not give them.
    """

    id: str
    paper: str
    where: str
    says: str
    sentence: str
    holds: str
    function: Callable[..., pd.DataFrame]
    task: str = ""
    each: tuple[str, ...] = ()
    most: bool = False
    printed: Callable[[], Mapping[tuple[str, str], float]] = dict

    @property
    def items(self) -> tuple[str, ...]:
        """The tables and figures that it rests on."""
        return items_of(self.paper, self.where)

    @cached_property
    def comparisons(self) -> list[Comparison]:
        """What must hold."""
        return comparisons(self.holds)

    @property
    def reads(self) -> tuple[str, ...]:
        """The frames that its function names."""
        parameters = signature(self.function).parameters.values()
        return tuple(one.name for one in parameters if one.default is one.empty)

    def quantities(self, frames: Mapping[str, pd.DataFrame], config: dict) -> pd.DataFrame:
        """The function's table, checked."""
        found = self.function(**{name: config if name == "config" else frames[name] for name in self.reads})
        if found.index.names[0] != "seed" or not set(self.each) <= set(found.index.names):
            raise UserError(f"finding {self.id}: index {found.index.names}; needed: seed first, and {self.each}")
        if absent := {name for one in self.comparisons for name in names_in(one.value)} - set(found):
            raise UserError(f"finding {self.id}: {', '.join(sorted(absent))}: no such quantity in {list(found)}")
        return found.astype(float)


FINDINGS: dict[str, Finding] = {}


def finding(id: str, *, each: str = "", **told) -> Callable[[Callable], Callable]:
    """Register a function as a finding; `each` names index levels, separated by blanks."""

    def register(function: Callable) -> Callable:
        made = Finding(id, each=tuple(each.split()), function=function, **told)
        if FINDINGS.get(id, made).paper != made.paper:
            raise UserError(f"finding {id}: {FINDINGS[id].paper} has one of this name already")
        # Wrong comparisons are found at once.
        assert made.comparisons
        FINDINGS[id] = made
        return function

    return register
