"""The rehearsal in miniature, from stand-ins to the page: two items of each paper, tiny shapes."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from tests.workflow import snakemake

from crossalign.results.verdict import JUDGED

ITEMS = [f"align-predict/{item}" for item in ("table4", "figure4")] + ["anc/table1", "anc/figure6", "adjust/table1"]
ITEMS += ["adjust/figure1", "talk/table4", "talk/figure3"]
MINI = {
    "items": ITEMS,
    "rehearsal": {"steps": 3, "max_parameters": 600_000_000},
    "align-predict": {"languages": ["en", "ru"], "extra_targets": [], "sources": ["en"], "test_treebanks": {}}
    | {"similarity_languages": ["ru"]},
    "anc": {"xnli_languages": ["en", "fr"], "scaling_languages": ["fr"]},
    "adjust": {"tasks": ["ner"], "languages": ["hi", "ru"], "translated": ["hi"]},
}


@pytest.fixture(scope="module")
def run(root, tmp_path_factory) -> Path:
    """The folder of the rehearsal's results."""
    folder = tmp_path_factory.mktemp("rehearsal")
    (folder / "mini.yaml").write_text(yaml.safe_dump(MINI), encoding="utf-8")
    configs = [str(root / "config/rehearsal.yaml"), str(folder / "mini.yaml")]
    results = folder / "results" / "rehearsal"
    program = [sys.executable, str(root / "tools/make_rehearsal.py"), *configs, "--tiny", "--jobs", "1"]
    made = subprocess.run([*program, "--out", str(results / "mirror")], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    settings = ["--cores", "2", "--scheduler", "greedy", "--quiet", "rules", "--show-failed-logs", "--configfile"]
    configs.append(str(results / "mirror.yaml"))
    # As the Makefile does: one job of each kind, then the rest.
    asked = [sys.executable, str(root / "scripts" / "plan.py"), *configs, "--kinds"]
    kinds = subprocess.run(asked, cwd=folder, capture_output=True, text=True, check=True).stdout.split()
    assert len(kinds) > 10
    for targets in (kinds, ["all"]):
        done = snakemake(root, folder, *settings, *configs, "--", *targets)
        assert done.returncode == 0, done.stdout + done.stderr
        assert all((folder / target).exists() for target in kinds)
    return results


def rows(file):
    with file.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_the_page_says_what_it_is_and_judges_nothing(run):
    page = (run / "report" / "index.html").read_text(encoding="utf-8")
    assert "<strong>Rehearsal.</strong>" in page
    assert "xlmr-xl, xlmr-xxl, xglm-1.7b, xglm-2.9b, xglm-4.5b, xglm-7.5b left out" in page
    for item in ITEMS:
        assert f'id="{item.replace("/", "-")}"' in page
    assert {row["finding_verdict"] for row in rows(run / "findings.csv")} == {"not run"}
    assert not {row["verdict"] for row in rows(run / "verdicts.csv")} & set(JUDGED)


def test_trainings_are_cut_and_say_what_is_left(run):
    notes = {file.parent: json.loads(file.read_text()) for file in run.rglob("training.json")}
    kinds = {folder.relative_to(run).parts[1].partition("-")[0] for folder in notes}
    assert {"mbert", "bilstm", "mono"} <= kinds, kinds
    assert any("adjust" in str(folder) for folder in notes) and any("+mlm" in str(folder) for folder in notes)
    cut = {folder: note["rehearsal"] for folder, note in notes.items() if "rehearsal" in note}
    assert len(cut) > len(notes) / 2
    for note in cut.values():
        assert note["steps_left"] == note["planned_steps"] - 6 > 0
        assert note["step_seconds"] > 0


def test_the_real_run_is_foreseen_by_rule(run, root):
    page = (run / "report" / "index.html").read_text(encoding="utf-8")
    table = page[page.index("Rehearsal.</strong>") :].partition("</table>")[0]
    for rule in ("finetune", "pretrain", "adapt_to_text", "embed_sentences", "align_bitext"):
        assert f'<th scope="row">{rule}</th>' in table
    assert "The real run takes about" in page
    assert json.loads((run / "disk.json").read_text())["most"] > 0
    assert "rehearsal" not in plan(root, run)  # a tiny one does not count unless it is asked for
    assert "r: the rehearsal, its trainings extrapolated" in plan(root, run, "--rehearsal", "results/rehearsal")


def plan(root, run, *options):
    program = [sys.executable, str(root / "scripts" / "plan.py"), "--targets", "align-predict/table4", *options]
    done = subprocess.run(program, cwd=run.parents[1], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return " ".join(done.stdout.split())
