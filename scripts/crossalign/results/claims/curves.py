"""Quantities of figures: curves over layers, parts of them, and their levels."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from crossalign.results.claims.evidence import Evidence, Keys, Outside
from crossalign.results.claims.quantities import derived, quantity
from crossalign.results.claims.values import Curve, Group, Number, welch

# As far as any model goes.
END = 10**6


@quantity
def curve(evidence: Evidence, item: str, panel: str, series: str, scale: str = "similarity") -> Curve:
    """One series of a figure."""
    return evidence.curve(item, panel, series, scale)


@quantity
def curves(evidence: Evidence, items: str | Sequence[str], scale: str = "similarity", **keys: Keys) -> Group:
    """All series of some figures, or those with these columns."""
    members = {}
    for item in [items] if isinstance(items, str) else items:
        pairs = dict.fromkeys((row["panel"], row["series"]) for row in evidence.select(item, **keys))
        # Where all curves share a panel its name tells nothing.
        several = not isinstance(items, str) or len({panel for panel, _ in pairs}) > 1
        for panel, series in pairs:
            members[f"{panel}, {series}" if several else series] = evidence.curve(item, panel, series, scale)
    return Group(members)


def _each(curves: Curve | Group, read: Callable[[Curve], Curve | Number]) -> Curve | Number | Group:
    return Group({name: read(member) for name, member in curves}) if isinstance(curves, Group) else read(curves)


@derived
def part(curves: Curve | Group, first: int, last: int) -> Curve | Group:
    """Some layers of a curve, or of each of a group."""
    return _each(curves, lambda curve: _within(curve, first, last, f"layers {first} to {last}"))


@derived
def at(curves: Curve | Group, layer: int) -> Number | Group:
    """A curve, or each of a group, at one layer."""
    return _each(curves, lambda curve: _within(curve, layer, layer, f"a layer {layer}").points[layer])


@derived
def level(curves: Curve | Group, first: int = 0, last: int = END) -> Number | Group:
    """The mean of a curve, or of each of a group, over some layers."""
    return _each(part(curves, first, last), Curve.mean)


@derived
def layers(group: Group, first: int, last: int) -> Group:
    """The single values of all curves of a group over some layers."""
    parts = part(group, first, last)
    return Group({f"{name} layer {layer}": point for name, curve in parts for layer, point in curve.points.items()})


@quantity
def drops(evidence: Evidence, items: Sequence[str], series: str, above: int) -> Group:
    """How far a series lies below REF in its panel, mean over the layers above one."""
    members = {}
    for item in items:
        for panel in evidence.column(item, "panel", series=series):
            low, high = (level(evidence.curve(item, panel, one), above + 1) for one in (series, "REF"))
            members[f"{panel} in {item.partition('/')[2]}"] = low.minus(high)
    return Group(members)


@derived
def spans(group: Group, first: int, last: int) -> Group:
    """How far each curve of a group goes from its least value to its largest, over some layers."""
    members = {}
    for name, curve in part(group, first, last):
        lead = curve.lead(min(curve.points, key=lambda layer, curve=curve: curve.points[layer].value))
        # Two spans are compared: what other languages would do to each counts as well as the seeds.
        members[name] = Number(lead.value, lead.scale, lead.error, wanted=1, freedom=lead.total_freedom)
    return Group(members)


@derived
def kept(base: Curve, group: Group, first: int, last: int) -> Group:
    """The level of each curve of a group over some layers, as a share of another curve's."""
    whole = level(base, first, last)
    if whole.value <= 0:
        raise Outside(f"there is no similarity in layers {first} to {last} of which a share could be kept")
    return Group({name: _share(number, whole) for name, number in level(group, first, last)})


def _share(part: Number, whole: Number) -> Number:
    """One number as a share of another, with the relative errors of both."""
    parts = [number.times(1 / abs(number.value), "share") for number in (part, whole) if number.value]
    share = part.value / whole.value
    std = abs(share) * math.hypot(*(number.seed_error for number in parts)) * math.sqrt(max(part.n, 1))
    return Number(share, "share", std, part.n, part.wanted, 2, freedom=welch(parts))


@derived
def distance(pretrained: Curve, finetuned: Curve, first: int, last: int) -> Number:
    """How far one curve lies from another, mean over some layers and without the sign."""
    before, after = (part(curve, first, last) for curve in (pretrained, finetuned))
    tuned, difference = after.mean(), after.mean().minus(before.mean())
    # A pretrained model is one run, which takes nothing from the runs that were fine-tuned.
    std = difference.seed_error * math.sqrt(max(tuned.n, 1))
    return replace(difference, value=_gap([(before, after)]), std=std, n=tuned.n, wanted=tuned.wanted)


@derived
def gaps(first: Group, second: Group) -> Number:
    """The mean absolute difference of two groups of curves with the same series, over the layers that both have."""
    pairs = zip(first.members.values(), second.members.values(), strict=True)
    return Number(_gap(pairs), "similarity", 0.0)


def _gap(pairs: Iterable[tuple[Curve, Curve]]) -> float:
    away = [
        abs(one.points[layer].value - other.points[layer].value)
        for one, other in pairs
        for layer in sorted(one.points.keys() & other.points.keys())
    ]
    return math.fsum(away) / len(away)


def _within(curve: Curve, first: int, last: int, what: str) -> Curve:
    chosen = curve.within(first, last)
    if not chosen.points:
        raise Outside(f"the models of this run lack {what}")
    return chosen
