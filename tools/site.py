"""What `make docs` adds to the files of docs/: a page for each table and figure, and documents that lie elsewhere.

MkDocs calls the functions whose names begin with `on_` (`hooks` in mkdocs.yml).
"""

import csv
import posixpath
import re
import sys
from collections import Counter
from functools import cache
from pathlib import Path

from mkdocs.structure.files import File, Files
from pymdownx.slugs import slugify

ROOT = Path(__file__).resolve().parents[1]

# Documents outside docs/ and their places on the site.
ELSEWHERE = {
    "config/README.md": "use/settings.md",
    "CONTRIBUTING.md": "extend/contributing.md",
    "CHANGELOG.md": "notes/changelog.md",
    **{
        f"resources/papers/{file.parent.name}/NOTES.md": f"understand/studies/{file.parent.name}/print.md"
        for file in ROOT.glob("resources/papers/*/NOTES.md")
    },
}
# The notes on a finished run with real languages, whose results stand on the pages of items.
RUN, CALLED = "notes/small-run", "the small run"
FENCE = re.compile(r"^( *)```.*?^\1```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


def on_config(config):
    """Name headings as GitHub does, so that links work in both places, and let the catalog be found."""
    config.mdx_configs.setdefault("toc", {})["slugify"] = slugify(case="lower")
    # MkDocs forgets what a hook adds to the path while it is loaded.
    sys.path.insert(0, str(ROOT / "scripts"))
    return config


def on_files(files: Files, config) -> Files:
    """Add the pages that are made here, and append to the navigation what it does not name."""
    pages = item_pages() | {place: read(ROOT / source) for source, place in ELSEWHERE.items()}
    for place, text in pages.items():
        files.append(File.generated(config, place, content=text))
    complete(config.nav, [file.src_uri for file in files.documentation_pages()])
    return files


def complete(nav: list, pages: list[str]) -> None:
    """Append pages that the navigation lacks to the section of their folder; each study is a section of its own."""
    groups = [group for entry in nav if isinstance(entry, dict) for group in entry.values()]
    sections = {group[0].partition("/")[0]: group for group in groups}
    named = {page for group in [nav, *groups] for page in group if isinstance(page, str)}
    studies = {name: [] for name in catalog()[1]}
    for page in sorted(set(pages) - named, key=natural):
        folder, _, rest = page.partition("/")
        group = studies[rest.split("/")[1]] if rest.startswith("studies/") else sections.get(folder, nav)
        group.append(page)
    titles = {name: paper.title for name, paper in catalog()[1].items()}
    sections["understand"].append({"Studies": [{titles[name]: group} for name, group in studies.items()]})


def natural(name: str) -> list:
    """Figure 10 after figure 9, and the page of a study before its items."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name.replace("index", ""))]


def on_page_markdown(markdown: str, page, config, files: Files) -> str:
    """Turn links that leave docs/ into links within the site, or into plain words where the site has no such page."""
    here = page.file.src_uri
    own = next((source for source, place in ELSEWHERE.items() if place == here), f"docs/{here}")

    def moved(link: re.Match) -> str:
        mark, words, target = link.groups()
        name, sign, heading = target.partition("#")
        if not name or ":" in name:
            return link[0]
        source = posixpath.normpath(posixpath.join(posixpath.dirname(own), name))
        place = source.removeprefix("docs/") if source.startswith("docs/") else ELSEWHERE.get(source)
        if place is None:
            return words if (ROOT / source).exists() else link[0]
        return f"{mark}[{words}]({posixpath.relpath(place, posixpath.dirname(here))}{sign}{heading})"

    parts, end = [], 0
    for fence in FENCE.finditer(markdown):
        parts += [LINK.sub(moved, markdown[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*parts, LINK.sub(moved, markdown[end:])])


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def catalog():
    """The catalog of the papers' own config, and the title and source of its studies."""
    from crossalign.catalog.config import load
    from crossalign.catalog.papers import papers
    from crossalign.papers.all_items import catalog_of

    made = catalog_of(load([]))
    return made, {name: paper for name, paper in papers().items() if name in made.config["papers"]}


def item_pages() -> dict[str, str]:
    """A page for each study and for each of its tables and figures, from the catalog and a finished run."""
    from crossalign.papers.all_items import ITEMS

    made, studies = catalog()
    with (ROOT / "docs" / RUN / "outcome" / "claims.csv").open(encoding="utf-8", newline="") as stream:
        claims = list(csv.DictReader(stream))
    pages = {}
    for paper, (title, source) in studies.items():
        rows = []
        for item in (item for item in made.items if item.startswith(f"{paper}/")):
            name = item.partition("/")[2]
            said = [claim for claim in claims if claim["item"] == item and claim["kind"] in ("qualitative", "both")]
            pages[f"understand/studies/{item}.md"] = item_page(item, ITEMS[item].title, said)
            rows.append(f"| [{label(name)}]({name}.md) | {ITEMS[item].title} |")
        head = [f"# {title}", "", f"{source}. Its name here is `{paper}`.", "", "| item | what it shows |", "|---|---|"]
        more = f"[What differs from the paper](../../differences.md#{paper}). [Notes on the printed numbers](print.md)."
        pages[f"understand/studies/{paper}/index.md"] = "\n".join([*head, *rows, "", more])
    return pages


def label(name: str) -> str:
    """table1 -> Table 1"""
    return re.sub(r"(\d+)$", r" \1", name).capitalize()


def item_page(item: str, title: str, claims: list[dict]) -> str:
    """What the paper concludes from an item, how the item is made, and what a finished run made of it."""
    from crossalign.plan.jobs import planned

    paper, _, name = item.partition("/")
    kind, ending = ("tables", "csv") if name.startswith("table") else ("figures", "svg")
    lines = [f"# {label(name)}: {title}", "", f"From the study [{paper}](index.md).", ""]
    if claims:
        lines += ["## What the paper says", "", f"| claim | where | verdict of {CALLED} |", "|---|---|---|"]
        lines += [f"| {cell(claim['claim'])} | {cell(claim['where'])} | {claim['verdict']} |" for claim in claims]
        lines += ["", "[What the verdicts mean](../../verdicts.md).", ""]
    lines += ["## How to make it", "", "```"]
    for profile, run in (("demo", "demo"), ("gpu", "paper")):
        lines.append(f"snakemake --profile profiles/{profile} results/{run}/{kind}/{item}.{ending}")
    lines += ["```", "", "Jobs with the papers' own settings:", "", "| rule | jobs |", "|---|---|"]
    jobs = Counter(job.rule for job in planned(catalog()[0], [item]).jobs.values())
    lines += [f"| `{rule}` | {number:,} |" for rule, number in jobs.items() if rule != "write_config"]
    printed = f"resources/papers/{paper}/{name}.csv"
    if (ROOT / printed).is_file():
        lines += ["", f"The printed numbers are in `{printed}`."]
    lines += ["", f"[What differs from the paper](../../differences.md#{paper})."]
    return "\n".join([*lines, *outcome(kind, item)]) + "\n"


def cell(text: str) -> str:
    return text.replace("|", "\\|")


def outcome(kind: str, item: str) -> list[str]:
    """The item as the finished run made it: the picture of a figure, the rows of a table."""
    file = ROOT / "docs" / RUN / "outcome" / kind / item
    if kind == "figures" and file.with_suffix(".png").is_file():
        shown = f"![{item} in {CALLED}](../../../{RUN}/outcome/{kind}/{item}.png)"
    elif kind == "tables" and file.with_suffix(".html").is_file():
        table = re.search(r"<table>.*</table>", read(file.with_suffix(".html")), re.DOTALL)[0]
        shown = re.sub(r"<caption.*?</caption>|\n", "", table).replace('<span class="printed">', "<br><span>paper ")
    else:
        return []
    told = "Real languages, and small models that this workflow pretrained."
    return ["", f"## In {CALLED}", "", f"{told} [More](../../../{RUN}/README.md).", "", shown]
