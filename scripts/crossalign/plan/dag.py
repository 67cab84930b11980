"""The jobs behind some files, as Snakemake finds them. Nothing that the page is made with imports this."""

import tempfile
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from crossalign.catalog.config import load
from crossalign.catalog.layers import ROOT
from crossalign.catalog.sheets import Sheets
from crossalign.papers.all_items import catalog_of
from crossalign.plan.jobs import Graph, Job
from crossalign.plan.outlook import REAL, chosen
from crossalign.runtime.files import write_json
from crossalign.runtime.workarounds import jobs_of


def planned(configs: Iterable[Path], targets: Iterable[str], folder: Path) -> Graph:
    """The jobs behind some files in a working folder."""
    wanted = list(dict.fromkeys(targets))
    return Graph([Job(**job) for job in jobs_of(ROOT / "Snakefile", configs, wanted, folder)] if wanted else [], wanted)


def write_real_run(config: dict, results: Path) -> None:
    """Plan config.yaml, as far as a rehearsal has its items, where nothing is done: for the rehearsal's page."""
    with tempfile.TemporaryDirectory() as folder:
        write_json(file := Path(folder) / "chosen.json", chosen(config))
        graph = planned([file], Sheets(catalog_of(load([file]))).target("all"), Path(folder))
    write_json(results / REAL, {name: asdict(job) for name, job in graph.jobs.items()})
