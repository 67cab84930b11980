"""What runs again after a change where models are trained, done for real in a tiny demo: nothing else moves."""

import os
import re
import shutil
from pathlib import Path

import pytest
from tests.faults.harness import ACCOUNTS, SMALL, WIKIANN, content, differing
from tests.reruns import cases, edit, project, run, would_run
from tests.workflow import planned, shrink_world

pytestmark = pytest.mark.skipif("CROSSALIGN_SLOW" not in os.environ, reason="takes minutes; set CROSSALIGN_SLOW=1")

COMPARED = {"embed_sentences": 2, "compare_languages": 2}
DRAWN = dict.fromkeys(("make_table", "make_figure", "gather_results", "make_verdicts", "make_report"), 1)
TRAINED = {"finetune": 1, "finetune_random": 1, "evaluate": 2} | COMPARED | DRAWN
CASES = [
    ("code of the training loop", "scripts/crossalign/engine/steps.py", TRAINED),
    ("a hyper-parameter", {"finetune": {"ner": {"epochs": 2}}}, TRAINED),
    ("one more seed", {"seeds": [1, 2]}, TRAINED),
    (
        "one more language",
        {"align-predict": {"languages": ["en", "ru", "de"]}},
        {"prepare_ner": 1, "finetune_random": 1, "evaluate": 2, "embed_sentences": 1, "compare_languages": 1} | DRAWN,
    ),
    (
        "a file's checksum",
        "resources/datasets.tsv",
        {"download_file": 1, "prepare_parallel": 1, "finetune_random": 1, "evaluate": 1} | COMPARED | DRAWN,
    ),
]

# The files of a rule below the results of a run.
MADE_BY = {
    "download_file": r"downloads/(?!models/).+",
    "prepare_(ner|trees|parallel)": r"data/.+",
    "finetune|finetune_random": r"tuned/.+/(training\.json|model/.+)",
    "evaluate": r"tuned/.+/(scores\.json|predictions\.jsonl\.gz)",
    "compare_languages": r"similarity/.+",
    "gather_results": r"(scores|similarity)\.(csv|parquet)",
    "make_table": r"tables/.+",
    "make_figure": r"figures/.+",
    "make_verdicts": r"(verdicts|claims)\..+",
    "make_report": r"report/.+",
}
GATHERED = ("scores.csv", "scores.parquet", "similarity.csv", "similarity.parquet")
# What a change makes different, of all that is made again; the page and its provenance tell of times and checksums.
DIFFERENT = {
    "code of the training loop": {"tuned"},  # the code's own hash, and nothing else: see the test
    "a file's checksum": set(),
    "a hyper-parameter": {"tuned", "similarity", "tables", "figures", "verdicts.csv", *GATHERED},
    "one more seed": {"tuned", "similarity", "tables", "figures", "verdicts.csv", *GATHERED},
    "one more language": {"data", "tuned", "tables", "verdicts.csv", *GATHERED[:2]},
}


@pytest.fixture(scope="module")
def finished(root, tmp_path_factory):
    """A project after one complete run: a model as it is and one with random layers, tested and compared."""
    folder = project(root, tmp_path_factory.mktemp("trained") / "project", SMALL, "config.demo.yaml")
    shrink_world(folder, wikiann=WIKIANN)
    done = run(folder, warm=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert would_run(folder) == {}
    return folder


def times(folder: Path) -> dict[str, int]:
    """When each result was written."""
    results = folder / "results" / "demo"
    accounts = (*ACCOUNTS, "config.json")
    files = [path for path in results.rglob("*") if path.is_file()]
    names = {path: path.relative_to(results) for path in files}
    return {str(name): path.stat().st_mtime_ns for path, name in names.items() if name.parts[0] not in accounts}


def makers(file: str) -> str:
    return next((rules for rules, form in MADE_BY.items() if re.fullmatch(form, file)), "nobody")


@pytest.mark.parametrize(("change", "where", "jobs"), cases(CASES))
def test_only_what_depends_on_a_change_is_made_again(finished, tmp_path, change, where, jobs):
    folder = tmp_path / "project"
    # As a user would move it: with the times of the files.
    shutil.copytree(finished, folder)
    before, moments = content(folder), times(folder)
    changes = where if isinstance(where, dict) else None
    if changes is None:
        edit(folder / where, change)
    done = run(folder, changes=changes, warm=True)
    assert planned(done) == jobs
    after = times(folder)
    written = {file for file in after if after[file] != moments.get(file)}
    assert {rule for rule in jobs if not any(re.fullmatch(makers(file), rule) for file in written)} <= {
        "embed_sentences"  # its vectors are gone again
    }
    assert [file for file in written if not any(re.fullmatch(makers(file), rule) for rule in jobs)] == []
    page = ("report", "config.json")
    different = {name for name in differing(content(folder), before) if name.split("/")[0] not in page}
    assert {name.split("/")[0] for name in different} == DIFFERENT[change]
    if change == "code of the training loop":
        assert {Path(name).name for name in different} == {"training.json", "config.json"}
    if change == "one more seed":
        assert not any("/seed1/" in name for name in written)
    assert would_run(folder, changes=changes) == {}
