"""What the histograms of `adjust` say: how well the distance of two words tells whether they translate each other."""

from collections.abc import Callable, Sequence

from crossalign.claims.evidence import Evidence
from crossalign.claims.quantities import Quantity
from crossalign.claims.values import Group, Number
from crossalign.render.names import TASKS, language

KINDS = ("related words", "unrelated words")


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


def changes(evidence: Evidence, after: str, before: str, tasks: Sequence[str], change: Callable) -> Group:
    """What `change` says of two panels, for every language and, where `{task}` is in their names, every task."""
    paper = evidence.config["adjust"]
    chosen = [TASKS[task] for task in paper["tasks"] if task in tasks] if "{task}" in after else [""]
    members = {}
    for lang in paper["languages"]:
        for task in chosen:
            panels = (f"{language(lang)}: {name.format(task=task)}" for name in (after, before))
            members[" ".join(part for part in (lang, task) if part)] = change(*panels)
    return Group(members)


def separation_changes(item: str, after: str, before: str, tasks: Sequence[str] = ("nli", "ner", "qa")) -> Quantity:
    """The change of the area from one model to another, for every language and, where named, every task."""

    def found(evidence: Evidence) -> Group:
        def change(ours: str, theirs: str) -> Number:
            return area(evidence, item, ours).minus(area(evidence, item, theirs))

        return changes(evidence, after, before, tasks, change)

    return found


def distance_changes(
    item: str, after: str, before: str, kind: str, tasks: Sequence[str] = ("nli", "ner", "qa")
) -> Quantity:
    """The change of the mean distance of one kind of words, as a share of what it was."""

    def found(evidence: Evidence) -> Group:
        def change(ours: str, theirs: str) -> Number:
            later, earlier = (distance(evidence, item, panel, kind).value for panel in (ours, theirs))
            return Number(later / earlier - 1.0, "share", terms=2)

        return changes(evidence, after, before, tasks, change)

    return found


def top_dimensions(share: str) -> Quantity:
    """The mean share of the squared distance that the largest dimensions carry in the XNLI models, in percent."""

    def found(evidence: Evidence) -> Number:
        from crossalign.render.context import Context
        from crossalign.render.figures.adjust import models

        lang = "hi" if "hi" in evidence.config["adjust"]["languages"] else evidence.config["adjust"]["languages"][0]
        context = Context(evidence.config, evidence.results)
        shares = []
        for name, run in models(context, lang, ["nli"]).items():
            if "," in name:
                panel = evidence.results.distances(run, lang)
                if panel is None or share not in panel.summary:
                    raise evidence.absent("adjust/figure1", f"lacks distances/{run.path()}/{lang}")
                shares.append(100 * panel.summary[share])
        return Number(sum(shares) / len(shares), "percent", 0.0)

    return found
