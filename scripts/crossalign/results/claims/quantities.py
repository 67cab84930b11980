"""Where the values of a claim stand: each function here makes a quantity of tables, files or the config.

A quantity is worked out once there is evidence. It never invents: what is not there
raises `NotRun`, and what is no part of the run `Outside`. Quantities of curves over layers are in `curves.py`.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce, wraps
from operator import attrgetter, getitem
from typing import Any

from crossalign.catalog.addresses import Base
from crossalign.catalog.sets import DataSet
from crossalign.results.claims.evidence import Evidence, Keys, Outside, Row
from crossalign.results.claims.values import Group, Number, Value
from crossalign.results.measured import measured_model
from crossalign.results.names import model as model_name
from crossalign.results.values import mean
from crossalign.results.verdict import TESTED


@dataclass(frozen=True)
class Quantity:
    """A function of evidence with its other arguments; quantities among these are worked out first."""

    function: Callable[..., Value]
    arguments: tuple = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, evidence: Evidence) -> Value:
        arguments = [_worked_out(value, evidence) for value in self.arguments]
        options = {name: _worked_out(value, evidence) for name, value in self.options.items()}
        return self.function(evidence, *arguments, **options)

    def __sub__(self, other: "Quantity") -> "Quantity":
        return Quantity(lambda evidence: self(evidence).minus(other(evidence)))


def _worked_out(value: Any, evidence: Evidence) -> Any:
    return value(evidence) if isinstance(value, Quantity) else value


def quantity(function: Callable[..., Value]) -> Callable[..., Quantity]:
    """Let a function of evidence be called without it: `cells(T1, ...)` is a quantity."""
    return wraps(function)(lambda *arguments, **options: Quantity(function, arguments, options))


def derived(function: Callable[..., Value]) -> Callable[..., Any]:
    """Let a function of values take quantities as well: `largest(gains)` is one where `gains` is."""

    @wraps(function)
    def lifted(*arguments: Any, **options: Any) -> Any:
        if any(isinstance(value, Quantity) for value in (*arguments, *options.values())):
            return Quantity(lambda _, *values, **named: function(*values, **named), arguments, options)
        return function(*arguments, **options)

    return lifted


@quantity
def cell(evidence: Evidence, item: str, scale: str = "points", **keys: Keys) -> Number:
    """The first record of an item with these columns."""
    return evidence.number(item, evidence.select(item, **keys)[0], scale)


@quantity
def cells(evidence: Evidence, item: str, by: Sequence[str], scale: str = "points", **keys: Keys) -> Group:
    """All records with these columns, named by the columns `by`."""
    return Group({_name(row, by): evidence.number(item, row, scale) for row in evidence.select(item, **keys)})


@derived
def together(**members: Value) -> Group:
    """Several quantities under their names."""
    return Group(members)


@derived
def merged(**groups: Group) -> Group:
    """Several groups in one, each member named after its group as well."""
    return Group({f"{label} {name}": member for label, group in groups.items() for name, member in group})


@derived
def average(group: Group) -> Number:
    """The mean of numbers that the same models stand behind: as certain as they are on average, not more."""
    numbers, centre = group.numbers(), group.mean()
    error = mean([number.seed_error for number in numbers])
    # The same few runs stand behind all: several numbers know no more of their spread than each does, on average.
    inverse = mean([1 / number.seed_freedom for number in numbers])
    return replace(centre, std=error * math.sqrt(max(centre.n, 1)), freedom=1 / inverse if inverse else math.inf)


@quantity
def gains(
    evidence: Evidence,
    item: str,
    model: str,
    over: str,
    by: Sequence[str] = ("language",),
    also: Sequence[str] = (),
    **keys: Keys,
) -> Group:
    """What `model` gains over another in the same table, matched by the columns `by` and named by `also` as well.

    The table's marks say whether a gain that was tested is significant; of others the seeds must tell.
    """
    marks = {("adjusted", "original"): "*", ("adjusted+continual", "adjusted"): "**"}
    base = {_name(row, by): row for row in evidence.select(item, **keys, model=over)}
    # Tables of earlier versions do not say what was tested: there one mark speaks for the whole table.
    marked = any(row.get("mark") for row in evidence.rows(item))
    members = {}
    for row in evidence.select(item, **keys, model=model):
        name = _name(row, by)
        if name not in base:
            raise evidence.absent(item, f"has no {over} model for {name}")
        ours, theirs = (evidence.number(item, one, "points") for one in (row, base[name]))
        tested = row["tested"] == TESTED if "tested" in row else marked
        significant = row.get("mark") == marks[model, over] if tested and (model, over) in marks else None
        members[_name(row, [*by, *also])] = ours.minus(theirs, significant)
    return Group(members)


@derived
def chosen(group: Group, name: str) -> Value:
    """One member of a group."""
    if name not in group.members:
        raise Outside(f"there is no {name} among {', '.join(group.members)} of this run")
    return group.members[name]


@derived
def without(group: Group, *names: str) -> Group:
    """A group but for some members."""
    return Group({name: member for name, member in group if name not in names})


@derived
def leads_of(group: Group, name: str) -> Group:
    """By how much one member of a group lies above each other."""
    top = chosen(group, name)
    return Group({other: top.minus(number) for other, number in group if other != name})


@derived
def largest(group: Group) -> Number:
    """The largest number of a group."""
    return max(group.numbers(), key=attrgetter("value"))


@derived
def smallest(group: Group) -> Number:
    """The smallest number of a group."""
    return min(group.numbers(), key=attrgetter("value"))


@derived
def sizes(group: Group) -> Group:
    """The amounts of a group of differences, without their sign."""
    return Group({name: number.times(-1.0 if number.value < 0 else 1.0, number.scale) for name, number in group})


@quantity
def spread(evidence: Evidence, item: str, summary: Callable[[list[float]], float], **keys: Keys) -> Number:
    """A standard deviation that sums up those of some records: the least, the median or the largest."""
    rows = evidence.select(item, **keys)
    for row in rows:
        evidence.number(item, row, "points")
    if not all(row.get("std") for row in rows):
        raise evidence.absent(item, "has single runs; a standard deviation needs two seeds at least")
    return Number(summary([float(row["std"]) for row in rows]), "points", 0.0)


@quantity
def runs(evidence: Evidence, item: str) -> Number:
    """The fewest runs behind a number of a table."""
    rows = [row for row in evidence.rows(item) if row.get("wanted")]
    if not rows:
        raise evidence.absent(item, "has no numbers")
    return Number(min(evidence.number(item, row, "count").n for row in rows), "count")


@quantity
def different(
    evidence: Evidence, items: str | Sequence[str], column: str, without: Sequence[str] = (), **keys: Keys
) -> Number:
    """How many different values a column of one or several items has where there is a number or a fact of ours."""
    values: set[str] = set()
    for item in [items] if isinstance(items, str) else items:
        rows = [row for row in evidence.select(item, **keys) if row.get("mean") or row.get("y") or row.get("text")]
        if not rows:
            raise evidence.absent(item, "is empty")
        values |= {row[column] for row in rows}
    return Number(len(values - set(without)), "count")


@quantity
def setting(evidence: Evidence, item: str, *path: str, read: Callable[[Any], Any] = lambda value: value) -> Value:
    """A value of the config, told once the item that was made with it is there."""
    if not any(row.get("mean") or row.get("y") for row in evidence.rows(item)):
        raise evidence.absent(item, "is empty")
    value = read(reduce(getitem, path, evidence.config))
    if isinstance(value, list):
        return ";".join(format(one, "g") if isinstance(one, float) else str(one) for one in value)
    return Number(float(value), "count") if isinstance(value, int | float) else str(value)


@quantity
def examples(evidence: Evidence, item: str, sets: Sequence[DataSet]) -> Number:
    """The examples in some prepared sets together; `item` is one that needs them."""
    return Number(sum(evidence.kept(item, data) for data in sets), "count")


@quantity
def examples_of_each(evidence: Evidence, item: str, sets: Sequence[DataSet]) -> Group:
    """The examples of each of several sets."""
    names = [data.split if data.kind == "parallel" else data.languages[0] for data in sets]
    return Group({name: Number(evidence.kept(item, data), "count") for name, data in zip(names, sets, strict=True)})


@quantity
def parameters(evidence: Evidence, item: str, model: str, factor: float) -> Number:
    """The parameters that a model's own files hold; `item` is one that needs the model."""
    if Base(model) not in evidence.catalog.runs():
        raise Outside(f"{model_name(model)} is not part of this run")
    counted = measured_model(evidence.config, model).get("parameters")
    if counted is None:
        raise evidence.absent(item, f"lacks the files of {model}")
    return Number(counted * factor, "percent", 0.0)


def _name(row: Row, by: Sequence[str]) -> str:
    return " ".join(row[name] for name in by if row.get(name))
