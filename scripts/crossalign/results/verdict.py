"""The rule by which a number of ours is judged against the printed one, and the verdicts on all numbers of a run.

Let d be our mean minus the printed value. Three things make d differ from zero even if everything is the same: our
seeds, the paper's seeds, and the paper's rounding (h, half a unit of its last digit). So with

    se = sqrt(ours^2 / n + theirs^2 / runs)

- *reproduced*: |d| <= 2 se + h, but never more than the scale's `cap`, so that a noisy result proves nothing;
- *close*: |d| <= 4 se + h (at most twice the cap), or |d| within the scale's `margin`, below which no paper of the
  four draws a conclusion;
- *differs*: all else;
- *not run*: no run of ours is there yet;
- *left out*: it is not part of the configuration;
- *not judged*: the printed cell is doubtful, the languages are artificial, another model stands for the
  paper's, the run is a rehearsal, or the two measure different things.

`ours` is the sample standard deviation over our seeds. `theirs` is what the paper states: `align-predict` (and the
talk, which shows the same numbers) gives the median standard deviation per task in the caption of its table 5; where a
paper is silent its spread is taken to be ours. With a single run of ours the paper's spread stands for it; where
neither is known, the printed digits and the margin decide. A difference of two means (RANDOM-INIT minus REF, gain over
original) has the spread of both. `runs` is five, or one for `anc`.
Where the paper prints a mean that its own rows do not give (SRC-X), the nearer of the two readings counts, and the
reason says which.

Values read off a curve: reproduced within the reading error + 0.01, close within the reading error + 0.05.
Counts (sentences, parameters): reproduced when equal in the printed digits (two at least), close within a tenth.
Words (family, script): reproduced when equal, close when they share a word.
"""

import csv
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from crossalign.catalog.stand_in import ARTIFICIAL, OTHER_MODEL, REHEARSAL, StandIn
from crossalign.results.published import Printed, claims, published
from crossalign.results.values import Value
from crossalign.runtime.errors import UserError
from crossalign.runtime.files import write_atomic

REPRODUCED, CLOSE, DIFFERS, NOT_RUN, LEFT_OUT = "reproduced", "close", "differs", "not run", "left out"
DOUBTFUL = "not judged (doubtful)"
OTHER = "not judged (not comparable)"
JUDGED = (REPRODUCED, CLOSE, DIFFERS)
STAND_INS = tuple(f"not judged ({each.words})" for each in (ARTIFICIAL, OTHER_MODEL, REHEARSAL))
ABSENT = (NOT_RUN, LEFT_OUT)
LABELS = (REPRODUCED, CLOSE, DIFFERS, DOUBTFUL, *STAND_INS, OTHER, *ABSENT)


@dataclass(frozen=True)
class Scale:
    """`margin`: differences that do not matter; `cap`: the most that spread may excuse."""

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
        if self.paper not in ("align-predict", "talk"):
            return None
        stated = claims("align-predict").get(f"std-{self.task}-median")
        return float(stated["value"]) * math.sqrt(self.terms) if stated else None

    @property
    def runs(self) -> int:
        """How many seeds are behind a printed number."""
        return 1 if self.paper == "anc" else 5

    def number(self, printed: Printed | None, value: Value) -> Verdict:
        """The verdict on a mean of ours."""
        early = self.before(printed, value.mean is not None)
        if early is not None or printed is None or value.mean is None:
            return early or Verdict()
        if printed.number is None:
            return Verdict(DOUBTFUL, "no number is printed")
        candidates = [(printed.number, "")]
        if printed.recomputed is not None:
            candidates.append((printed.recomputed, "against the mean of the printed rows"))
        ranked = [self._judge(value, number, printed.half_unit, note) for number, note in candidates]
        return min(ranked, key=lambda verdict: LABELS.index(verdict.label))

    def _judge(self, value: Value, number: float, half_unit: float, note: str) -> Verdict:
        ours = value.std if value.std is not None else self.spread or 0.0
        theirs = self.spread if self.spread is not None else ours
        error = math.sqrt(ours**2 / max(value.n, 1) + theirs**2 / self.runs)
        # Half of the last bit of a sum must not decide.
        away = abs(value.mean - number) - 1e-9
        if away <= min(2 * error + half_unit, max(self.scale.cap, half_unit)):
            label = REPRODUCED
        elif away <= max(self.scale.margin, min(4 * error + half_unit, 2 * self.scale.cap)):
            label = CLOSE
        else:
            label = DIFFERS
        seeds = "" if value.n >= value.wanted else f"{value.n} of {value.wanted} runs"
        return Verdict(label, "; ".join(part for part in (note, seeds) if part))

    def before(self, printed: Printed | None, there: bool) -> Verdict | None:
        """The verdict where nothing is compared, or None."""
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
        return None

    def reading(self, printed: Printed | None, value: Value) -> Verdict:
        """The verdict against a value read off a curve."""
        early = self.before(printed, value.mean is not None)
        if early is not None or printed is None or printed.number is None or value.mean is None:
            return early or Verdict()
        away = abs(value.mean - printed.number) - (printed.error or 0.0) - 1e-9
        return Verdict(REPRODUCED if away <= 0.01 else CLOSE if away <= 0.05 else DIFFERS, "read off the figure")

    def count(self, printed: Printed | None, number: float | None) -> Verdict:
        """The verdict on a counted or registered quantity."""
        early = self.before(printed, number is not None)
        if early is not None or printed is None or number is None:
            return early or Verdict()
        if printed.number is None:
            return Verdict(DOUBTFUL, "no number is printed")
        if number == printed.number or significant(number, printed.text) == printed.number:
            return Verdict(REPRODUCED)
        return Verdict(CLOSE if abs(number - printed.number) <= 0.1 * abs(printed.number) else DIFFERS)

    def words(self, printed: Printed | None, text: str) -> Verdict:
        """The verdict on a fact in words."""
        early = self.before(printed, bool(text))
        if early is not None or printed is None:
            return early or Verdict()
        if text.casefold() == printed.text.casefold():
            return Verdict(REPRODUCED)
        shared = _words(text) & _words(printed.text)
        return Verdict(CLOSE if shared else DIFFERS)


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.casefold()))


def significant(number: float, text: str) -> float:
    """`number` rounded to as many significant digits as `text` shows."""
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


def item_of(path: Path) -> str:
    """`align-predict/table1` of `…/tables/align-predict/table1.csv`."""
    return f"{path.parent.name}/{path.stem}"


def kind_of(row: dict[str, str]) -> str:
    """Facts are named by a field or a parameter; all else are numbers."""
    return "fact" if {"field", "parameter"} & set(row) else "number"


def named(item: str, kind: str, names: Iterable[str], row: dict[str, str]) -> dict[str, str]:
    """The columns that say which number is judged."""
    cell = "; ".join(f"{name}={row[name]}" for name in names if row[name])
    return {"paper": item.partition("/")[0], "item": item, "kind": kind, "cell": cell}


def verdicts_of(path: Path) -> Iterator[dict[str, str]]:
    """One record for each cell of an item beside which a number is printed."""
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            rows = [row for row in csv.DictReader(stream) if row.get("verdict")]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path}: no CSV that can be read ({error}); make the item again") from None
    figure = path.stem.startswith("figure")
    for row in rows:
        names = PLACE if figure else [name for name in row if name not in MEASURED]
        yield {
            **{name: row.get(name) or "" for name in COLUMNS},
            **named(item_of(path), "reading" if figure else kind_of(row), names, row),
            "ours": row.get("text") or row.get("mean") or row.get("y", ""),
        }


def not_made(item: str) -> Iterator[dict[str, str]]:
    """The printed numbers of an item that was not made at all."""
    table = published(item)
    for place in range(len(table.rows)):
        for keys, printed in table.cells(place):
            told = {"printed": printed.text, "verdict": NOT_RUN, "reason": "this item was not made"}
            yield named(item, kind_of(keys), keys, keys) | told


def write_verdicts(paths: Iterable[Path], items: Iterable[str], out: Path) -> Counter[str]:
    """Write the verdicts of `items`, whose CSV files are `paths`; returns how many there are of each."""
    wanted = list(items)
    made = {item_of(path): path for path in sorted(paths, key=item_of)}
    rows = [row for item, path in made.items() if not wanted or item in wanted for row in verdicts_of(path)]
    rows += [row for item in wanted if item not in made for row in not_made(item)]
    with write_atomic(out) as stream:
        writer = csv.DictWriter(stream, COLUMNS, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return Counter(row["verdict"] for row in rows)
