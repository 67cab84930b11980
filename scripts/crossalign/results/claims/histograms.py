"""What the histograms of `adjust` say: how well the distance of two words tells whether they translate each other."""

import math
from collections.abc import Callable, Sequence

from crossalign.results.claims.evidence import Evidence, Outside
from crossalign.results.claims.quantities import Quantity
from crossalign.results.claims.values import Group, Number
from crossalign.results.names import TASKS, language

KINDS = RELATED, UNRELATED = ("related words", "unrelated words")
ALL = ("nli", "ner", "qa")
CHANCE = 0.5


def weights(evidence: Evidence, item: str, panel: str, kind: str) -> dict[float, float]:
    """The share of word pairs in each bin of a histogram."""
    points = {
        float(row["x"] or 0): evidence.number(item, row, "similarity").value
        for row in evidence.series(item, panel, kind)
    }
    total = sum(points.values())
    if total <= 0:
        raise evidence.absent(item, f"has an empty histogram for {panel}")
    return {place: value / total for place, value in points.items()}


def area(evidence: Evidence, item: str, panel: str) -> Number:
    """Area under the ROC curve: the chance that related words are closer, ties within a bin counting half."""
    related, unrelated = (weights(evidence, item, panel, kind) for kind in KINDS)
    below = chance = 0.0
    for place in sorted(related.keys() | unrelated.keys()):
        here = related.get(place, 0.0)
        chance += unrelated.get(place, 0.0) * (below + here / 2)
        below += here
    return Number(chance, "similarity")


def distance(evidence: Evidence, item: str, panel: str, kind: str) -> Number:
    """The mean distance of related or unrelated words; bins are told by their left edge."""
    found = weights(evidence, item, panel, kind)
    edges = sorted(found)
    half = (edges[1] - edges[0]) / 2 if len(edges) > 1 else 0.0
    return Number(sum((place + half) * share for place, share in found.items()), "similarity")


def panels(evidence: Evidence, tasks: Sequence[str], *names: str) -> dict[str, list[str]]:
    """Panels of these names for every language and, where `{task}` is in the first of them, every task."""
    paper = evidence.config["adjust"]
    chosen = [TASKS[task] for task in paper["tasks"] if task in tasks] if "{task}" in names[0] else [""]
    return {
        " ".join(part for part in (lang, task) if part): [f"{language(lang)}: {one.format(task=task)}" for one in names]
        for lang in paper["languages"]
        for task in chosen
    }


def of_panels(tasks: Sequence[str], names: Sequence[str], read: Callable[..., Number]) -> Quantity:
    """What `read` makes of the panels with these names, for every language and task."""
    return lambda evidence: Group(
        {label: read(evidence, *found) for label, found in panels(evidence, tasks, *names).items()}
    )


def separations(item: str, name: str, tasks: Sequence[str] = ALL) -> Quantity:
    """The area of every panel of a name."""
    return of_panels(tasks, [name], lambda evidence, panel: area(evidence, item, panel))


def separation_changes(item: str, after: str, before: str, tasks: Sequence[str] = ALL) -> Quantity:
    """The change of the area from one model to another."""

    def change(evidence: Evidence, ours: str, theirs: str) -> Number:
        return area(evidence, item, ours).minus(area(evidence, item, theirs))

    return of_panels(tasks, [after, before], change)


def separation_kept(item: str, after: str, before: str, tasks: Sequence[str] = ALL) -> Quantity:
    """The share of the area above chance that is left."""

    def share(evidence: Evidence, ours: str, theirs: str) -> Number:
        left, whole = (area(evidence, item, panel) for panel in (ours, theirs))
        above = whole.value - CHANCE
        if above <= whole.noise:
            raise Outside(f"{item}: {theirs} tells related words from unrelated ones no better than chance")
        kept = (left.value - CHANCE) / above
        return Number(kept, "share", math.hypot(left.error, kept * whole.error) / above)

    return of_panels(tasks, [after, before], share)


def effect_faded(item: str, tasks: Sequence[str]) -> Quantity:
    """By how much less adjustment separates after fine-tuning than it does before."""

    def faded(evidence: Evidence, *names: str) -> Number:
        tuned, plain, adjusted, original = (area(evidence, item, panel) for panel in names)
        return adjusted.minus(original).minus(tuned.minus(plain))

    return of_panels(tasks, ["adjusted, {task}", "original, {task}", "adjusted", "original"], faded)


def overlaps(item: str, name: str, tasks: Sequence[str] = ALL) -> Quantity:
    """The share that the histograms of related and unrelated words have in common."""

    def common(evidence: Evidence, panel: str) -> Number:
        related, unrelated = (weights(evidence, item, panel, kind) for kind in KINDS)
        return Number(sum(min(share, unrelated.get(place, 0.0)) for place, share in related.items()), "similarity")

    return of_panels(tasks, [name], common)


def distance_changes(item: str, after: str, before: str, kind: str, tasks: Sequence[str] = ALL) -> Quantity:
    """The change of the mean distance of one kind of words, as a share of what it was."""

    def change(evidence: Evidence, ours: str, theirs: str) -> Number:
        later, earlier = (distance(evidence, item, panel, kind).value for panel in (ours, theirs))
        return Number(later / earlier - 1.0, "share", terms=2)

    return of_panels(tasks, [after, before], change)


def top_dimensions(item: str, share: str) -> Quantity:
    """The share of the squared distance that the largest dimensions carry in each XNLI model, in percent."""

    def found(evidence: Evidence) -> Group:
        from crossalign.papers.adjust.figures import models
        from crossalign.papers.common.context import Context

        context = Context(evidence.config, evidence.results)
        shares = {}
        for lang in evidence.config["adjust"]["languages"]:
            for name, run in models(context, lang, ["nli"]).items():
                if "," in name:
                    panel = evidence.results.distances(run, lang)
                    if panel is None or share not in panel.summary:
                        raise evidence.absent(item, f"lacks distances/{run.path()}/{lang}")
                    shares[f"{lang} {name}"] = Number(100 * panel.summary[share], "percent", 0.0)
        return Group(shares)

    return found
