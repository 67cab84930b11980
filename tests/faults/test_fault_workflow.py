"""What the workflow does about a second Snakemake, odd clocks, results edited by hand and read-only folders."""

import gzip
import json
import os
import re
import time
from subprocess import CompletedProcess

import pytest
from tests.faults.conftest import read_only
from tests.faults.harness import Run, content, differing, forget
from tests.workflow import planned

from crossalign.catalog.addresses import Tuned
from crossalign.catalog.sets import DataSet
from crossalign.papers.adjust.arms import marks
from crossalign.results.reading import Results
from crossalign.runtime.errors import UserError
from crossalign.tasks.predictions import write_predictions

pytestmark = pytest.mark.skipif("CROSSALIGN_SLOW" not in os.environ, reason="takes minutes; set CROSSALIGN_SLOW=1")

DAY = 86400
NER = "results/demo/tuned/mbert/ner-wikiann_en/ref/seed1"
PRINTED = "resources/papers/align-predict/table8.csv"


def run(folder, *arguments, targets=None):
    """Run to the end; the exit status and what was said."""
    made = Run(folder, *arguments, warm=False, **({"targets": targets} if targets is not None else {}))
    return made.end(), made.said()


def would_run(folder, *arguments):
    status, said = run(folder, "--dry-run", "--quiet", "rules", *arguments)
    return planned(CompletedProcess([], status, said, ""))


def set_clock(folder, seconds):
    """All files as if the clock had been so far ahead, or behind, when they were written."""
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            found = path.stat()
            os.utime(path, (found.st_atime + seconds, found.st_mtime + seconds))


# ---- clocks --------------------------------------------------------------------------------------------------------


def test_a_clock_that_jumps_runs_nothing_again(copy):
    """Where times say that an input is newer, Snakemake compares checksums, but of files up to 1 MB only."""
    for seconds in (DAY, -3 * DAY):
        set_clock(copy / "results" / "demo" / "data", seconds)
        set_clock(copy / "resources" / "papers", seconds)
        assert would_run(copy) == {}, seconds
    weights = copy / "resources/demo/models/mbert/model.safetensors"
    assert weights.stat().st_size > 1_000_000
    set_clock(weights.parent, -3 * DAY)
    assert would_run(copy) == {}
    # Larger files count as changed: work that was not needed, and the same results.
    set_clock(weights.parent, 6 * DAY)
    assert would_run(copy)["finetune"] == 1


def test_what_a_wrong_clock_hides_and_what_not(copy):
    # The whole run as if made on a machine whose clock is a day ahead, then an input that is edited now.
    set_clock(copy / "results", DAY)
    file = copy / PRINTED
    file.write_text(file.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    # Snakemake's documented limit: an input that is older than its outputs counts as known.
    assert would_run(copy) == {}
    assert would_run(copy, "--forcerun", "make_table") == {"make_table": 1, "make_verdicts": 1}
    # With the right time it is seen, however far away.
    os.utime(file, (time.time() + 2 * DAY,) * 2)
    assert would_run(copy) == {"make_table": 1, "make_verdicts": 1}
    # Settings and code are compared, not their times.
    settings = copy / "config.small.json"
    chosen = json.loads(settings.read_text(encoding="utf-8"))
    settings.write_text(json.dumps(chosen | {"finetune": {"ner": {"epochs": 2}}}), encoding="utf-8")
    assert would_run(copy)["finetune"] == 1


# ---- edited by hand ------------------------------------------------------------------------------------------------


def test_edited_scores_are_refused_by_name_and_made_again_when_deleted(project, copy):
    """Snakemake does not make a result again because it was edited, but it makes again what is made of it."""
    scores = copy / NER / "scores.json"
    edited = json.loads(scores.read_text(encoding="utf-8"))
    edited["ner/wikiann_ru/test"]["F1"] = "good"
    scores.write_text(json.dumps(edited), encoding="utf-8")
    assert would_run(copy) == {"make_table": 1, "make_figure": 1, "make_verdicts": 1}
    status, said = run(copy)
    assert status == 1
    assert f"{NER}/scores.json: ner/wikiann_ru/test, F1: 'good' is no finite number" in said
    scores.unlink()
    status, said = run(copy)
    assert status == 0, said
    assert differing(content(copy), content(project)) == []


def test_edited_predictions_are_not_an_input_and_give_no_mark(copy, tmp_path):
    """Tables are made again for new scores; predictions, which come with the scores, only give their stars."""
    file = copy / NER / "predictions.jsonl.gz"
    lines = gzip.decompress(file.read_bytes()).splitlines(keepends=True)
    file.write_bytes(gzip.compress(b"".join(lines[:-1])))
    assert would_run(copy) == {}
    runs = [Tuned(model, "adjust-nli", "multinli_en", "ref", 1) for model in ("mbert", "mbert+adjust-hi-20-avg-all")]
    rows = [{"id": str(number), "label": number % 2, "right": number % 3 == 0} for number in range(20)]
    data = DataSet("nli", "xnli_hi", "test")
    for one, kept in zip(runs, (rows, rows[:7] + rows[8:]), strict=True):
        write_predictions(tmp_path / one.path() / "predictions.jsonl.gz", "nli", "ab", {"nli/xnli_hi/test": kept})
    mark = marks(Results(tmp_path), runs[:1], runs[1:], data, "accuracy")
    assert mark.differs is None
    assert mark.reason == "the predictions are of different examples; evaluate the models again"
    cut = tmp_path / runs[0].path() / "predictions.jsonl.gz"
    cut.write_bytes(cut.read_bytes()[:-20])
    with pytest.raises(UserError, match="predictions.jsonl.gz: no file of predictions .* evaluate the model again"):
        marks(Results(tmp_path), runs[:1], runs[1:], data, "accuracy")


# ---- read-only -----------------------------------------------------------------------------------------------------


def test_a_read_only_results_folder_is_named(project, copy):
    forget(copy)
    before = content(copy)
    with read_only(copy / "results" / "demo"):
        status, said = run(copy)
    assert status == 1
    assert re.search("results/demo/config.json: cannot write: (Read-only file system|Permission denied)", said), said
    assert "Traceback" not in said
    assert differing(content(copy), before) == []
    assert would_run(copy)["make_table"] == 1
