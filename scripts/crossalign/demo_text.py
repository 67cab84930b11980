"""The running text of the demo world, cleaned as the workflow cleans it, for the demo's own language models."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from crossalign.data.lines import Source
from crossalign.data.report import Report
from crossalign.data.text import Cleaning, clean_sentences, read_articles, read_lines
from crossalign.runtime.files import write_atomic

# Where the world keeps its text.
TEXT = ("text/wikipedia/", "text/cc100/")


def clean_text(world: Path, name: str, most: int = 0) -> Iterator[str]:
    """The sentences of one text (kind/language) of the world, at most `most` (0: all)."""
    source = world / "text" / (name + (".parquet" if name.startswith("wikipedia/") else ".txt.xz"))
    report = Report()
    raw = read_articles(source, report) if source.suffix == ".parquet" else read_lines(Source(source).lines(), report)
    yield from clean_sentences(raw, Cleaning(max_sentences=most), report)


def text_file(folder: Path, name: str) -> Path:
    """Where a cleaned text lies."""
    return folder / f"{name.replace('/', '-')}.txt"


def write_texts(world: Path, names: list[str], folder: Path, most: int = 0) -> None:
    """Clean the texts that are not in the folder yet."""
    for name in names:
        target = text_file(folder, name)
        if not target.exists():
            with write_atomic(target) as stream:
                stream.writelines(f"{sentence}\n" for sentence in clean_text(world, name, most))


def by_language(folder: Path, names: list[str]) -> dict[str, list[Path]]:
    """The files of each language."""
    files: dict[str, list[Path]] = {}
    for name in names:
        files.setdefault(name.split("/")[1], []).append(text_file(folder, name))
    return files
