"""What the histograms of `adjust` say: how well the distance of two words tells whether they translate each other."""

from crossalign.claims.evidence import Evidence
from crossalign.claims.quantities import Quantity
from crossalign.claims.values import Group, Number
from crossalign.render.names import TASKS, language

KINDS = ("related words", "unrelated words")


def area(evidence: Evidence, item: str, panel: str) -> Number:
    """Area under the ROC curve: the chance that related words are closer, ties within a bin counting half."""
    weights: dict[str, dict[float, float]] = {}
    for kind in KINDS:
        points = {
            float(row["x"] or 0): evidence.number(item, row, "similarity").value
            for row in evidence.series(item, panel, kind)
        }
        total = sum(points.values())
        if total <= 0:
            raise evidence.absent(item, f"has an empty histogram for {panel}")
        weights[kind] = {place: value / total for place, value in points.items()}
    related, unrelated = (weights[kind] for kind in KINDS)
    below = chance = 0.0
    for place in sorted(related.keys() | unrelated.keys()):
        here = related.get(place, 0.0)
        chance += unrelated.get(place, 0.0) * (below + here / 2)
        below += here
    return Number(chance, "similarity")


def separation_changes(item: str, after: str, before: str) -> Quantity:
    """The change of the area from one model to another, for every language and, where named, every task."""

    def found(evidence: Evidence) -> Group:
        paper = evidence.config["adjust"]
        tasks = [TASKS[task] for task in paper["tasks"]] if "{task}" in after else [""]
        members = {}
        for lang in paper["languages"]:
            for task in tasks:
                panels = (f"{language(lang)}: {name.format(task=task)}" for name in (after, before))
                ours, theirs = (area(evidence, item, panel) for panel in panels)
                members[" ".join(part for part in (lang, task) if part)] = ours.minus(theirs)
        return Group(members)

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
