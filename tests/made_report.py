"""A run with tables, figures and findings that were never computed: for the tests of the page made from one."""

import csv
from html.parser import HTMLParser
from pathlib import Path

from crossalign.catalog.addresses import Base, Tuned
from crossalign.papers.all_items import ITEMS
from crossalign.papers.common.figure import COLUMNS as FIGURE_COLUMNS
from crossalign.papers.common.table import PAIRS, Cell, Column, Row, Table, write_csv
from crossalign.papers.common.table_html import write_data, write_html
from crossalign.papers.common.table_latex import write_tex
from crossalign.results.findings.files import write_findings
from crossalign.results.findings.finding import FAILS, HOLDS, NOT_RUN, UNLEARNT, UNSURE, VERDICTS
from crossalign.results.findings.judge import Estimate, Judged
from crossalign.results.published import Printed
from crossalign.results.values import Value
from crossalign.results.verdict import CLOSE, DIFFERS, REPRODUCED, Verdict
from tests.unit.made_results import load, write_json, write_similarity

NASTY = "<script>alert(1)</script>"
NASTY_ATTRIBUTE = '"><img src=x onerror=alert(2)>'
NASTY_END = "</script><!--<script>alert(3)"
LABELS = (REPRODUCED, CLOSE, DIFFERS)
SHADES = ("atleast", "small", "medium", "large", "")


class Elements(HTMLParser):
    """The elements of a page with their attributes, and the text between them; sees to it that all are closed."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(content)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag not in ("meta", "input", "img", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def make_run(folder: Path, root: Path, items: list[str] | None = None, rows: int = 4, demo: bool = True) -> dict:
    """Write a run with some items (all of them by default) at results/<run> in `folder`; returns its config."""
    config = load(root, "config.yaml", *(["config/demo.yaml"] if demo else []))
    results = folder / "results" / config["run"]
    write_json(results / "config.json", config)
    for item in ITEMS if items is None else items:
        if "/table" in item:
            write_table(results, item, rows)
        else:
            write_drawing(results, item)
    write_findings(made_findings(), results / "findings.csv")
    write_trained(results)
    write_coverage(results)
    return config


def cell(line: int, place: int) -> Cell:
    """A number whose verdict and colour depend on its place."""
    ours, theirs = 50 + 7.25 * place - 1.5 * line, 50 + 7 * place - 1.75 * line
    return Cell(
        keys={"row": str(line), "column": str(place)},
        value=Value(ours, 0.4, 2, 2),
        shade=SHADES[(line + place) % 5],
        printed_shade=SHADES[(line + place + 1) % 5],
        printed=Printed(f"{theirs:.2f}"),
        verdict=Verdict(LABELS[(line * 7 + place) % 3], "made up"),
    )


def write_table(results: Path, item: str, rows: int) -> None:
    """A table of `rows` rows and eight columns, two of its names meant to do harm."""
    names = [NASTY, NASTY_ATTRIBUTE, *(f"language {line}" for line in range(2, rows))]
    table = Table(
        item,
        f"{ITEMS[item].title} {NASTY}",
        "language",
        [Column("REF"), *(Column(f"{place}-{place + 1}", "layers") for place in range(1, 8))],
        [Row(name, [cell(line, place) for place in range(8)], "one group") for line, name in enumerate(names)],
        notes=[NASTY_END],
        shading=PAIRS,
    )
    for write, form in ((write_data, "json"), (write_html, "html"), (write_csv, "csv"), (write_tex, "tex")):
        write(table, results / f"tables/{item}.{form}")


def write_drawing(results: Path, item: str, lines: int = 300) -> None:
    """A picture with as many paths as a large figure has, and with a script in it."""
    path = results / f"figures/{item}.svg"
    path.parent.mkdir(parents=True, exist_ok=True)
    paths = "".join(
        f'<path d="M {n % 40} {n / 3:.4f} ' + "".join(f"L {x * 17}.5 {(n * x) % 190}.25 " for x in range(1, 21)) + '"/>'
        for n in range(lines)
    )
    path.write_text(
        '<svg xmlns="http://www.w3.org/2000/svg" width="400pt" height="200pt" viewBox="0 0 400 200">'
        f'<script>parent.harmed = true; alert(4)</script><g fill="none" stroke="#0072B2">{paths}</g></svg>\n',
        encoding="utf-8",
    )
    for form in ("pdf", "png"):
        path.with_suffix(f".{form}").write_bytes(b"a picture")
    with path.with_suffix(".csv").open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, FIGURE_COLUMNS, restval="", lineterminator="\n")
        writer.writeheader()
        for layer in range(13) if item.startswith("anc/") else ():
            values = {"y": 0.5 + layer / 100, "printed": 0.45 + layer / 90, "verdict": CLOSE}
            writer.writerow({"panel": f"English-{NASTY}", "series": NASTY_ATTRIBUTE, "x": layer} | values)


def made_findings() -> list[Judged]:
    """One finding per verdict and paper, in words meant to do harm; those that hold do so in one of two groups."""
    found = []
    for paper in ("align-predict", "anc", "adjust", "talk"):
        for place, verdict in enumerate(VERDICTS):
            groups = ("parsing ru", f"pos {NASTY}") if verdict == HOLDS else ("",)
            judged = HOLDS if verdict == HOLDS else UNSURE
            estimates = [
                Estimate(
                    group, "elsewhere - home", "elsewhere - home < -2", -6.5, -7.8, -5.1, 16, "languages", judged, -17.5
                )
                for group in groups
            ]
            estimates += [Estimate(group, "score_home", "", 90.09, n=1) for group in groups]
            found.append(
                Judged(
                    *(
                        f"f{place}",
                        paper,
                        f"Layers matter {NASTY}",
                        NASTY,
                        f"table 1, figure 1 {NASTY_ATTRIBUTE}",
                        verdict,
                    ),
                    agreement="1 of 2 cases" if verdict == HOLDS else "",
                    reason=NASTY_END if verdict in (UNLEARNT, NOT_RUN) else "",
                    # One finding of each paper is told otherwise by the second opinion.
                    controlled=HOLDS if verdict == FAILS else "",
                    why=NASTY_ATTRIBUTE if verdict == FAILS else "",
                    estimates=[] if verdict in (UNLEARNT, NOT_RUN) else estimates,
                )
            )
    return found


def write_coverage(results: Path) -> None:
    """Languages from the best covered to the worst, and one with a name meant to do harm."""
    lacking = [chr(0x0430 + place) for place in range(14)]
    with (results / "coverage.csv").open("w", encoding="utf-8", newline="") as stream:
        rows = csv.writer(stream, lineterminator="\n")
        rows.writerow(["language", "words", "pieces", "unknown", "letters", "lacking", "which"])
        rows.writerow(["fo", 120000, 1.75, 0, 31, 0, ""])
        rows.writerow(["wo", 2400, 2.5, 9.25, 33, 2, f"{NASTY} ŋ"])
        rows.writerow([NASTY, 500, 3.125, 9.25, 40, 1, NASTY_ATTRIBUTE])
        rows.writerow(["ug", 90000, 1.25, 53.0625, 52, len(lacking), " ".join(lacking)])


def write_trained(results: Path) -> None:
    """Models that were trained, and curves of one language with a name meant to do harm."""
    runs = [Tuned("mbert", "parsing", "en_ewt", init, seed) for init in ("ref", "random-1-2") for seed in (1, 2)]
    for run in runs:
        facts = {"seconds": 90.5, "device": "NVIDIA H200", "recipe": "0123456789ab", "versions": {"torch": "2.13.0"}}
        write_json(results / run.path() / "training.json", facts)
        write_json(results / run.path() / "scores.json", {"trees/en_pud/test": {"LAS": 81.25, "n": 10}})
    for run in (Base("mbert"), *runs):
        write_similarity(results, run, "pud", ["ar", "fr", "ru", "zh"])
    with (results / "similarity/models/mbert/pud.csv").open("a", encoding="utf-8", newline="") as stream:
        csv.writer(stream, lineterminator="\n").writerows(
            [f"en-{NASTY}", layer, "cka", "none", 0.5, "", ""] for layer in range(13)
        )
