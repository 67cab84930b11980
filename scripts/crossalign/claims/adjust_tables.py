"""Quantities that only the tables of `adjust` have: gains by corpus size, and monolingual question answering."""

from crossalign.claims.quantities import Quantity, cells
from crossalign.claims.values import Group, Number
from crossalign.config import pair_count

T5, T8 = "adjust/table5", "adjust/table8"


def by_size(dataset: str) -> Quantity:
    """Gains by the number of sentence pairs, from few to many."""

    def found(evidence) -> Group:
        rows = dict(cells(T5, ["variant"], dataset=dataset)(evidence))
        counts = {name: pair_count(name.partition("=")[2].lower()) for name in rows}
        return Group({f"{counts[name]:,}": rows[name] for name in sorted(rows, key=lambda name: counts[name])})

    return found


def best_size(dataset: str) -> Quantity:
    """The number of sentence pairs with the largest gain."""

    def found(evidence) -> Number:
        gained = by_size(dataset)(evidence).members
        best = max(gained, key=lambda name: gained[name].value)
        return Number(float(best.replace(",", "")), "count")

    return found


def fall(dataset: str) -> Quantity:
    """The best gain minus that of the most sentence pairs; both stand beside the same original model."""

    def found(evidence) -> Number:
        gained = by_size(dataset)(evidence).numbers()
        return max(gained, key=lambda number: number.value).minus(gained[-1])

    return found


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
