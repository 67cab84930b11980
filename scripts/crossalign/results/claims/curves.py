"""Quantities of figures: curves over layers, parts of them, and their levels."""

import math
from collections.abc import Sequence
from dataclasses import replace

from crossalign.results.claims.evidence import Evidence, Outside
from crossalign.results.claims.quantities import Keys, Quantity, Value
from crossalign.results.claims.values import Curve, Group, Number, welch


def curve(item: str, panel: str, series: str, scale: str = "similarity") -> Quantity:
    """One series of a figure."""
    return lambda evidence: evidence.curve(item, panel, series, scale)


def curves(items: str | Sequence[str], scale: str = "similarity", **keys: Keys) -> Quantity:
    """All series of some figures, or those with these columns."""

    def found(evidence: Evidence) -> Group:
        members = {}
        for item in [items] if isinstance(items, str) else items:
            rows = evidence.select(item, keys)
            pairs = dict.fromkeys((row["panel"], row["series"]) for row in rows)
            # Where all curves share a panel its name tells nothing.
            several = not isinstance(items, str) or len({panel for panel, _ in pairs}) > 1
            for panel, series in pairs:
                members[f"{panel}, {series}" if several else series] = evidence.curve(item, panel, series, scale)
        return Group(members)

    return found


def at(one: Quantity, layer: int, factor: float = 1.0, scale: str = "similarity") -> Quantity:
    """A curve at one layer."""

    def found(evidence: Evidence) -> Number:
        points = one(evidence).points
        if layer not in points:
            raise _lacking(f"a layer {layer}")
        return points[layer].times(factor, scale)

    return found


def peak(one: Quantity) -> Quantity:
    """The largest value of a curve."""
    return lambda evidence: (found := one(evidence)).points[found.peak]


def level(one: Quantity, first: int, last: int) -> Quantity:
    """The mean of a curve, or of each of a group, over some layers."""

    def found(evidence: Evidence) -> Value:
        value = one(evidence)
        if isinstance(value, Group):
            return Group({name: _part(member, first, last).mean() for name, member in value})
        return _part(value, first, last).mean()

    return found


def layers(one: Quantity, first: int, last: int) -> Quantity:
    """The single values of a curve, or of all in a group, over some layers."""

    def found(evidence: Evidence) -> Group:
        value = one(evidence)
        members = dict(value) if isinstance(value, Group) else {"": value}
        return Group(
            {
                f"{name} layer {layer}".strip(): point
                for name, member in members.items()
                for layer, point in _part(member, first, last).points.items()
            }
        )

    return found


def part(one: Quantity, first: int, last: int) -> Quantity:
    """Some layers of a curve."""
    return lambda evidence: _part(one(evidence), first, last)


def drops(items: Sequence[str], series: str, above: int, reference: str = "REF") -> Quantity:
    """How far a series lies below the reference of its panel, mean over the layers above one."""

    def found(evidence: Evidence) -> Group:
        members = {}
        for item in items:
            for panel in dict.fromkeys(row["panel"] for row in evidence.select(item, {"series": series})):
                low, high = (
                    _part(evidence.curve(item, panel, one), above + 1, 10**6).mean() for one in (series, reference)
                )
                members[f"{panel} in {item.partition('/')[2]}"] = low.minus(high)
        return Group(members)

    return found


def spans(group: Quantity, first: int, last: int) -> Quantity:
    """How far each curve of a group goes from its least value to its largest, over some layers."""

    def found(evidence: Evidence) -> Group:
        members = {}
        for name, member in group(evidence):
            chosen = _part(member, first, last)
            lead = chosen.lead(min(chosen.points, key=lambda layer: chosen.points[layer].value))
            # Two spans are compared: what other languages would do to each counts as well as the seeds.
            members[name] = Number(lead.value, lead.scale, lead.error, wanted=1)
        return Group(members)

    return found


def kept(base: Quantity, group: Quantity, first: int, last: int) -> Quantity:
    """The level of each curve of a group over some layers, as a share of another curve's."""

    def found(evidence: Evidence) -> Group:
        whole = level(base, first, last)(evidence)
        if whole.value <= 0:
            raise Outside(f"there is no similarity in layers {first} to {last} of which a share could be kept")
        return Group({name: _share(part, whole) for name, part in level(group, first, last)(evidence)})

    return found


def _share(part: Number, whole: Number) -> Number:
    """One number as a share of another, with the relative errors of both."""
    parts = [number.times(1 / abs(number.value), "share") for number in (part, whole) if number.value]
    share = part.value / whole.value
    std = abs(share) * math.hypot(*(number.seed_error for number in parts)) * math.sqrt(max(part.n, 1))
    return Number(share, "share", std, part.n, part.wanted, 2, freedom=welch(parts))


def changes(pretrained: Quantity, finetuned: Quantity, first: int, last: int) -> Quantity:
    """How far one curve lies from another, mean over some layers and without the sign."""

    def found(evidence: Evidence) -> Number:
        before, after = (_part(one(evidence), first, last) for one in (pretrained, finetuned))
        shared = sorted(before.points.keys() & after.points.keys())
        away = [abs(after.points[layer].value - before.points[layer].value) for layer in shared]
        tuned, difference = after.mean(), after.mean().minus(before.mean())
        # A pretrained model is one run, which takes nothing from the runs that were fine-tuned.
        std = difference.seed_error * math.sqrt(max(tuned.n, 1))
        return replace(difference, value=math.fsum(away) / len(away), std=std, n=tuned.n, wanted=tuned.wanted)

    return found


def gaps(first: Quantity, second: Quantity) -> Quantity:
    """The mean absolute difference of two groups of curves with the same series, over the layers that both have."""

    def found(evidence: Evidence) -> Number:
        pairs = zip(first(evidence), second(evidence), strict=True)
        away = [
            abs(one.points[layer].value - other.points[layer].value)
            for (_, one), (_, other) in pairs
            for layer in sorted(one.points.keys() & other.points.keys())
        ]
        return Number(math.fsum(away) / len(away), "similarity", 0.0)

    return found


def _part(one: Curve, first: int, last: int) -> Curve:
    found = one.within(first, last)
    if not found.points:
        raise _lacking(f"layers {first} to {last}")
    return found


def _lacking(what: str) -> Exception:
    return Outside(f"the models of this run lack {what}")
