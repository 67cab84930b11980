"""The findings of all papers, and their verdicts in a run."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pandas as pd

from crossalign.catalog.stand_in import REHEARSAL
from crossalign.papers import PAPERS
from crossalign.papers.all_items import catalog_of
from crossalign.results.findings.files import with_reasons
from crossalign.results.findings.finding import FINDINGS, FRAMES, Finding
from crossalign.results.findings.judge import Judged, judge_all, not_run
from crossalign.runtime.errors import UserError


@cache
def findings() -> list[Finding]:
    """Every finding, paper by paper, in the order of their files."""
    for paper in PAPERS:
        _module(paper)
    return [one for paper in PAPERS for one in FINDINGS.values() if one.paper == paper]


def _module(paper: str):
    name = f"crossalign.papers.{paper.replace('-', '_')}.findings"
    return import_module(name) if find_spec(name) else None


@cache
def printed(paper: str) -> Mapping[str, pd.DataFrame]:
    """The numbers that a paper prints, as frames such as its findings read; empty ones where it prints none."""
    return _module(paper).printed()


def judge_run(config: dict, frames: Mapping[str, pd.DataFrame]) -> list[Judged]:
    """A verdict on every finding of the papers of a run; `frames` are its scores, similarity and distances."""
    chosen = [one for one in findings() if one.paper in config["papers"]]
    catalog = catalog_of(config | {"papers": list(PAPERS), "items": "all"})
    if config.get("rehearsal"):
        return [not_run(one, REHEARSAL.reason) for one in chosen]
    judged = judge_all(chosen, frames, config, printed, catalog.left_out)
    return with_reasons(judged, config.get("reasons") or {})


def read_frames(folder: Path) -> dict[str, pd.DataFrame]:
    """The frames that gather_results.py wrote."""
    try:
        return {name: pd.read_parquet(folder / f"{name}.parquet") for name in FRAMES}
    except (OSError, ValueError) as error:
        raise UserError(f"{folder}: {error}; scripts/gather_results.py writes the frames") from None
