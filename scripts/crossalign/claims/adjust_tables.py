"""Quantities that only the tables of `adjust` have: gains by corpus size, and monolingual question answering."""

from crossalign.claims.evidence import Outside
from crossalign.claims.quantities import Quantity, cells
from crossalign.claims.values import Group, Number
from crossalign.config import pair_count
from crossalign.render.tables.arms import FAMILIES

T5, T8 = "adjust/table5", "adjust/table8"


def by_size(dataset: str) -> Quantity:
    """Gains by the number of sentence pairs, from few to many."""

    def found(evidence) -> Group:
        rows = dict(cells(T5, ["variant"], dataset=dataset)(evidence))
        counts = {name: pair_count(name.partition("=")[2].lower()) for name in rows}
        return Group({f"{counts[name]:,}": rows[name] for name in sorted(rows, key=lambda name: counts[name])})

    return found


def datasets(evidence) -> list[str]:
    """The test sets of question answering that the table has."""
    rows = evidence.select(T5, {"task": "qa"})
    return list(dict.fromkeys(row["dataset"] for row in rows))


def best_sizes(evidence) -> Group:
    """The number of sentence pairs with the largest gain, for each test set."""
    found = {}
    for dataset in datasets(evidence):
        gained = by_size(dataset)(evidence).members
        best = max(gained, key=lambda name: gained[name].value)
        found[FAMILIES[dataset]] = Number(float(best.replace(",", "")), "count")
    return Group(found)


def falls(evidence) -> Group:
    """The best gain from fewer pairs minus that from the most; both stand beside the same original model."""
    found = {}
    for dataset in datasets(evidence):
        *fewer, most = by_size(dataset)(evidence).numbers()
        if not fewer:
            raise Outside(f"{T5} of this run has one number of sentence pairs alone")
        found[FAMILIES[dataset]] = max(fewer, key=lambda number: number.value).minus(most)
    return Group(found)


def monolingual(evidence) -> Group:
    """Adjusted minus original in table 8; the original SQuAD score is one number for all languages."""
    rows = dict(cells(T8, ["dataset", "model", "language"])(evidence))
    found = {}
    for name, number in rows.items():
        dataset, model, *lang = name.split(" ")
        before = rows.get(" ".join([dataset, "original", *lang])) or rows.get(f"{dataset} original")
        if model == "adjusted" and before is not None:
            found[" ".join([*lang, dataset])] = number.minus(before)
    if not found:
        raise evidence.absent(T8, "has no pair of models to compare")
    return Group(found)
