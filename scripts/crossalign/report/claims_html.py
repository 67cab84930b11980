"""The claims of one paper as a table."""

from collections.abc import Mapping

from crossalign.report.bars import badge
from crossalign.report.claims import Claim
from crossalign.report.escape import attributes, text
from crossalign.report.gather import Entry
from crossalign.report.item_html import claim_anchor, words

HEADS = ("Verdict", "Claim", "Measured", "Where")


def claims_table(paper: str, claims: list[Claim], entries: Mapping[str, Entry]) -> str:
    """Verdict, sentence, what was measured, and the items that it is about.

    The roles are said in so many words because narrow screens show the cells below each other.
    """
    if not claims:
        return ""
    rows = "\n".join(row(claim, entries) for claim in claims)
    label = text(f"Claims of {paper}")
    return (
        f'<section class="claims" aria-label="{label}"><h3>Claims</h3>'
        f'<div class="scroll" role="region" tabindex="0" aria-label="{label}"><table class="claims" role="table">'
        f'<caption class="visually-hidden">{label}</caption><thead role="rowgroup"><tr role="row">'
        + "".join(f'<th role="columnheader" scope="col">{head}</th>' for head in HEADS)
        + f'</tr></thead><tbody role="rowgroup">{rows}</tbody></table></div></section>'
    )


def row(claim: Claim, entries: Mapping[str, Entry]) -> str:
    """One claim."""
    about = [entries[item] for item in claim.items if item in entries]
    found = attributes(
        class_="claim",
        id=claim_anchor(claim),
        data_paper=claim.paper,
        data_verdicts=f"claim {claim.verdict}",
        data_tasks=" ".join(dict.fromkeys(task for entry in about for task in entry.tasks)),
        data_languages=" ".join(dict.fromkeys(code for entry in about for code in entry.languages)),
        data_state="not made" if claim.verdict == "not run" else "made",
    )
    # Already escaped by claim_anchor, whose alphabet escaping leaves as it is.
    links = ", ".join(f'<a href="#{entry.anchor}">{words(entry)}</a>' for entry in about)
    measured = text(claim.measured)
    if shows_reason(claim):
        tag = "p" if measured else "span"
        measured += f'<{tag} class="muted small">{text(claim.detail)}</{tag}>'
    return (
        f'<tr role="row"{found}><td role="cell">{badge(claim.verdict)}{under_control(claim)}</td>'
        f'<td role="cell" class="sentence">{text(claim.claim)}{quoted(claim)}{more(claim)}</td>'
        f'<td role="cell" class="measured">{measured or "–"}</td><td role="cell">{links or "–"}</td></tr>'
    )


def under_control(claim: Claim) -> str:
    """The second verdict on a similarity: the length of sentences taken out."""
    if not claim.controlled:
        return ""
    return f'<p class="muted small">length taken out:<br>{badge(claim.controlled)}</p>'


def quoted(claim: Claim) -> str:
    """The paper's own words, and where they stand."""
    if not claim.sentence:
        return f'<p class="muted small">{text(claim.where)}</p>' if claim.where else ""
    return f'<p class="muted small">“{text(claim.sentence)}” ({text(claim.where)})</p>'


def shows_reason(claim: Claim) -> bool:
    """Whether the detail stands open: it is all that there is to say of a claim that cannot be checked."""
    return claim.verdict == "cannot be checked" and bool(claim.detail)


def more(claim: Claim) -> str:
    """How the claim was checked, folded."""
    tolerance = claim.tolerance and f"Tolerance: {claim.tolerance}"
    detail = "" if shows_reason(claim) else claim.detail
    apart = claim.controlled_measured and f"With the length of sentences taken out: {claim.controlled_measured}"
    told = "".join(f"<p>{text(part)}</p>" for part in (detail, apart, tolerance) if part)
    if claim.command:
        told += f'<p class="small"><code>{text(claim.command)}</code></p>'
    return f'<details class="inline"><summary>how it is checked</summary>{told}</details>' if told else ""
