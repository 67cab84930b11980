"""Where the values of a claim stand: each function gives a quantity, which is worked out once there is evidence.

A quantity never invents: what is not there raises `NotRun`, and what is no part of the run `Outside`.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import median

from crossalign.catalog.addresses import Base
from crossalign.catalog.sets import DataSet
from crossalign.results.claims.evidence import Evidence, Outside, Row
from crossalign.results.claims.values import Curve, Group, Number
from crossalign.results.measured import measured_model
from crossalign.results.names import model as model_name
from crossalign.results.values import mean

Value = Number | Curve | Group | str
Quantity = Callable[[Evidence], Value]
Keys = str | Sequence[str]


def cell(item: str, scale: str = "points", **keys: Keys) -> Quantity:
    """The first record of an item with these columns."""
    return lambda evidence: evidence.number(item, evidence.select(item, keys)[0], scale)


def difference(first: Quantity, second: Quantity) -> Quantity:
    """The first minus the second."""
    return lambda evidence: first(evidence).minus(second(evidence))


def cells(item: str, by: Sequence[str], scale: str = "points", **keys: Keys) -> Quantity:
    """All records with these columns, named by the columns `by`."""

    def found(evidence: Evidence) -> Group:
        rows = evidence.select(item, keys)
        return Group({_name(row, by): evidence.number(item, row, scale) for row in rows})

    return found


def together(members: Mapping[str, Quantity]) -> Quantity:
    """Several quantities under their names."""
    return lambda evidence: Group({name: quantity(evidence) for name, quantity in members.items()})


def average(group: Quantity) -> Quantity:
    """The mean of numbers that the same models stand behind: as certain as they are on average, not more."""

    def found(evidence: Evidence) -> Number:
        members = group(evidence)
        error = mean([number.seed_error for number in members.numbers()])
        centre = members.mean()
        return replace(centre, std=error * math.sqrt(max(centre.n, 1)))

    return found


def gains(
    item: str, model: str, over: str, by: Sequence[str] = ("language",), also: Sequence[str] = (), **keys: Keys
) -> Quantity:
    """What `model` gains over another in the same table, matched by the columns `by` and named by `also` as well.

    The table's marks say whether a gain is significant. One without any mark has not been tested: the seeds must tell.
    """
    mark = "**" if model == "adjusted+continual" and over == "adjusted" else "*"

    def found(evidence: Evidence) -> Group:
        base = {_name(row, by): row for row in evidence.select(item, keys | {"model": over})}
        tested = any(row.get("mark") for row in evidence.rows(item))
        direct = (model, over) in (("adjusted", "original"), ("adjusted+continual", "adjusted"))
        members = {}
        for row in evidence.select(item, keys | {"model": model}):
            name = _name(row, by)
            if name not in base:
                raise evidence.absent(item, f"has no {over} model for {name}")
            ours, theirs = (evidence.number(item, one, "points") for one in (row, base[name]))
            significant = row.get("mark") == mark if tested and direct else None
            members[_name(row, [*by, *also])] = ours.minus(theirs, significant)
        return Group(members)

    return found


def chosen(group: Quantity, name: str) -> Quantity:
    """One member of a group."""

    def found(evidence: Evidence) -> Value:
        members = group(evidence).members
        if name not in members:
            raise Outside(f"there is no {name} among {', '.join(members)} of this run")
        return members[name]

    return found


def leads_of(group: Quantity, name: str) -> Quantity:
    """By how much one member of a group lies above each other."""

    def found(evidence: Evidence) -> Group:
        top = chosen(group, name)(evidence)
        return Group({other: top.minus(number) for other, number in group(evidence) if other != name})

    return found


def merged(**groups: Quantity) -> Quantity:
    """Several groups in one, each member named after its group as well."""
    return lambda evidence: Group(
        {f"{label} {name}": member for label, group in groups.items() for name, member in group(evidence)}
    )


def largest(group: Quantity) -> Quantity:
    """The largest number of a group."""
    return lambda evidence: max(group(evidence).numbers(), key=lambda number: number.value)


def smallest(group: Quantity) -> Quantity:
    """The smallest number of a group."""
    return lambda evidence: min(group(evidence).numbers(), key=lambda number: number.value)


def sizes(group: Quantity) -> Quantity:
    """The amounts of a group of differences, without their sign."""

    def found(evidence: Evidence) -> Group:
        return Group(
            {name: number.times(-1.0 if number.value < 0 else 1.0, number.scale) for name, number in group(evidence)}
        )

    return found


SUMMARIES: dict[str, Callable[[list[float]], float]] = {"min": min, "median": median, "max": max}


def spread(item: str, which: str, **keys: Keys) -> Quantity:
    """The least, the median or the largest standard deviation of some records."""

    def found(evidence: Evidence) -> Number:
        rows = evidence.select(item, keys)
        for row in rows:
            evidence.number(item, row, "points")
        if not all(row.get("std") for row in rows):
            raise evidence.absent(item, "has single runs; a standard deviation needs two seeds at least")
        return Number(SUMMARIES[which]([float(row["std"]) for row in rows]), "points", 0.0)

    return found


def runs(item: str) -> Quantity:
    """The fewest runs behind a number of a table."""

    def found(evidence: Evidence) -> Number:
        rows = [row for row in evidence.rows(item) if row.get("wanted")]
        if not rows:
            raise evidence.absent(item, "has no numbers")
        return Number(min(evidence.number(item, row, "count").n for row in rows), "count")

    return found


def different(item: str, column: str, without: Sequence[str] = (), **keys: Keys) -> Quantity:
    """How many different values a column has where there is a number or a fact of ours."""

    def found(evidence: Evidence) -> Number:
        rows = evidence.select(item, keys)
        there = [row for row in rows if row.get("mean") or row.get("y") or row.get("text")]
        if not there:
            raise evidence.absent(item, "is empty")
        return Number(len({row[column] for row in there} - set(without)), "count")

    return found


def setting(item: str, *path: str, read: Callable[[object], object] = lambda value: value) -> Quantity:
    """A value of the config, told once the item that was made with it is there."""

    def found(evidence: Evidence) -> Value:
        rows = evidence.rows(item)
        if not any(row.get("mean") or row.get("y") for row in rows):
            raise evidence.absent(item, "is empty")
        value = read(evidence.setting(path))
        if isinstance(value, list):
            return ";".join(format(one, "g") if isinstance(one, float) else str(one) for one in value)
        return Number(float(value), "count") if isinstance(value, int | float) else str(value)

    return found


def examples(item: str, *sets: DataSet) -> Quantity:
    """The examples in some prepared sets together; `item` is one that needs them."""
    return lambda evidence: Number(sum(evidence.kept(item, data) for data in sets), "count")


def sample_sizes(item: str, sets: Sequence[DataSet]) -> Quantity:
    """The examples of each of several sets."""
    return lambda evidence: Group(
        {
            data.split if data.kind == "parallel" else data.languages[0]: Number(evidence.kept(item, data), "count")
            for data in sets
        }
    )


def parameters(item: str, model: str, factor: float) -> Quantity:
    """The parameters that a model's own files hold; `item` is one that needs the model."""

    def found(evidence: Evidence) -> Number:
        if Base(model) not in evidence.catalog.runs():
            raise Outside(f"{model_name(model)} is not part of this run")
        counted = measured_model(evidence.config, model).get("parameters")
        if counted is None:
            raise evidence.absent(item, f"lacks the files of {model}")
        return Number(counted * factor, "percent", 0.0)

    return found


def _name(row: Row, by: Sequence[str]) -> str:
    return " ".join(row[name] for name in by if row.get(name))
