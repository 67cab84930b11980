"""Put the page together: one file with its style, its script and its data, and a policy that lets nothing else in.

The templates are in resources/report; here is what they ask for beyond what `gather` has found.
"""

import base64
import hashlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from crossalign.catalog.addresses import parse, trial_of
from crossalign.catalog.papers import papers
from crossalign.catalog.stand_in import artificial
from crossalign.catalog.studied import studied
from crossalign.papers.common.table_html import TEMPLATES, environment, render
from crossalign.plan.show import rehearsal_table, rehearsal_words
from crossalign.report.claims import HOLDS, JUDGED, VERDICTS, count
from crossalign.report.gather import Report
from crossalign.report.provenance import chosen_settings, summary
from crossalign.results import names
from crossalign.results.published import ROOT, languages
from crossalign.results.verdict import ABSENT, LABELS, REPRODUCED, STAND_INS
from crossalign.results.verdict import JUDGED as NUMBERS_JUDGED
from crossalign.runtime.errors import UserError
from crossalign.runtime.files import write_atomic

DIFFERENCES = ROOT / "docs" / "understand" / "differences.md"
STYLES = ("table.css", "base.css", "layout.css", "items.css", "chart.css", "print.css")
SCRIPTS = (
    *("core.js", "theme.js", "views.js", "sort.js", "tips.js", "filter.js", "jump.js"),
    *("chart.js", "curves.js", "readings.js", "provenance.js"),
)
SCALES = {
    "demo": "demo: artificial languages",
    "small": "real languages, small models that were pretrained here",
    "paper": "the papers at full scale",
    "rehearsal": "the papers at full scale, data and models invented, trainings cut short",
}
# The kind of a verdict decides its colour; the five kinds are told apart in words everywhere.
KINDS = {
    **dict.fromkeys(("holds", "reproduced", "made"), "good"),
    **dict.fromkeys(("unclear", "in part", "close"), "fair"),
    **dict.fromkeys(("does not hold", "differs"), "bad"),
    **dict.fromkeys(("cannot be checked", "not judged"), "moot"),
}


class Bar(NamedTuple):
    """A bar whose parts are as long as they are many, with a headline: `number` in bold, then `words`."""

    title: str
    parts: Mapping[str, int]
    number: int | str
    words: str

    @property
    def rectangles(self) -> Iterator[tuple[str, float, float]]:
        """Label, place and width of the parts from left to right, in percent; one that is very small still shows."""
        total, left = sum(self.parts.values()), 0.0
        widths = [max(0.8, 100 * number / total) for number in self.parts.values()]
        for label, width in zip(self.parts, widths, strict=True):
            yield label, left, 100 * width / sum(widths)
            left += 100 * width / sum(widths)


def kind(verdict: str) -> str:
    """The kind of a verdict: good, fair, bad, moot or none."""
    # Why a number is not judged stands in brackets.
    return KINDS.get(verdict.partition(" (")[0], "none")


environment().filters |= {"kind": kind, "counted": count}


def asset(name: str) -> str:
    """A script or style of the page."""
    try:
        return (TEMPLATES / name).read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"{TEMPLATES / name}: a part of the page cannot be read ({error.strerror})") from None


def bars(report: Report) -> list[Bar]:
    """Claims, numbers and items, for the first screen."""
    claims = count(report.claims)
    judged = sum(claims[verdict] for verdict in JUDGED)
    held = (claims[HOLDS], f"of {judged} judged claims hold") if judged else ("no", "claim judged yet")
    verdicts = report.verdicts
    numbers = {label: verdicts[label] for label in dict.fromkeys([*LABELS, *verdicts]) if label in verdicts}

    def many(labels: tuple[str, ...]) -> int:
        return sum(numbers.get(label, 0) for label in labels)

    if many(NUMBERS_JUDGED) > many(STAND_INS):
        told = (many((REPRODUCED,)), f"of {many(NUMBERS_JUDGED)} judged numbers reproduced")
    else:
        # Few if any are judged: of facts about languages, say.
        total = sum(numbers.values())
        told = (total - many(ABSENT), f"of {total} printed numbers have ours beside them")
    made = (report.states["made"], f"of {len(report.entries)} made")
    found = (("Claims", claims, held), ("Numbers", numbers, told), ("Tables and figures", report.states, made))
    every = [Bar(title, {label: n for label, n in counts.items() if n}, *told) for title, counts, told in found]
    return every


def head(report: Report) -> tuple[str, str]:
    """The title of the page, and a sentence below."""
    if told := studied(report.config):
        model = names.model(*told)
        asked = f"Every table and figure of four studies that open data allow, with {model} in the place of mBERT."
        return f"Why do multilingual models transfer? Four studies of {model}", asked
    return (
        "Why do multilingual models transfer? Four studies, run again",
        "Every table and figure of four studies of cross-lingual transfer, ours beside what was printed, and for each "
        "claim whether it holds.",
    )


def devices(report: Report) -> str:
    """The kinds of device that trained, with the number of runs and their hours."""
    seconds: dict[str, list[float]] = {}
    for facts in report.made.values():
        if "device" in facts:
            seconds.setdefault(facts["device"], []).append(facts.get("seconds", 0.0))
    told = (
        f"{'CPU' if device == 'cpu' else device} ({len(times)} runs, {duration(sum(times))})"
        for device, times in sorted(seconds.items())
    )
    return "; ".join(told) or "no training run is there yet"


def duration(seconds: float) -> str:
    """A time for people."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def data(report: Report) -> dict:
    """What the scripts draw and fill in."""
    known = [entry.provenance for entry in report.entries]
    paths = sorted({path for each in known for path in each.data})
    places = {path: place for place, path in enumerate(paths)}
    keys = sorted({key for each in known for key in each.settings})
    return {
        "commit": report.commit,
        "curves": report.curves,
        "readings": {entry.name: entry.readings for entry in report.entries if entry.readings},
        "files": [[path, report.checksums.get(path, "")] for path in paths],
        "settings": chosen_settings(report.config, keys),
        "provenance": {each.item: summary(each, places) for each in known},
    }


def inline(markdown: str) -> list[str]:
    """Text and code by turns; a link keeps its words alone, because the page travels without the other files."""
    return re.split(r"`([^`]*)`", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", markdown.strip()))


def differences(path: Path) -> list[dict]:
    """What differs from the papers by design: the sections of docs/understand/differences.md that have a table."""
    if not path.is_file():
        return []
    sections = []
    for section in re.split(r"^## ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        title, *lines = section.splitlines()
        rows = [
            [inline(cell.replace("\\|", "|")) for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
            for line in lines
            if line.startswith("|") and not re.fullmatch(r"[|:\s-]+", line)
        ]
        if rows:
            sections.append({"title": inline(title), "head": rows[0], "rows": rows[1:]})
    return sections


def banner(report: Report) -> str:
    """That the run has other languages, models or data than the papers."""
    context = {
        "rehearsal": rehearsal(report),
        "artificial": artificial(report.config),
        "models": report.trained_models,
        "replaced": report.config.get("replaced") or {},
        "failed": failed_tunings(report),
    }
    return render("banner.html", **context)


def failed_tunings(report: Report) -> list[str]:
    """Fine-tunings that learnt nothing. Not trials of a search, which are there to tell."""
    failed = [address for address, facts in report.made.items() if facts.get("learnt_nothing")]
    return sorted(address for address in failed if not trial_of(parse(address).init))


def rehearsal(report: Report) -> dict | None:
    """What a rehearsal tells, for the banner; None of another run."""
    if not report.config.get("rehearsal"):
        return None
    if report.outlook is None:
        return {"words": ["Not known: the jobs of the real run were not planned (make rehearsal does so)."], "rows": []}
    return {"words": list(rehearsal_words(report.outlook)), "rows": rehearsal_table(report.outlook)}


def page(report: Report) -> str:
    """The whole page."""
    style = "\n".join(asset(name) for name in STYLES)
    script = '"use strict";\n(() => {\n' + "\n".join(asset(name) for name in SCRIPTS) + "\n})();"
    # The names by which a content security policy knows an inline style and script.
    digests = [base64.b64encode(hashlib.sha256(content.encode()).digest()).decode() for content in (style, script)]
    allowed = "style-src 'sha256-{}'; script-src 'sha256-{}'".format(*digests)
    config = report.config
    scale = "rehearsal" if config.get("rehearsal") else "demo" if artificial(config) else config["run"]
    return render(
        "page.html",
        report=report,
        studies={paper: papers()[paper] for paper in report.by_paper},
        head=head(report),
        tasks=names.TASKS,
        policy=f"default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; {allowed}",
        style=style,
        script=script,
        banner=banner(report),
        bars=bars(report),
        scale=SCALES.get(scale, "settings of its own"),
        devices=devices(report),
        languages={code: row["name"] for code, row in languages().items()},
        verdicts=VERDICTS,
        differences=differences(DIFFERENCES),
        data=data(report),
    )


def write_page(report: Report, path: Path) -> None:
    """Write the page as one file."""
    with write_atomic(path, "wb") as stream:
        # A name that is no text in any encoding must not cost the page.
        stream.write(page(report).encode("utf-8", "replace"))
