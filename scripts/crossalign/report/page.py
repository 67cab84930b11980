"""Put the page together: one file with its style, its script and its data, and a policy that lets nothing else in.

The templates are in resources/report; here is what they ask for beyond what `gather` has found.
"""

import base64
import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

from crossalign.catalog.addresses import parse, trial_of
from crossalign.catalog.papers import papers
from crossalign.catalog.stand_in import artificial
from crossalign.catalog.studied import studied
from crossalign.papers.common.table_html import TEMPLATES, environment, render
from crossalign.plan.show import rehearsal_table, rehearsal_words
from crossalign.report.findings import counted
from crossalign.report.gather import Report
from crossalign.report.provenance import chosen_settings, summary
from crossalign.results import names
from crossalign.results.findings.finding import FAILS, HOLDS, NOT_RUN, UNLEARNT, UNSURE, VERDICTS
from crossalign.results.published import ROOT, languages
from crossalign.runtime.errors import UserError
from crossalign.runtime.files import write_atomic

DIFFERENCES = ROOT / "docs" / "understand" / "differences.md"
STYLES = ("table.css", "base.css", "layout.css", "findings.css", "items.css", "chart.css", "print.css")
SCRIPTS = (
    *("core.js", "theme.js", "views.js", "sort.js", "tips.js", "filter.js", "jump.js"),
    *("chart.js", "curves.js", "readings.js", "provenance.js"),
)
SCALES = {
    "demo": "demo: artificial languages",
    "study": "another model in mBERT’s place",
    "paper": "the papers at full scale",
    "rehearsal": "the papers at full scale, data and models invented, trainings cut short",
}
# The kind of a verdict decides its colour; the five kinds are told apart in words everywhere.
KINDS = {
    **dict.fromkeys((HOLDS, "reproduced", "made"), "good"),
    **dict.fromkeys((UNSURE, "in part", "close"), "fair"),
    **dict.fromkeys((FAILS, "differs"), "bad"),
    **dict.fromkeys((UNLEARNT, "not judged"), "moot"),
}
# The drawing in parts.html that stands for a verdict on a finding.
MARKS = {HOLDS: "holds", FAILS: "fails", UNSURE: "unsure", UNLEARNT: "unlearnt", NOT_RUN: "notrun"}


def kind(verdict: str) -> str:
    """The kind of a verdict: good, fair, bad, moot or none."""
    # Why a number is not judged stands in brackets.
    return KINDS.get(verdict.partition(" (")[0], "none")


def duration(seconds: float) -> str:
    """A time for people."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


environment().filters |= {"kind": kind, "counted": counted, "duration": duration}
environment().globals["marks"] = MARKS


def asset(name: str) -> str:
    """A script or style of the page."""
    try:
        return (TEMPLATES / name).read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"{TEMPLATES / name}: a part of the page cannot be read ({error.strerror})") from None


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


def sealed(styles: Iterable[str], scripts: Iterable[str] = ()) -> dict[str, str]:
    """The style and the script of a page, and a policy that allows these and pictures, and nothing from elsewhere."""
    style = "\n".join(map(asset, styles))
    script = "".join(('"use strict";\n(() => {\n', "\n".join(map(asset, scripts)), "\n})();")) if scripts else ""
    # The names by which a content security policy knows an inline style and script.
    digests = [base64.b64encode(hashlib.sha256(content.encode()).digest()).decode() for content in (style, script)]
    allowed = "style-src 'sha256-{}'; script-src 'sha256-{}'".format(*digests)
    policy = f"default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; {allowed}"
    return {"style": style, "script": script, "policy": policy}


def page(report: Report) -> str:
    """The whole page."""
    config = report.config
    scale = (
        "rehearsal"
        if config.get("rehearsal")
        else "demo"
        if artificial(config)
        else "study"
        if studied(config)
        else config["run"]
    )
    return render(
        "page.html",
        report=report,
        studies={paper: papers()[paper] for paper in report.by_paper},
        studied=[names.model(name) for name in studied(report.config)],
        tasks=names.TASKS,
        **sealed(STYLES, SCRIPTS),
        banner=banner(report),
        scale=SCALES.get(scale, "settings of its own"),
        languages={code: row["name"] for code, row in languages().items()},
        verdicts=VERDICTS,
        differences=differences(DIFFERENCES),
        data=data(report),
    )


def write_page(content: str, path: Path) -> None:
    """Write a page as one file."""
    with write_atomic(path, "wb") as stream:
        # A name that is no text in any encoding must not cost the page.
        stream.write(content.encode("utf-8", "replace"))
