"""The papers' own numbers, edited: for tests that a claim fails where they contradict its sentence."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path

from crossalign.papers.all_claims import CLAIMS, evidence_of
from crossalign.results.claims.claim import Judged, declared, judge
from crossalign.results.claims.evidence import Evidence, Row

# An edit of a record; it may make none or several of it.
Edit = Callable[[str, Row], Row | list[Row] | None]
BARS = ("talk/figure2", "talk/figure3")
DECLARED = {(paper, row["id"]): (row, claim) for paper in CLAIMS for row, claim in declared(paper, CLAIMS[paper])}


class Edited(Evidence):
    """What a run has made, with an edit of every record."""

    def __init__(self, config: dict, folder: Path, edit: Edit, control: str = "none") -> None:
        super().__init__(config, folder, evidence_of(config, folder).catalog, control)
        self.edit = edit

    def _read(self, item: str) -> list[Row]:
        edited = [self.edit(item, dict(row)) for row in super()._read(item)]
        return [row for each in edited for row in (each if isinstance(each, list) else [each]) if row]

    def controlled(self) -> "Edited":
        return Edited(self.config, self.results.folder, self.edit, "length")


def same(item: str, row: Row) -> Row:
    """As the paper has it."""
    return row


def verdict(key: tuple[str, str], made: tuple[dict, Path], edit: Edit = same, amounts: bool = False) -> Judged:
    """The verdict on one claim in kind: a printed amount that is missed must not pass for a contradiction."""
    row, claim = DECLARED[key]
    evidence = Edited(*made, edit)
    return judge(key[0], row, claim if amounts else replace(claim, number=None), evidence, evidence.controlled())


def fits(row: Row, keys: Mapping[str, str | Sequence[str]]) -> bool:
    return all(row.get(name) in ([value] if isinstance(value, str) else value) for name, value in keys.items())


def put(item: str, value: float, mark: str | None = None, **keys: str | Sequence[str]) -> Edit:
    """Another number in some cells of a table, or bars of a figure; `mark` is what the test over examples says of it:
    significant (`*`, `**`) or not (empty)."""

    def edit(where: str, row: Row) -> Row:
        if where != item or not fits(row, keys):
            return row
        return row | {"y" if "y" in row else "mean": str(value)} | ({} if mark is None else {"mark": mark})

    return edit


def draw(
    items: str | Sequence[str], values: Sequence[float] | Mapping[int, float] | float, **keys: str | Sequence[str]
):
    """Other values of curves: at every layer, at some layers, or one for all."""

    def edit(where: str, row: Row) -> Row:
        if where not in ([items] if isinstance(items, str) else items) or not fits(row, keys):
            return row
        by_layer = dict.fromkeys(range(100), values) if isinstance(values, float) else values
        by_layer = by_layer if isinstance(by_layer, Mapping) else dict(enumerate(by_layer))
        return row | ({"y": f"{by_layer[int(row['x'])]:.4f}"} if int(row["x"]) in by_layer else {})

    return edit


def centres(name: str, related: float | None, unrelated: float | None, *languages: str) -> Edit:
    """Other histograms for a model: the places of related and unrelated words; None leaves one as it is."""
    places = {"related words": related, "unrelated words": unrelated}
    panels = {f"{lang}: {name}" for lang in languages or ("Spanish", "Russian", "Vietnamese", "Hindi")}

    def edit(item: str, row: Row) -> Row:
        place = places.get(row.get("series", ""))
        if item != "adjust/figure2" or place is None or row["panel"] not in panels:
            return row
        return row | {"y": f"{math.exp(-((float(row['x']) - place) ** 2) / 20):.4f}"}

    return edit


def gain(
    item: str, amount: float, mark: str, model: str = "adjusted", over: str = "original", **keys: str | Sequence[str]
) -> Edit:
    """All records of a model so far above the other's, which stands before them in the table."""
    before = {}

    def edit(where: str, row: Row) -> Row:
        if where != item or not fits(row, keys):
            return row
        place = tuple(row[name] for name in ("dataset", "setting", "language", "metric"))
        if row["model"] == over:
            before[place] = float(row["mean"])
        return row | {"mean": f"{before[place] + amount:.2f}", "mark": mark} if row["model"] == model else row

    return edit


def both(*edits: Edit) -> Edit:
    """One edit after the other."""
    return lambda item, row: reduce(lambda edited, edit: edit(item, edited), edits, row)


def hump(top: float, layer: int, depth: float = 0.05) -> list[float]:
    return [top - depth * abs(place - layer) for place in range(13)]


def steady(item: str, row: Row) -> Row:
    """Hardly any noise, so that small differences count."""
    if "y" in row:
        return row | {"lead_std": "0.0001", "lead_sampling": "0.0001"}
    return row | {"std": "0.01"} if row.get("kind") == "delta" else row


def noisy(item: str, row: Row) -> Row:
    """Noise that swamps every difference, and no mark; what was learnt is still known to be."""
    if item in BARS:
        return row | {"std": "15"}
    if "y" in row:
        return row | {"std": "1", "n": "3", "wanted": "3", "lead_std": "1", "lead_sampling": "1"}
    if row.get("metric") == "p":
        return row | {"mean": "0.5"}
    if item.startswith(("anc/", "adjust/")):
        spread = "0.08" if item == "anc/table1" else "8"
        return row | ({"std": spread, "n": "5", "mark": ""} if row.get("mean") else {})
    return row | {"std": "100"} if row.get("layers") != "ref" else row


def unlearnt(item: str, row: Row) -> Row:
    """Scores of guessing, in the models before any change."""
    guessed = {"nli": "33.5", "ner": "15", "qa": "10"}
    if item in BARS:
        return row | {"y": "5" if row["y"] else ""}
    if item == "anc/table1":
        return row | {"mean": "0.34"}
    if row.get("model") == "original" and row.get("task") in guessed:
        return row | {"mean": guessed[row["task"]]}
    return row | {"mean": "5"} if row.get("layers") == "ref" else row
