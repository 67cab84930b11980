"""The first screen: what was run, where, when, and how much of it holds."""

from crossalign.catalog.stand_in import artificial
from crossalign.report import claims
from crossalign.report.bars import bar
from crossalign.report.escape import text
from crossalign.report.gather import Entry, Report
from crossalign.report.time_html import time_by_stage
from crossalign.results.verdict import ABSENT, LABELS, STAND_INS
from crossalign.results.verdict import JUDGED as NUMBERS_JUDGED

SCALES = {
    "demo": "demo: artificial languages",
    "small": "real languages, small models that were pretrained here",
    "paper": "the papers at full scale",
}
PAPER_TITLES = {
    "align-predict": "First Align, then Predict: Understanding the Cross-Lingual Ability of Multilingual BERT",
    "anc": "Cross-lingual Similarity of Multilingual Representations Revisited",
    "adjust": "The Impact of Cross-Lingual Adjustment of Contextual Word Representations on Zero-Shot Transfer",
    "talk": "Cross Lingual Transfer with Multilingual Language Models",
}
PAPER_SOURCES = {
    "align-predict": "Muller, Elazar, Sagot and Seddah, EACL 2021",
    "anc": "Del and Fishel, AACL-IJCNLP 2022",
    "adjust": "Efimov, Boytsov, Arslanova and Braslavski, ECIR 2023",
    "talk": "Muller, seminar talk, 2022",
}


def facts(report: Report) -> str:
    """Run, place, time, commit, seeds."""
    run = report.config["run"]
    scale = SCALES["demo"] if artificial(report.config) else SCALES.get(run, "settings of its own")
    rows = {
        "Run": f"<b>{text(run)}</b> ({text(scale)})",
        "Trained on": text(devices(report)),
        "Time": time_by_stage(report.measured),
        "Page made on": text(report.machine),
        "When": when(report),
        "Commit": f"<code>{text(report.commit[:12] + report.commit[40:])}</code> when the page was made",
        "Seeds": text(", ".join(map(str, report.config["seeds"]))),
    }
    listed = "".join(f"<div><dt>{name}</dt><dd>{told}</dd></div>" for name, told in rows.items() if told)
    return f'<dl class="facts">{listed}</dl>'


def devices(report: Report) -> str:
    """The kinds of device, with the number of runs and their hours."""
    made = {address: each for entry in report.entries for address, each in entry.provenance.made.items()}
    found: dict[str, list[float]] = {}
    for each in made.values():
        if "device" in each:
            found.setdefault(each["device"], []).append(each.get("seconds", 0.0))
    told = (
        f"{'CPU' if device == 'cpu' else device} ({len(times)} runs, {duration(sum(times))})"
        for device, times in sorted(found.items())
    )
    return "; ".join(told) or "no training run is there yet"


def duration(seconds: float) -> str:
    """A time for people."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def when(report: Report) -> str:
    """When the tables and figures were written."""
    if report.period is None:
        return "nothing is made yet"
    first, last = report.period
    return f"{last} UTC" if first == last else f"{first} to {last[11:] if first[:10] == last[:10] else last} UTC"


def graphic(report: Report) -> str:
    """Three bars: claims, numbers, items."""
    counts = claims.count(report.claims)
    judged = sum(counts[verdict] for verdict in claims.JUDGED)
    held = f"<b>{counts[claims.HOLDS]}</b> of {judged} judged claims hold" if judged else "<b>no</b> claim judged yet"
    found = report.verdicts
    numbers = {label: found[label] for label in dict.fromkeys([*LABELS, *found]) if label in found}
    compared = sum(numbers.get(label, 0) for label in NUMBERS_JUDGED)
    same = numbers.get("reproduced", 0)
    if compared > sum(numbers.get(label, 0) for label in STAND_INS):
        told = f"<b>{same}</b> of {compared} judged numbers reproduced"
    else:
        # Few if any are judged: of facts about languages, say.
        total = sum(numbers.values())
        beside = total - sum(numbers.get(label, 0) for label in ABSENT)
        told = f"<b>{beside}</b> of {total} printed numbers have ours beside them"
    items = report.states
    made = f"<b>{items['made']}</b> of {len(report.entries)} made"
    return (
        f'<div class="bars">{bar("Claims", counts, held)}{bar("Numbers", numbers, told)}'
        f"{bar('Tables and figures', items, made)}</div>"
    )


def tiles(report: Report) -> str:
    """Every item as a small tile that leads to it."""
    rows = []
    for paper, entries in by_paper(report).items():
        links = "".join(tile(entry) for entry in entries)
        made = sum(entry.state == "made" for entry in entries)
        rows.append(
            f'<li><a class="paper" href="#{paper}">{text(paper)}</a>'
            f' <span class="muted small">{made} of {len(entries)}</span><ul class="tiles">{links}</ul></li>'
        )
    return f'<nav aria-label="All tables and figures"><ul class="overview">{"".join(rows)}</ul></nav>'


def tile(entry: Entry) -> str:
    """One tile: T1 or F1."""
    name = f"{entry.kind.capitalize()} {entry.number}: {entry.title} ({entry.state})"
    shape = {"made": "yes", "in part": "part"}.get(entry.state, "no")
    return (
        f'<li><a class="tile {shape}" href="#{entry.anchor}" title="{text(name)}" aria-label="{text(name)}">'
        f"{entry.kind[0].upper()}{entry.number}</a></li>"
    )


def by_paper(report: Report) -> dict[str, list[Entry]]:
    """The items of each paper, in the order of the catalog."""
    found: dict[str, list[Entry]] = {}
    for entry in report.entries:
        found.setdefault(entry.paper, []).append(entry)
    return found
