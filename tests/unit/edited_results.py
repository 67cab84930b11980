"""The papers' own numbers with something changed, to be judged: no files are copied."""

from collections.abc import Callable

from crossalign.claims.claim import Judged, judge
from crossalign.claims.evidence import Evidence
from crossalign.claims.write import declared

Row = dict[str, str]
Edit = Callable[[str, Row], Row | list[Row] | None]


class Edited(Evidence):
    """Evidence whose records go through an edit first, which may drop a record (None) or make several of it."""

    def __init__(self, config: dict, folder, edit: Edit, control: str = "none") -> None:
        super().__init__(config, folder, control)
        self.edit = edit
        self._edited: dict[str, list[Row]] = {}

    def rows(self, item: str) -> list[Row]:
        if item not in self._edited:
            made = [self.edit(item, dict(row)) for row in super().rows(item)]
            self._edited[item] = [row for each in made for row in (each if isinstance(each, list) else [each]) if row]
        return self._edited[item]


def same(item: str, row: Row) -> Row:
    """No change."""
    return row


def judged(paper: tuple, key: str, edit: Edit = same) -> Judged:
    """The verdict on one claim (paper/id) after an edit; `paper` is a config and its folder."""
    name, _, identity = key.partition("/")
    row, claim = next(pair for pair in declared(name) if pair[0]["id"] == identity)
    return judge(name, row, claim, Edited(*paper, edit), Evidence(*paper).controlled())


def fits(row: Row, keys: Row) -> bool:
    return all(row.get(name) in (value if isinstance(value, tuple) else (value,)) for name, value in keys.items())


def change(wanted: str, values: Row, **keys) -> Edit:
    """New values in the records of an item that have these columns."""
    return lambda item, row: row | values if item == wanted and fits(row, keys) else row


def score(wanted: str, mean: float, mark: str = "", **keys) -> Edit:
    """A new number in a table."""
    return change(wanted, {"mean": str(mean), "mark": mark}, **keys)


def level(wanted: str, values: dict[int, float] | float, **keys) -> Edit:
    """New values of curves, at some layers or at all."""

    def edit(item: str, row: Row) -> Row:
        if item != wanted or not fits(row, keys):
            return row
        value = values.get(int(row["x"])) if isinstance(values, dict) else values
        return row if value is None else row | {"y": str(value)}

    return edit


def both(*edits: Edit) -> Edit:
    """One after the other."""

    def edit(item: str, row: Row) -> Row | None:
        for one in edits:
            row = one(item, row)
        return row

    return edit


def swamped(item: str, row: Row) -> Row:
    """So much noise that no difference stands out, and marks that say so; the scores stay above guessing."""
    if "y" in row:
        return row | {"std": "0.5", "n": "3"}
    spread = "0.08" if item == "anc/table1" else "8"
    return row | ({"std": spread, "n": "5", "mark": ""} if row.get("mean") else {})
