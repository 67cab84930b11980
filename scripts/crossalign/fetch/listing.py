"""Tell people what will be or must be downloaded, from where, to where, and under which licence."""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from crossalign.fetch.register import Dataset, Model
from crossalign.fetch.wheels import PIP, parse_wheel, requirement

COMPLETE = "complete.json"
NON_COMMERCIAL = "NON-COMMERCIAL"


def size(count: float) -> str:
    """A number of bytes for people: `12.3 MB`."""
    power = min(int(math.log10(max(count, 1)) + 1e-9) // 3, 4)
    return f"{count:.0f} B" if power == 0 else f"{count / 1000**power:.1f} {('kB', 'MB', 'GB', 'TB')[power - 1]}"


def is_non_commercial(licence: str) -> bool:
    """Whether a licence's name says that commercial use is not allowed."""
    return re.search(r"(?<![a-z])nc(?![a-z])|non-?commercial|research[ -]only", licence, re.IGNORECASE) is not None


def address(row: Dataset | Model) -> str:
    """Where a person would look for it; `manual:` stands before a page for people."""
    if isinstance(row, Dataset):
        return _index(row.url.removeprefix(PIP)) if row.url.startswith(PIP) else row.url
    if not row.hub:
        return ", ".join(_index(parse_wheel(each).wheel) for each in row.packages)
    kind = "datasets/" if row.path.startswith("datasets/") else ""
    return row.hub if row.hub.startswith("manual:") else f"https://huggingface.co/{kind}{row.hub}/tree/{row.revision}"


def _index(wheel: str) -> str:
    return f"a package index ({requirement(wheel)})"


def to_bring(row: Dataset | Model, downloads: str | Path) -> list[tuple[str, Path]]:
    """What a person would have to bring, with its place: a file, a model's folder, the archives of running text."""
    folder = Path(downloads)
    target = folder / row.path
    if not isinstance(row, Dataset):
        wheels = [parse_wheel(each) for each in getattr(row, "packages", ())]
        lacking = {each.wheel: folder / each.path for each in wheels if not (folder / each.path).exists()}
        if (target / COMPLETE).exists() or (wheels and not lacking):
            return []
        hub = [(address(row), target)] if row.hub else []
        return hub + [(f"{'or ' * bool(hub)}{_index(wheel)}", place) for wheel, place in lacking.items()]
    needed = [(text.url, folder / text.path) for text in row.texts()]
    needed = needed or [(address(row), row.by_hand(downloads) or target)]
    return [] if target.exists() else [each for each in needed if not each[1].exists()]


def missing(rows: Iterable[Dataset | Model], downloads: str | Path) -> list[Dataset | Model]:
    """Those that are not there. A model or a labelled set is there when it is complete."""
    return [row for row in rows if to_bring(row, downloads)]


def missing_message(rows: Iterable[Dataset | Model], downloads: str | Path) -> str:
    """One message with every missing file, its address and its place; empty when nothing is missing."""
    absent = missing(rows, downloads)
    if not absent:
        return ""
    lines = [f"{len(absent)} of the files that are needed are missing under {downloads} ({total(absent)} in all):"]
    for row in absent:
        flag = f", {NON_COMMERCIAL}" if is_non_commercial(row.licence) else ""
        lines.append(f"  {row.path}  ({row.licence}{flag})")
        for url, place in to_bring(row, downloads):
            how = "by hand, because of its terms, from " if url.startswith("manual:") else "from "
            lines.append(f"      {how}{url.removeprefix('manual:')}")
            lines.append(f"      to   {place}{'' if isinstance(row, Dataset) or place.suffix == '.whl' else '/'}")
    return "\n".join(lines)


def by_licence(rows: Iterable[Dataset | Model]) -> Iterator[tuple[str, str, str, str]]:
    """Licence, files, size and notes of each group of rows, those with non-commercial terms first and marked."""
    groups: dict[str, list[Dataset | Model]] = {}
    for row in rows:
        groups.setdefault(row.licence, []).append(row)
    for licence in sorted(groups, key=lambda name: (not is_non_commercial(name), name)):
        group = groups[licence]
        by_hand = sum(address(row).startswith("manual:") for row in group)
        notes = [f"{NON_COMMERCIAL} use only"] * is_non_commercial(licence) + [f"{by_hand} by hand"] * (by_hand > 0)
        yield licence, str(len(group)), total(group), ", ".join(notes)


def licence_summary(rows: Iterable[Dataset | Model]) -> str:
    """How many files and bytes come under which licence."""
    return columns([("licence", "files", "size", ""), *by_licence(rows)])


def total(rows: Sequence[Dataset | Model]) -> str:
    """The sum of the known sizes."""
    unknown = sum(1 for row in rows if row.bytes is None)
    known = size(sum(row.bytes or 0 for row in rows))
    if not unknown:
        return known
    return f"{known} + {unknown} of unknown size" if unknown < len(rows) else "unknown size"


def columns(table: Sequence[Sequence[str]]) -> str:
    """Align the cells of a table."""
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in table)
    return "\n".join(line.rstrip() for line in lines)
