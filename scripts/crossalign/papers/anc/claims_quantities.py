"""Quantities of the figures and the table of `anc`."""

from crossalign.results.claims.curves import at, curves, level, part
from crossalign.results.claims.evidence import Evidence
from crossalign.results.claims.quantities import Quantity, cells
from crossalign.results.claims.values import Group, Number

REFERENCE = "scale_post"


def of(item: str, panel: str) -> Quantity:
    """The curves of one model, or of one index."""
    return curves(item, panel=panel)


def highest(item: str, panel: str) -> Quantity:
    """The largest value of any curve in a panel."""

    def found(evidence: Evidence) -> Number:
        points = [member.points[member.peak] for _, member in of(item, panel)(evidence)]
        return max(points, key=lambda number: number.value)

    return found


def parts(group: Quantity, first: int, last: int) -> Quantity:
    """Some layers of every curve."""
    return lambda evidence: Group(
        {name: part(lambda _, one=member: one, first, last)(evidence) for name, member in group(evidence)}
    )


def average(group: Quantity) -> Quantity:
    """The mean over the curves of a group, each over all its layers."""
    return lambda evidence: level(group, 0, 10**6)(evidence).mean()


def changes(group: Quantity, first: int, last: int) -> Quantity:
    """Every curve at one layer minus the same at another."""

    def found(evidence: Evidence) -> Group:
        def change(member) -> Number:
            before, after = (at(lambda _: member, layer)(evidence) for layer in (first, last))
            return after.minus(before)

        return Group({name: change(member) for name, member in group(evidence)})

    return found


def ahead(group: Quantity, other: Quantity, first: int, last: int) -> Quantity:
    """How far the curves of a group lie above those of another with the same names, mean over some layers."""

    def found(evidence: Evidence) -> Group:
        ours, theirs = (dict(level(one, first, last)(evidence)) for one in (group, other))
        return Group({name: number.minus(theirs[name]) for name, number in ours.items() if name in theirs})

    return found


def accuracies(item: str) -> Quantity:
    """Accuracy in points, by model and language."""
    return lambda evidence: Group(
        {name: number.times(100, "points") for name, number in cells(item, ["model", "target"], "share")(evidence)}
    )


def english_ahead(item: str) -> Quantity:
    """English minus each other language, by model."""

    def found(evidence: Evidence) -> Group:
        scores = dict(accuracies(item)(evidence))
        english = {name.split(" ")[0]: number for name, number in scores.items() if name.endswith(" en")}
        return Group(
            {
                name: english[name.split(" ")[0]].minus(number)
                for name, number in scores.items()
                if not name.endswith(" en") and name.split(" ")[0] in english
            }
        )

    return found


def over_post(item: str) -> Quantity:
    """The mean over the languages beside English of each model, minus that of Post-LN."""

    def found(evidence: Evidence) -> Group:
        means: dict[str, dict[str, Number]] = {}
        for name, number in accuracies(item)(evidence):
            model, lang = name.split(" ")
            if lang != "en":
                means.setdefault(model, {})[lang] = number
        if REFERENCE not in means:
            raise evidence.lacks(item, REFERENCE)
        reference = Group(means.pop(REFERENCE)).mean()
        return Group({model: Group(scores).mean().minus(reference) for model, scores in means.items()})

    return found
