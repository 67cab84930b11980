"""What the documents name exists: the files and headings that they link to, commands with their options, paths."""

import re
import shlex
from functools import cache
from pathlib import Path

import pytest

from crossalign.catalog.code_hash import closure

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    {
        *ROOT.glob("*.md"),
        *ROOT.glob("config/*.md"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("resources/papers/*/NOTES.md"),
    }
)
FENCE = re.compile(r"^( *)```.*?^\1```", re.MULTILINE | re.DOTALL)
FOLDERS = r"(?:scripts|demo_world|rules|docs|resources|tests|profiles|envs|benchmarks|\.ci)"
# Made by a run.
MADE = ("resources/downloads",)

pytestmark = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


@cache
def read(path):
    return path.read_text(encoding="utf-8")


def prose(page):
    return FENCE.sub("", read(page))


def code(page):
    """Code within lines, and the lines of blocks without their comments' sign."""
    spans = re.findall(r"(?<!`)`([^`\n]+)`(?!`)", prose(page))
    lines = [line for block in FENCE.finditer(read(page)) for line in block[0].splitlines()[1:-1]]
    return [*spans, *(part.strip() for line in lines for part in re.split(r"\s#\s(?:or: )?|^#\s", line))]


def commands(page, start):
    return [piece for piece in code(page) if re.match(rf"{start}\b", piece)]


def words(command):
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


@cache
def anchors(path):
    """Names of the headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", prose(path), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.replace("`", "").lower()).replace(" ", "-") for title in titles}


def test_links(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if "://" in target or target.startswith("mailto:"):
            continue
        name, _, heading = target.partition("#")
        file = page.parent / name if name else page
        assert file.exists(), f"{target}: there is no such file"
        assert not heading or heading in anchors(file), f"{target}: there is no such heading"


@cache
def rules():
    files = [ROOT / "Snakefile", *sorted(ROOT.glob("rules/*.smk"))]
    named = {name for file in files for name in re.findall(r"^ *rule (\w+):", read(file), re.MULTILINE)}
    return named


def test_make(page):
    makefile = read(ROOT / "Makefile")
    targets = set(re.findall(r"^([a-z-]+):(?!=)", makefile, re.MULTILINE))
    for command in commands(page, "make"):
        for word in words(command)[1:]:
            variable = re.match(r"([A-Z_]+)=(.*)", word)
            if variable:
                assert f"$({variable[1]})" in makefile, f"{command}: the Makefile does not use {variable[1]}"
                if variable[1] == "TARGETS" and re.fullmatch("[a-z_]+", variable[2]):
                    assert variable[2] in rules(), f"{command}: there is no rule {variable[2]}"
            elif re.fullmatch(r"[a-z-]+", word):
                assert word in targets, f"{command}: the Makefile has no target {word}"


def test_programs(page):
    for command in commands(page, "python"):
        program, *rest = words(command)[1:]
        if not re.match(rf"{FOLDERS}/", program):
            continue
        assert (ROOT / program).is_file(), f"{command}: there is no {program}"
        # What follows a bare -- is another program's.
        options = rest[: rest.index("--")] if "--" in rest else rest
        sources = "".join(map(read, sorted(closure(ROOT / program))))
        for option in options:
            if option.startswith("--"):
                name = option.removeprefix("--").partition("=")[0]
                known = f'"--{name}"' in sources or f'"{name.replace("-", "_")}"' in sources
                assert known, f"{command}: {program} has no --{name}"


def test_snakemake(page):
    for command in commands(page, "snakemake"):
        *before, last = words(command)
        if "--profile" in before:
            profile = before[before.index("--profile") + 1]
            assert (ROOT / profile / "config.yaml").is_file(), f"{command}: there is no {profile}"
        if before and not (before[-1].startswith("--") and before[-1] != "--") and re.fullmatch("[a-z_]+", last):
            made = f"papers/{last}/" in read(page)  # a paper that the page adds
            assert made or last in rules(), f"{command}: there is no rule {last}"


def test_paths(page):
    made = (*MADE, *re.findall("^Create `(.+)`", prose(page), re.MULTILINE))
    for piece in code(page):
        if re.fullmatch(rf"{FOLDERS}(?:/[\w.+-]+)+/?", piece) and not piece.startswith(made):
            assert (ROOT / piece).exists(), f"{piece} is not there"
