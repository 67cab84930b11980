"""Put the page together: one file with its style, its script and its data, and a policy that lets nothing else in."""

import time
from pathlib import Path
from string import Template

from crossalign.catalog.stand_in import artificial
from crossalign.papers.common.table_html import stylesheet
from crossalign.report.claims import VERDICTS
from crossalign.report.claims_html import claims_table
from crossalign.report.differences import differences
from crossalign.report.escape import content_hash, inline_json, text
from crossalign.report.gather import Report
from crossalign.report.item_html import article
from crossalign.report.provenance import chosen_settings, summary
from crossalign.report.summary_html import PAPER_SOURCES, PAPER_TITLES, by_paper, facts, graphic, tiles
from crossalign.results import names
from crossalign.results.published import ROOT, languages
from crossalign.runtime.errors import UserError

ASSETS = ROOT / "resources" / "report"
DIFFERENCES = ROOT / "docs" / "differences.md"
STYLES = ("base.css", "layout.css", "items.css", "chart.css", "print.css")
SCRIPTS = (
    *("core.js", "theme.js", "views.js", "sort.js", "tips.js", "filter.js", "jump.js"),
    *("chart.js", "curves.js", "readings.js", "provenance.js"),
)


def asset(name: str) -> str:
    """A tracked part of the page."""
    try:
        return (ASSETS / name).read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"{ASSETS / name}: a part of the page cannot be read ({error.strerror})") from None


def script() -> str:
    """All scripts as one, with a scope of its own."""
    return '"use strict";\n(() => {\n' + "\n".join(asset(name) for name in SCRIPTS) + "\n})();"


def options(pairs: dict[str, str]) -> str:
    """The choices of a filter."""
    return "".join(f'<option value="{text(value)}">{text(label)}</option>' for value, label in pairs.items())


def filters(report: Report) -> dict[str, str]:
    """The choices of all filters; only what occurs can be chosen."""
    tasks = {task for entry in report.entries for task in entry.tasks}
    codes = {code for entry in report.entries for code in entry.languages}
    by_name = sorted((row["name"], code) for code, row in languages().items() if code in codes)
    return {
        "paper_choices": options({paper: paper for paper in by_paper(report)}),
        "claim_verdicts": options({f"claim {verdict}": f"a claim: {verdict}" for verdict in VERDICTS}),
        "number_verdicts": options({verdict: f"a number: {verdict}" for verdict in sorted(report.verdicts)}),
        "tasks": options({task: label for task, label in names.TASKS.items() if task in tasks}),
        "languages": options({code: name for name, code in by_name}),
    }


def papers(report: Report) -> str:
    """The sections of the papers."""
    entries = {entry.name: entry for entry in report.entries}
    sections = []
    for paper, found in by_paper(report).items():
        claims = claims_table(paper, [claim for claim in report.claims if claim.paper == paper], entries)
        items = "\n".join(article(entry) for entry in found)
        head = f'<h2 id="{paper}-title"><span class="eyebrow">{text(paper)}</span>{text(PAPER_TITLES[paper])}</h2>'
        sections.append(
            f'<section class="study" id="{paper}" aria-labelledby="{paper}-title">{head}'
            f'<p class="muted">{text(PAPER_SOURCES[paper])}</p>{claims}<h3>Tables and figures</h3>\n{items}</section>'
        )
    return "\n".join(sections)


def data(report: Report) -> dict:
    """What the scripts draw and fill in."""
    found = [entry.provenance for entry in report.entries]
    paths = sorted({path for each in found for path in each.data})
    places = {path: place for place, path in enumerate(paths)}
    keys = sorted({key for each in found for key in each.settings})
    return {
        "commit": report.commit,
        "curves": report.curves,
        "readings": {entry.name: entry.readings for entry in report.entries if entry.readings},
        "files": [[path, report.checksums.get(path, "")] for path in paths],
        "settings": chosen_settings(report.config, keys),
        "provenance": {each.item: summary(each, places) for each in found},
    }


def banner(report: Report) -> str:
    """That the run has other languages, models or data than the papers."""
    if artificial(report.config):
        return asset("artificial.html")
    own = ", ".join(report.own_models)
    models = Template(asset("own-models.html")).substitute(models=text(own)) if own else ""
    return models + replaced(report.config.get("replaced") or {})


def replaced(found: dict[str, list[str]]) -> str:
    """What stands for data of the papers that this run could not have."""
    if not found:
        return ""
    rows = "".join(f"<li><code>{text(paper)}</code>: {text(what)}</li>" for paper in found for what in found[paper])
    return Template(asset("replaced.html")).substitute(rows=rows)


def early(report: Report) -> str:
    """That the run still goes, and how far its tables and figures are."""
    states = report.states
    made, wanted = states["made"] + states["in part"], len(report.entries) - states["left out"]
    return Template(asset("early.html")).substitute(made=made, wanted=wanted, when=time.strftime("%H:%M"))


def page(report: Report, going: bool = False) -> str:
    """The whole page; `going`: of a run that is not at its end yet."""
    style = stylesheet() + "\n" + "\n".join(asset(name) for name in STYLES)
    code = script()
    policy = (
        "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; "
        f"style-src '{content_hash(style)}'; script-src '{content_hash(code)}'"
    )
    return Template(asset("page.html")).substitute(
        policy=text(policy),
        run=text(report.config["run"]),
        style=style,
        script=code,
        banner=(early(report) if going else "") + banner(report),
        facts=facts(report),
        graphic=graphic(report),
        tiles=tiles(report),
        papers=papers(report),
        differences=differences(DIFFERENCES),
        data=inline_json(data(report)),
        **filters(report),
    )


def target_of(out: Path) -> Path:
    """Where provenance.json lies."""
    return out.with_name("provenance.json")
