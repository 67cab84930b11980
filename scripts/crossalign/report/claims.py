"""The claims of the papers with their verdicts: claims.csv of a run, or, where none is there yet, all as not run."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from crossalign.papers.all_claims import CLAIMS
from crossalign.papers.all_items import ITEMS, PAPERS
from crossalign.results.claims.claim import (
    COLUMNS,
    FAILS,
    FIELDS,
    HOLDS,
    NOT_RUN,
    UNCHECKED,
    UNCLEAR,
    VERDICTS,
    Judged,
    in_short,
)
from crossalign.results.published import PRINTED
from crossalign.runtime.errors import UserError
from crossalign.runtime.files import read_csv

# The run could look at these; unclear is an outcome too.
JUDGED = (HOLDS, FAILS, UNCLEAR)


@dataclass(frozen=True)
class Claim(Judged):
    """A claim as the page shows it."""

    @cached_property
    def items(self) -> tuple[str, ...]:
        """The tables and figures that it is about."""
        return items_in(self.paper, self.item)

    @property
    def anchor(self) -> str:
        """Where the claim stands in the page; letters that an address cannot hold are left out."""
        safe = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in self.id)
        return f"claim-{self.paper}-{safe}"

    @property
    def shows_reason(self) -> bool:
        """Whether the detail stands open: it is all that there is to say of a claim that cannot be checked."""
        return self.verdict == UNCHECKED and bool(self.detail)

    @property
    def checks(self) -> list[str]:
        """How the claim was checked, in sentences."""
        apart = self.controlled_measured and f"With the length of sentences taken out: {self.controlled_measured}"
        tolerance = self.tolerance and f"Tolerance: {self.tolerance}"
        return [part for part in ("" if self.shows_reason else self.detail, apart, tolerance) if part]


def read_claims(results: Path) -> list[Claim]:
    """The claims of a run."""
    path = results / "claims.csv"
    rows = read_csv(path, COLUMNS)
    if rows is None:
        return [claim for paper in PAPERS for claim in printed_claims(paper)]
    for line, row in enumerate(rows, start=2):
        if row["verdict"] not in VERDICTS:
            raise UserError(
                f"{path}, line {line}: '{row['verdict']}' is no verdict on a claim; they are {', '.join(VERDICTS)}"
            )
        if row["paper"] not in PAPERS:
            raise UserError(f"{path}, line {line}: '{row['paper']}' is no paper; they are {', '.join(PAPERS)}")
    return [Claim(**{name: row[name] for name in COLUMNS}) for row in rows]


def printed_claims(paper: str) -> list[Claim]:
    """The claims of one paper as the register has them."""
    return [
        Claim(
            id=row["id"],
            paper=paper,
            item=row["where"],
            claim=in_short(row),
            kind="",
            verdict=NOT_RUN,
            fact=CLAIMS[paper][row["id"]].same_as or f"{paper}/{row['id']}",
            sentence=row["sentence"],
            where=row["where"],
        )
        for row in read_csv(PRINTED / paper / "claims.csv", FIELDS) or []
    ]


def items_in(paper: str, where: str) -> tuple[str, ...]:
    """The items that a place names: `figure1`, `section 4.2 / figure 1`, `anc/table1`."""
    places = re.findall(r"(?:([a-z][a-z-]*)/)?(table|figure)s? ?(\d+)", where.lower())
    names = (f"{named if named in PAPERS else paper}/{kind}{number}" for named, kind, number in places)
    return tuple(dict.fromkeys(name for name in names if name in ITEMS))


def facts(claims: Iterable[Claim]) -> list[Claim]:
    """One claim for each fact, the first: what two claims say alike counts once."""
    firsts: dict[str, Claim] = {}
    for claim in claims:
        firsts.setdefault(claim.fact or f"{claim.paper}/{claim.id}", claim)
    return list(firsts.values())


def count(claims: Iterable[Claim]) -> dict[str, int]:
    """How many facts have each verdict, in the order of the verdicts."""
    counts = Counter(claim.verdict for claim in facts(claims))
    return {verdict: counts[verdict] for verdict in VERDICTS}
