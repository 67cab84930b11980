"""Small graphics of counts: a bar whose parts are as long as they are many, and a legend with the same in words."""

from collections.abc import Mapping, Sequence

from crossalign.report.escape import text

# The kind of a verdict decides its colour; the five kinds are told apart in words everywhere.
KINDS = {
    "holds": "good",
    "reproduced": "good",
    "made": "good",
    "unclear": "fair",
    "in part": "fair",
    "close": "fair",
    "does not hold": "bad",
    "differs": "bad",
    "cannot be checked": "moot",
    "not judged": "moot",
}


def kind_of(verdict: str) -> str:
    """good, fair, bad, moot or none."""
    # Why a number is not judged stands in brackets.
    return KINDS.get(verdict.partition(" (")[0], "none")


def badge(verdict: str, count: int | None = None) -> str:
    """A verdict as a coloured label."""
    number = "" if count is None else f"<b>{count}</b> "
    return f'<span class="badge {kind_of(verdict)}">{number}{text(verdict)}</span>'


def bar(title: str, counts: Mapping[str, int], headline: str) -> str:
    """A bar with its headline and legend; parts without a count are left out."""
    parts = [(label, count) for label, count in counts.items() if count]
    total = sum(count for _, count in parts)
    told = ", ".join(f"{count} {label}" for label, count in parts) or "none"
    return (
        f'<div class="bar"><h2>{text(title)}</h2><p class="headline">{headline}</p>'
        f'<svg role="img" aria-label="{text(f"{title}: {told}")}" viewBox="0 0 100 6" preserveAspectRatio="none">'
        f"{rectangles(parts, total)}</svg>"
        f'<ul class="key">{"".join(f"<li>{badge(label, count)}</li>" for label, count in parts)}</ul></div>'
    )


def rectangles(parts: Sequence[tuple[str, int]], total: int) -> str:
    """The parts from left to right; one that is very small still shows."""
    if not total:
        return '<rect class="none" width="100" height="6"/>'
    widths = [max(0.8, 100 * count / total) for _, count in parts]
    scale = 100 / sum(widths)
    drawn, left = "", 0.0
    for (label, _), width in zip(parts, widths, strict=True):
        drawn += f'<rect class="{kind_of(label)}" x="{left:.2f}" width="{width * scale:.2f}" height="6"/>'
        left += width * scale
    return drawn
