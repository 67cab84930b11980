"""The claims read the files that our renderers write: of a finished run none is told as not run."""

import csv
import json

import pytest
from tests.unit.made_results import load, make_results
from tests.unit.paper_results import write_model

from crossalign.papers import make
from crossalign.papers.all_claims import judge_all
from crossalign.papers.all_items import catalog_of
from crossalign.papers.common.context import Context
from crossalign.papers.common.figure import write_figure
from crossalign.papers.common.table import write_csv
from crossalign.results.claims.claim import NOT_RUN, UNCHECKED
from crossalign.results.claims.evidence import Evidence
from crossalign.results.reading import Results


def render(config, folder):
    """The tidy files of all items, without their pictures."""
    context = Context(config, Results(folder))
    for item in catalog_of(context.config).items:
        if "/table" in item:
            write_csv(make(item, context), folder / f"tables/{item}.csv")
        else:
            write_figure(make(item, context), {"csv": folder / f"figures/{item}.csv"})


@pytest.fixture(scope="module")
def finished(root, tmp_path_factory):
    """A finished demo run with made-up numbers and two seeds: other corpus sizes than the papers'."""
    folder = tmp_path_factory.mktemp("finished")
    config = load(root, "config.yaml", "config.demo.yaml", models=str(folder / "models"), talk={"scope": "full"})
    write_model(folder / "models/mbert", 178)
    make_results(folder, config)
    for path in folder.glob("distances/**/*.json"):
        summary = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(json.dumps(summary | {"top10": 0.1, "top100": 0.3}), encoding="utf-8")
    render(config, folder)
    return config, folder


def test_every_claim_finds_its_numbers(finished):
    found = {(claim.paper, claim.id): claim for claim in judge_all(Evidence(*finished))}
    # Sizes of data sets are counted when these are prepared, which this made-up run has not done.
    missing = {key: claim.detail for key, claim in found.items() if claim.verdict == NOT_RUN}
    assert all(" lacks data/" in detail for detail in missing.values()), missing
    assert len(missing) <= 13
    for claim in found.values():
        if claim.kind in ("qualitative", "both"):
            assert claim.measured
            assert claim.verdict not in (NOT_RUN, UNCHECKED) or claim.detail.startswith("not learnt: "), claim


def test_printed_sizes_that_were_not_run_are_not_missing(finished):
    claim = next(claim for claim in judge_all(Evidence(*finished)) if claim.id == "qa-peak-size")
    with (finished[1] / "tables/adjust/table5.csv").open(encoding="utf-8", newline="") as stream:
        outside = [row for row in csv.DictReader(stream) if row["reason"] == "not part of this configuration"]
    assert {row["variant"] for row in outside} == {"size=5K", "size=10K", "size=30K", "size=100K", "size=250K"}
    assert {name: set(found) for name, found in claim.numbers.items()} == dict.fromkeys(
        ("best", "falls"), {"XQuAD", "TyDi QA"}
    )
    assert claim.numbers["best"]["XQuAD"]["value"] in (250, 500, 1000, 2000, 3000)
