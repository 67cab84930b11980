"""A finding of a paper: one function that takes tidy frames and gives quantities by seed, and what must hold of them.

    @finding("drop-en-pos", where="table 7", task="pos", holds="elsewhere < -2 and elsewhere < home")
    def lower_layers_en_pos(scores, config):
        \"\"\"Random layers 1-2: POS tagging from English loses much more elsewhere than in English.\"\"\"

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

from crossalign.results.findings.comparison import Comparison, comparisons
from crossalign.results.published import claims
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

    `says` tells it in plain words; the paper's are those of `claim` in its claims.csv. `holds` are comparisons joined
    by `and`; each is judged on the mean over languages or, for every group of the index levels `each`, apart. Then all
    groups must agree or, with `most`, more than half of them. `printed` gives estimates that the paper states, by group
    and quantity, where its tables by language do not give them.
    """

    paper: str
    id: str
    where: str
    says: str
    claim: str
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

    @property
    def sentence(self) -> str:
        """The finding in the paper's words."""
        if not (row := claims(self.paper).get(self.claim)):
            raise UserError(f"finding {self.id}: resources/papers/{self.paper}/claims.csv has no claim '{self.claim}'")
        return row["sentence"]

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
        if absent := {name for one in self.comparisons for name in one.names} - set(found):
            raise UserError(f"finding {self.id}: {', '.join(sorted(absent))}: no such quantity in {list(found)}")
        return found.astype(float)


FINDINGS: dict[str, Finding] = {}


def register(paper: str, id: str, *, says: str = "", claim: str = "", each: str = "", **told) -> Callable:
    """Make a function a finding of a paper: its first line says what, and its claim has the same id unless told
    otherwise. `each` names index levels, separated by blanks."""

    def registered(function: Callable) -> Callable:
        words = says or function.__doc__.partition("\n")[0].removesuffix(".")
        made = Finding(paper, id, says=words, claim=claim or id, each=tuple(each.split()), function=function, **told)
        if FINDINGS.get(id, made).paper != paper:
            raise UserError(f"finding {id}: {FINDINGS[id].paper} has one of this name already")
        # Wrong comparisons are found at once.
        assert made.comparisons
        FINDINGS[id] = made
        return function

    return registered
