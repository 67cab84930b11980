"""The rule by which a number of ours is judged against the printed one (docs/understand/verdicts.md), and the verdicts
on all printed numbers of a run.

Our mean differs from the printed value by our seeds, the paper's seeds (one for `anc`, five elsewhere), and the paper's
rounding. The paper's standard deviation is the one that it states: `align-predict` (and the talk, which shows the same
numbers) gives the median per task in the caption of its table 5. Where a paper is silent, ours stands for it, and with
a single run of ours the paper's for ours. Where neither is known, the printed digits and the margin decide.
"""

import csv
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from crossalign.catalog.stand_in import ARTIFICIAL, OTHER_MODEL, REHEARSAL, StandIn
from crossalign.results.published import Printed, claims, published
from crossalign.results.values import Value
from crossalign.runtime.files import read_csv, write_atomic

REPRODUCED, CLOSE, DIFFERS, NOT_RUN, LEFT_OUT = "reproduced", "close", "differs", "not run", "left out"
DOUBTFUL = "not judged (doubtful)"
OTHER = "not judged (not comparable)"
JUDGED = (REPRODUCED, CLOSE, DIFFERS)
STAND_INS = tuple(f"not judged ({each.words})" for each in (ARTIFICIAL, OTHER_MODEL, REHEARSAL))
ABSENT = (NOT_RUN, LEFT_OUT)
LABELS = (REPRODUCED, CLOSE, DIFFERS, DOUBTFUL, *STAND_INS, OTHER, *ABSENT)


@dataclass(frozen=True)
class Scale:
    """`margin`: differences that do not matter, as no paper of the four draws a conclusion from them; `cap`: the most
    that spread may excuse, so that a noisy result proves nothing."""

    margin: float
    cap: float


POINTS = Scale(margin=1.0, cap=2.0)
SHARE = Scale(margin=0.01, cap=0.02)
CORRELATION = Scale(margin=0.05, cap=0.1)


@dataclass(frozen=True)
class Verdict:
    """A label and, in a few words, why."""

    label: str = ""
    reason: str = ""


@dataclass(frozen=True)
class Judge:
    """How the numbers of one paper and task are judged; `terms` is 2 for a difference of two means."""

    paper: str
    task: str = ""
    scale: Scale = POINTS
    terms: int = 1
    stand_in: StandIn | None = None
    # Why ours is not comparable with the printed number; empty where it is.
    other: str = ""

    @property
    def spread(self) -> float | None:
        """The paper's standard deviation over seeds, where it states one."""
        stated = claims("align-predict").get(f"std-{self.task}-median")
        known = stated and self.paper in ("align-predict", "talk")
        return float(stated["value"]) * math.sqrt(self.terms) if known else None

    def before(self, printed: Printed | None, there: bool, number: bool = False) -> Verdict | None:
        """The verdict where nothing is compared, or None; `number`: what is compared are numbers."""
        if printed is None:
            return Verdict()
        if not there:
            return Verdict(NOT_RUN)
        if self.stand_in:
            return Verdict(f"not judged ({self.stand_in.words})")
        if printed.doubt:
            return Verdict(DOUBTFUL, printed.doubt)
        if self.other:
            return Verdict(OTHER, self.other)
        return Verdict(DOUBTFUL, "no number is printed") if number and printed.number is None else None

    def number(self, printed: Printed | None, value: Value) -> Verdict:
        """The verdict on a mean of ours. Where the paper prints a mean that its own rows do not give (SRC-X), the
        nearer of the two readings counts, and the reason says which."""
        if early := self.before(printed, value.mean is not None, number=True):
            return early
        found = [self._judge(value, printed.number, printed.half_unit, "")]
        if printed.recomputed is not None:
            note = "against the mean of the printed rows"
            found.append(self._judge(value, printed.recomputed, printed.half_unit, note))
        return min(found, key=lambda verdict: LABELS.index(verdict.label))

    def _judge(self, value: Value, number: float, half_unit: float, note: str) -> Verdict:
        ours = value.std if value.std is not None else self.spread or 0.0
        theirs = self.spread if self.spread is not None else ours
        error = math.sqrt(ours**2 / max(value.n, 1) + theirs**2 / (1 if self.paper == "anc" else 5))
        # Half of the last bit of a sum must not decide.
        away = abs(value.mean - number) - 1e-9
        label = DIFFERS
        if away <= min(2 * error + half_unit, max(self.scale.cap, half_unit)):
            label = REPRODUCED
        elif away <= max(self.scale.margin, min(4 * error + half_unit, 2 * self.scale.cap)):
            label = CLOSE
        seeds = "" if value.n >= value.wanted else f"{value.n} of {value.wanted} runs"
        return Verdict(label, "; ".join(filter(None, (note, seeds))))

    def reading(self, printed: Printed | None, value: Value) -> Verdict:
        """The verdict against a value read off a curve."""
        if early := self.before(printed, value.mean is not None, number=True):
            return early
        away = abs(value.mean - printed.number) - (printed.error or 0.0) - 1e-9
        return Verdict(REPRODUCED if away <= 0.01 else CLOSE if away <= 0.05 else DIFFERS, "read off the figure")

    def count(self, printed: Printed | None, number: float | None) -> Verdict:
        """The verdict on a counted quantity: equal in the printed digits, or close to a tenth."""
        if early := self.before(printed, number is not None, number=True):
            return early
        if number == printed.number or significant(number, printed.text) == printed.number:
            return Verdict(REPRODUCED)
        return Verdict(CLOSE if abs(number - printed.number) <= 0.1 * abs(printed.number) else DIFFERS)

    def words(self, printed: Printed | None, text: str) -> Verdict:
        """The verdict on a fact in words: equal, or close where a word is shared."""
        if early := self.before(printed, bool(text)):
            return early
        ours, theirs = text.casefold(), printed.text.casefold()
        shared = {*re.findall(r"\w+", ours)} & {*re.findall(r"\w+", theirs)}
        return Verdict(REPRODUCED if ours == theirs else CLOSE if shared else DIFFERS)


def significant(number: float, text: str) -> float:
    """`number` rounded to as many significant digits as `text` shows, two at least."""
    digits = text.partition("e")[0].lstrip("+-0.").replace(".", "")
    # The zeros that end a whole number may be no more than its size; but 100 is not "about one hundred and something".
    shown = max(2, len(digits if "." in text else digits.rstrip("0")))
    return float(f"{number:.{shown - 1}e}")


# What the tidy CSV of a table says of a cell, after the columns that say which cell it is. `tested` is there where a
# test was made of one cell at least, and then says of which.
TESTED = "yes"
MEASURED = (
    *("text", "mean", "std", "low", "high", "n", "wanted", "mark", "tested", "class"),
    *("printed", "printed_recomputed", "printed_flag", "printed_mark"),
    *("difference", "verdict", "reason", "missing"),
)
# What says which point of a figure it is.
PLACE = ("panel", "series", "x")
COLUMNS = (
    *("paper", "item", "kind", "cell", "printed", "ours", "std", "n", "wanted"),
    *("difference", "verdict", "reason", "missing"),
)


def _named(item: str, names: Sequence[str], row: dict[str, str]) -> dict[str, str]:
    """The columns that say which number is judged; facts are named by a field or a parameter."""
    kind = "reading" if names == PLACE else "fact" if {"field", "parameter"} & {*row} else "number"
    cell = "; ".join(f"{name}={row[name]}" for name in names if row[name])
    return {"paper": item.partition("/")[0], "item": item, "kind": kind, "cell": cell}


def _made(item: str, path: Path) -> Iterator[dict[str, str]]:
    """One record for each cell of an item beside which a number is printed."""
    for row in read_csv(path, ("verdict",)) or []:
        if row["verdict"]:
            names = PLACE if "/figure" in item else [name for name in row if name not in MEASURED]
            ours = row.get("text") or row.get("mean") or row.get("y", "")
            yield row | _named(item, names, row) | {"ours": ours}


def _not_made(item: str) -> Iterator[dict[str, str]]:
    """The printed numbers of an item that was not made at all."""
    for keys, printed in published(item).rest():
        told = {"printed": printed.text, "verdict": NOT_RUN, "reason": "this item was not made"}
        yield _named(item, [*keys], keys) | told


def write_verdicts(paths: Iterable[Path], items: Iterable[str], out: Path) -> Counter[str]:
    """Write the verdicts of `items`, whose CSV files are `paths`; returns how many there are of each."""
    made = {f"{path.parent.name}/{path.stem}": path for path in paths}
    wanted = list(items) or list(made)
    rows = [row for item in sorted({*made} & {*wanted}) for row in _made(item, made[item])]
    rows += [row for item in wanted if item not in made for row in _not_made(item)]
    with write_atomic(out) as stream:
        writer = csv.DictWriter(stream, COLUMNS, restval="", extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return Counter(row["verdict"] for row in rows)
