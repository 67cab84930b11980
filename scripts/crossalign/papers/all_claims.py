"""All claims of all papers: judged in the order of their files, written as CSV and JSON."""

import csv
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from pathlib import Path

from crossalign.papers.adjust import claims as adjust
from crossalign.papers.align_predict import claims as align_predict
from crossalign.papers.anc import claims as anc
from crossalign.papers.talk import claims as talk
from crossalign.results.claims.claim import COLUMNS, FAILS, HOLDS, UNCLEAR, VERDICTS, Claim, Judged, judge
from crossalign.results.claims.evidence import Evidence
from crossalign.results.published import PAPERS
from crossalign.runtime.errors import UserError
from crossalign.runtime.files import write_atomic, write_json

CLAIMS: dict[str, dict[str, Claim]] = {module.PAPER: module.CLAIMS for module in (align_predict, anc, adjust, talk)}
FIELDS = ("id", "statement", "sentence", "where", "quantity", "value", "unit", "note")


def read_claims(path: Path) -> list[dict[str, str]]:
    """The rows of a claims.csv."""
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            rows = list(csv.DictReader(stream))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path}: cannot be read ({error})") from None
    for place, row in enumerate(rows, start=2):
        if any(row.get(name) is None for name in FIELDS):
            raise UserError(f"{path}: line {place}: the columns {', '.join(FIELDS)} are needed; found {row}")
    return rows


def declared(paper: str, folder: Path = PAPERS) -> list[tuple[dict[str, str], Claim]]:
    """The rows of a paper's claims.csv, each with its declaration; neither may lack the other."""
    path = folder / paper / "claims.csv"
    rows = read_claims(path)
    known = CLAIMS[paper]
    names = [row["id"] for row in rows]
    if lacking := [name for name in names if name not in known]:
        raise UserError(
            f"{path}: no predicate and no reason is declared for {', '.join(lacking)}; see docs/verdicts.md"
        )
    if unknown := [name for name in known if name not in names]:
        raise UserError(f"{path}: no row for {', '.join(unknown)}, which the paper's claims.py declares")
    return [(row, known[row["id"]]) for row in rows]


def judge_all(evidence: Evidence, papers: Iterable[str] = tuple(CLAIMS)) -> list[Judged]:
    """A verdict on every claim; claims that state the same fact have the same."""
    controlled = evidence.controlled()
    found = [judge(paper, row, claim, evidence, controlled) for paper in papers for row, claim in declared(paper)]
    return one_verdict(found)


def one_verdict(found: list[Judged]) -> list[Judged]:
    """Give claims that state one fact the worst verdict among them, and say with which others they are one."""
    facts: dict[str, list[Judged]] = {}
    for claim in found:
        facts.setdefault(claim.fact, []).append(claim)
    return [shared(claim, facts[claim.fact]) for claim in found]


def shared(claim: Judged, members: list[Judged]) -> Judged:
    """One claim of a fact with the verdict of all."""
    others = [f"{other.paper}/{other.id}" for other in members if other is not claim]
    if not others:
        return claim
    judged = {member.verdict for member in members}
    worst = next((verdict for verdict in (FAILS, UNCLEAR, HOLDS) if verdict in judged), claim.verdict)
    detail = "; ".join(filter(None, (claim.detail, f"one fact with {', '.join(others)}")))
    return replace(claim, verdict=worst, detail=detail)


def write_claims(judged: Iterable[Judged], table: Path, document: Path) -> None:
    """Write claims.csv and claims.json; the latter also holds the single numbers."""
    judged = list(judged)
    with write_atomic(table) as stream:
        writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(claim.row() for claim in judged)
    write_json(document, [asdict(claim) for claim in judged], ensure_ascii=False, indent=1, allow_nan=False)


def counts(judged: Iterable[Judged]) -> Mapping[str, int]:
    """How many facts have each verdict, in the order of the verdicts: what two claims say alike counts once."""
    found = list({claim.fact: claim.verdict for claim in judged}.values())
    return {verdict: found.count(verdict) for verdict in VERDICTS}
