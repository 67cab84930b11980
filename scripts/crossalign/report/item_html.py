"""One table or figure as a section of the page."""

from crossalign.report.bars import badge
from crossalign.report.claims import Claim, count
from crossalign.report.escape import attributes, link, text
from crossalign.report.gather import Entry
from crossalign.results import names

VIEWS = {"both": "Both", "ours": "Ours", "theirs": "Paper", "difference": "Difference"}
FORMS = {"csv": "CSV", "tex": "LaTeX", "html": "HTML", "svg": "SVG", "pdf": "PDF", "png": "PNG"}


def words(entry: Entry) -> str:
    """`Table 1`, `Figure 3`."""
    return f"{entry.kind.capitalize()} {entry.number}"


def article(entry: Entry) -> str:
    """The section of one item."""
    found = attributes(
        class_="item made" if entry.made else "item unmade",
        id=entry.anchor,
        data_item=entry.name,
        data_paper=entry.paper,
        data_tasks=" ".join(entry.tasks),
        data_languages=" ".join(entry.languages),
        data_verdicts="|".join([*entry.verdicts, *dict.fromkeys(f"claim {claim.verdict}" for claim in entry.claims)]),
        data_state=entry.state if entry.made else "not made",
        aria_labelledby=f"{entry.anchor}-title",
    )
    parts = [f"<article{found}>", header(entry)]
    if entry.lacks:
        parts.append(f'<p class="absent">Made in part. {missing(entry)}The command below makes the rest.</p>')
    if entry.made:
        parts += [tools(entry), entry.table and f'<div class="body">{entry.table}</div>', picture(entry)]
    elif entry.left_out:
        parts.append(f'<p class="absent">Not part of this run: {text(entry.left_out)}</p>')
    else:
        parts.append(f'<p class="absent">Not made yet. {missing(entry)}This command makes it:</p>')
    if entry.made or not entry.left_out:
        parts.append(command(entry.command, entry.name))
    parts += [claims_of(entry), provenance(), "</article>"]
    return "\n".join(part for part in parts if part)


def header(entry: Entry) -> str:
    """Number, title, tasks and verdicts."""
    tasks = "".join(f'<span class="tag">{text(names.TASKS[task])}</span>' for task in entry.tasks)
    verdicts = "".join(badge(verdict, count) for verdict, count in entry.verdicts.items()) if entry.made else ""
    numbers = f'<p class="badges"><span class="muted">numbers:</span> {verdicts}</p>' if verdicts else ""
    return (
        f'<header><p class="eyebrow">{words(entry)}{tasks}</p>'
        f'<h4 id="{entry.anchor}-title"><a href="#{entry.anchor}">{text(entry.title)}</a></h4>{numbers}</header>'
    )


def missing(entry: Entry) -> str:
    """How far the runs behind an item have come."""
    wanted = len(entry.provenance.runs)
    there = sum(address in entry.provenance.made for address in entry.provenance.runs)
    return f"{there} of its {wanted} training runs are there. " if wanted else ""


def tools(entry: Entry) -> str:
    """The choice of what is shown, and the files."""
    there = ((label, entry.files[form]) for form, label in FORMS.items() if form in entry.files)
    files = "".join(f'<li><a href="{link(path)}">{label}</a></li>' for label, path in there)
    return (
        f'<div class="tools">{views(entry)}'
        f'<ul class="files" aria-label="Files of {text(words(entry))}">{files}</ul></div>'
    )


def views(entry: Entry) -> str:
    """Buttons for ours, theirs and the difference, where the paper has printed numbers."""
    printed = entry.readings if entry.kind == "figure" else 'class="printed' in entry.table
    if not printed:
        told = {"table": "the paper prints no numbers here", "figure": "no numbers were read off the paper’s curves"}
        return f'<p class="muted small">{told[entry.kind]}</p>'
    # The picture of a figure shows ours; beside the paper's it is drawn anew.
    first = "ours" if entry.kind == "figure" else "both"
    pressed = {view: "true" if view == first else "false" for view in VIEWS}
    buttons = "".join(
        f'<button type="button" data-view="{view}" aria-pressed="{pressed[view]}">{label}</button>'
        for view, label in VIEWS.items()
    )
    return f'<div class="views" role="group" aria-label="Numbers shown in {text(words(entry))}">{buttons}</div>'


def picture(entry: Entry) -> str:
    """The figure, and room for the drawing of ours beside theirs."""
    if entry.picture is None:
        return ""
    # Points are smaller than the pixels of a page, and figures are drawn for print.
    width, height = round(entry.picture.width * 1.75), round(entry.picture.height * 1.75)
    told = f"{words(entry)}: {entry.title}"
    image = attributes(
        src=entry.picture.address, alt=told, width=width, height=height, loading="lazy", decoding="async"
    )
    drawing = f'<div class="readings" data-readings="{text(entry.name)}" hidden></div>' if entry.readings else ""
    scroll = attributes(class_="scroll sheet", tabindex="0", role="region", aria_label=entry.title)
    return f'<div class="body"><div{scroll}><img{image}></div>{drawing}</div>'


def command(line: str, name: str) -> str:
    """A command with a button that copies it."""
    label = text(f"Copy the command that makes {name}")
    return (
        f'<div class="command"><code>{text(line)}</code>'
        f'<button type="button" class="copy" aria-label="{label}">Copy</button></div>'
    )


def claims_of(entry: Entry) -> str:
    """The claims that are about this item, in short; the list of the paper tells more."""
    if not entry.claims:
        return ""
    rows = "".join(
        f'<li>{badge(claim.verdict)} <a href="#{claim_anchor(claim)}">{text(claim.claim)}</a></li>'
        for claim in entry.claims
    )
    counts = count(entry.claims)
    total = sum(counts.values())
    parts = ", ".join(f"{number} {verdict}" for verdict, number in counts.items() if number)
    told = f"{total} {'claim' if total == 1 else 'claims'}: {parts}"
    return f'<details class="fold"><summary>{told}</summary><ul class="plain">{rows}</ul></details>'


def claim_anchor(claim: Claim) -> str:
    """Where a claim stands in the page; letters that an address cannot hold are left out."""
    safe = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in claim.id)
    return text(f"claim-{claim.paper}-{safe}")


def provenance() -> str:
    """A fold that the page fills when it is opened."""
    return (
        '<details class="fold" data-provenance>'
        "<summary>Provenance: commit, settings, seeds, data, time, device</summary>"
        '<div class="filled"></div></details>'
    )
