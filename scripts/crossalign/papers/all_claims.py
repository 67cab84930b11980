"""The claims of all papers, and their verdicts in a run."""

from pathlib import Path

from crossalign.papers import declared
from crossalign.papers.all_items import PAPERS, catalog_of
from crossalign.results.claims.claim import Claim, Judged, judge_all
from crossalign.results.claims.evidence import Evidence

CLAIMS: dict[str, dict[str, Claim]] = {paper: claims for paper in PAPERS if (claims := declared(paper, "claims"))}


def evidence_of(config: dict, folder: str | Path) -> Evidence:
    """What a run has made; its catalog also has the items that the config does not choose."""
    return Evidence(config, folder, catalog_of(config | {"papers": list(PAPERS), "items": "all"}))


def judge_run(config: dict, folder: str | Path) -> list[Judged]:
    """A verdict on every claim."""
    return judge_all(CLAIMS, evidence_of(config, folder))
