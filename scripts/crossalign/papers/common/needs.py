"""What a table or figure needs: models to be there, and data sets to look at."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from crossalign.catalog.addresses import Run
from crossalign.catalog.sets import DataSet


@dataclass(frozen=True)
class Needs:
    """Models, and the data sets that are read beside the models' own training and test sets."""

    runs: frozenset[Run] = field(default_factory=frozenset)
    sets: frozenset[DataSet] = field(default_factory=frozenset)


def needs(runs: Iterable[Run] = (), sets: Iterable[DataSet] = ()) -> Needs:
    return Needs(frozenset(runs), frozenset(sets))


@dataclass(frozen=True)
class Item:
    """One table or figure; `needs` turns the config into what it needs."""

    id: str
    title: str
    needs: Callable[[dict], Needs]


def facts(config: dict) -> Needs:
    """An item made from the registers alone."""
    return needs()
