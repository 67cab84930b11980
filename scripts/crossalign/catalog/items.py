"""What a table or figure is to the catalog: its name, its title, and what it needs."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from crossalign.analysis.indexes import CKA
from crossalign.catalog.addresses import Adapted, Base, Run, Tuned
from crossalign.catalog.sets import DataSet

# Stands for `similarity.index` of the config.
CONFIGURED = "configured"


@dataclass(frozen=True)
class Needs:
    """Models, and the data sets that are read beside the models' own training and test sets."""

    runs: frozenset[Run] = field(default_factory=frozenset)
    sets: frozenset[DataSet] = field(default_factory=frozenset)


def needs(runs: Iterable[Run] = (), sets: Iterable[DataSet] = ()) -> Needs:
    return Needs(frozenset(runs), frozenset(sets))


def no_inputs(config: dict) -> Needs:
    """An item made from the registers alone."""
    return needs()


@dataclass(frozen=True)
class Item:
    """One table or figure; `needs` turns the config into what it needs.

    `reads` says which files: of each run its `scores`, `predictions`, `training` or `model`; of each text its `report`
    or the `text` itself. Parallel sentences and bitexts among the sets stand for similarities and distances in every
    run of a kind that it `compares`; `indexes` are those that it wants of them.
    `lacks` says what a config that does without the item does not ask for.
    """

    id: str
    title: str
    needs: Callable[[dict], Needs]
    reads: tuple[str, ...] = ("scores", "report")
    indexes: tuple[str, ...] = (*CKA, "cka-rbf", CONFIGURED)
    compares: tuple[type, ...] = (Base, Adapted, Tuned)
    lacks: Callable[[dict], str] = lambda config: ""
