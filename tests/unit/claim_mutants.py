"""The papers' own numbers, edited: for tests that a claim fails where they contradict its sentence."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path

from crossalign.papers.all_claims import declared
from crossalign.results.claims.claim import Judged, judge
from crossalign.results.claims.evidence import Evidence, Row

Edit = Callable[[str, Row], Row | list[Row]]
BARS = ("talk/figure2", "talk/figure3")


class Edited(Evidence):
    """What a run has made, with an edit of every record, which may make none or several of it."""

    def __init__(self, config: dict, folder: Path, edit: Edit, control: str = "none") -> None:
        super().__init__(config, folder, control)
        self.edit = edit

    def rows(self, item: str) -> list[Row]:
        fresh = item not in self._rows
        found = super().rows(item)
        if fresh:
            edited = [self.edit(item, dict(row)) for row in found]
            self._rows[item] = [row for each in edited for row in (each if isinstance(each, list) else [each])]
        return self._rows[item]

    def controlled(self) -> "Edited":
        return Edited(self.config, self.results.folder, self.edit, "length")


def same(item: str, row: Row) -> Row:
    """As the paper has it."""
    return row


def verdict(paper: str, name: str, made: tuple[dict, Path], edit: Edit = same, amounts: bool = False) -> Judged:
    """The verdict on one claim in kind: a printed amount that is missed must not pass for a contradiction."""
    row, claim = next((row, claim) for row, claim in declared(paper) if row["id"] == name)
    evidence = Edited(*made, edit)
    return judge(paper, row, claim if amounts else replace(claim, number=None), evidence, evidence.controlled())


def kinds(paper: str) -> list[str]:
    """The claims that say something in kind."""
    return [row["id"] for row, claim in declared(paper) if claim.test]


def fits(row: Row, keys: dict[str, str | Sequence[str]]) -> bool:
    return all(row.get(name) in ([value] if isinstance(value, str) else value) for name, value in keys.items())


def put(item: str, value: float, **keys: str | Sequence[str]) -> Edit:
    """Another number in some cells of a table, or bars of a figure."""

    def edit(where: str, row: Row) -> Row:
        column = "y" if "y" in row else "mean"
        return row | {column: str(value)} if where == item and fits(row, keys) else row

    return edit


def marked(item: str, value: float, mark: str, **keys: str | Sequence[str]) -> Edit:
    """Another number, and what the test over examples says of it: significant (`*`, `**`) or not (empty)."""
    return lambda where, row: row | {"mean": str(value), "mark": mark} if where == item and fits(row, keys) else row


def level(item: str, values: Mapping[int, float] | float, **keys: str | Sequence[str]) -> Edit:
    """Other values of curves, at some layers or at all."""

    def edit(where: str, row: Row) -> Row:
        if where != item or not fits(row, keys):
            return row
        value = values.get(int(row["x"])) if isinstance(values, Mapping) else values
        return row if value is None else row | {"y": str(value)}

    return edit


def draw(items: str | Sequence[str], values: Sequence[float], **keys: str | Sequence[str]) -> Edit:
    """Other curves, by layer."""
    chosen = [items] if isinstance(items, str) else items

    def edit(where: str, row: Row) -> Row:
        return row | {"y": f"{values[int(row['x'])]:.4f}"} if where in chosen and fits(row, keys) else row

    return edit


def both(*edits: Edit) -> Edit:
    """One edit after the other."""
    return lambda item, row: reduce(lambda found, edit: edit(item, found), edits, row)


def hump(top: float, layer: int, depth: float = 0.05) -> list[float]:
    return [top - depth * abs(place - layer) for place in range(13)]


def steady(item: str, row: Row) -> Row:
    """Hardly any noise, so that small differences count."""
    if "y" in row:
        return row | {"lead_std": "0.0001", "lead_sampling": "0.0001"}
    return row | {"std": "0.01"} if row.get("kind") == "delta" else row


def noisy(item: str, row: Row) -> Row:
    """Noise that swamps every difference; what was learnt is still known to be."""
    if item in BARS:
        return row | {"std": "15"}
    if "y" in row:
        return row | {"std": "1", "n": "3", "wanted": "3", "lead_std": "1", "lead_sampling": "1"}
    if row.get("metric") == "p":
        return row | {"mean": "0.5"}
    return row | {"std": "100"} if row.get("layers") != "ref" else row


def swamped(item: str, row: Row) -> Row:
    """Noise of single scores that swamps every difference between them, and no mark; they stay above guessing."""
    if "y" in row:
        return noisy(item, row)
    spread = "0.08" if item == "anc/table1" else "8"
    return row | ({"std": spread, "n": "5", "mark": ""} if row.get("mean") else {})


def unlearnt(item: str, row: Row) -> Row:
    """Scores of guessing."""
    if item in BARS:
        return row | {"y": "5" if row["y"] else ""}
    return row | {"mean": "5"} if row.get("layers") == "ref" else row
