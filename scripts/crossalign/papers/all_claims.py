"""The claims of all papers, and their verdicts in a run."""

from pathlib import Path

from crossalign.papers.adjust import claims as adjust
from crossalign.papers.align_predict import claims as align_predict
from crossalign.papers.all_items import PAPERS, catalog_of
from crossalign.papers.anc import claims as anc
from crossalign.papers.talk import claims as talk
from crossalign.results.claims.claim import Claim, Judged, judge_all
from crossalign.results.claims.evidence import Evidence

CLAIMS: dict[str, dict[str, Claim]] = {module.PAPER: module.CLAIMS for module in (align_predict, anc, adjust, talk)}


def evidence_of(config: dict, folder: str | Path) -> Evidence:
    """What a run has made; its catalog also has the items that the config does not choose."""
    return Evidence(config, folder, catalog_of(config | {"papers": list(PAPERS), "items": "all"}))


def judge_run(config: dict, folder: str | Path) -> list[Judged]:
    """A verdict on every claim."""
    return judge_all(CLAIMS, evidence_of(config, folder))
