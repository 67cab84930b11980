"""The claims of all papers, and their verdicts in a run."""

from collections.abc import Mapping
from pathlib import Path

from crossalign.catalog.papers import papers
from crossalign.papers import declared
from crossalign.papers.all_items import PAPERS, catalog_of
from crossalign.results.claims.claim import Claim, Judged, judge_rows, write_claims
from crossalign.results.claims.claim import declared as with_rows
from crossalign.results.claims.evidence import Evidence
from crossalign.results.verdict import write_verdicts

CLAIMS: dict[str, dict[str, Claim]] = {paper: claims for paper in PAPERS if (claims := declared(paper, "claims"))}


def evidence_of(config: dict, folder: str | Path) -> Evidence:
    """What a run has made; its catalog also has the items that the config does not choose."""
    return Evidence(config, folder, catalog_of(config | {"papers": list(PAPERS), "items": "all"}))


def judge_run(config: dict, folder: str | Path) -> list[Judged]:
    """A verdict on every claim of the papers that the run's page shows."""
    rows = [(paper, *pair) for paper in papers() if paper in CLAIMS for pair in with_rows(paper, CLAIMS[paper])]
    return judge_rows(rows, evidence_of(config, folder))


def write_judged(config: dict, results: Path, numbers: Path, table: Path) -> tuple[Mapping[str, int], list[Judged]]:
    """Judge what a run has made: verdicts on its numbers, counted, and its claims, with .json beside their table."""
    paths = [path for kind in ("tables", "figures") for path in results.glob(f"{kind}/*/*.csv")]
    found = write_verdicts(paths, catalog_of(config).items, numbers)
    judged = judge_run(config, results)
    write_claims(judged, table, table.with_suffix(".json"))
    return found, judged
