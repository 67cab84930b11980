"""A model of the library through the programs, and how the config's `backend` reaches them."""

import json
import os
import subprocess
import sys

import pytest
from tests.unit.family_models import write_family
from tests.unit.test_library_families import records_of

from crossalign.catalog.addresses import Adapted, Adjustment, Base, Mlm, Tuned
from crossalign.catalog.config import load
from crossalign.catalog.sheets import Sheets
from crossalign.catalog.trainings import adjustment_settings, finetune_settings
from crossalign.papers.all_items import catalog_of
from crossalign.runtime.errors import UserError


@pytest.mark.slow
def test_a_model_is_tuned_and_scored_from_the_command_line(root, tmp_path):
    def program(name, *options):
        command = [sys.executable, root / "scripts" / name, *options, "--device", "cpu"]
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr
        # The library's warnings and bars are not for logs.
        assert "transformers" not in done.stderr and "%|" not in done.stderr, done.stderr

    base, data, out = write_family("bert", tmp_path / "base"), tmp_path / "data.jsonl", tmp_path / "out"
    data.write_text("".join(json.dumps(record) + "\n" for record in 5 * records_of("ner")), encoding="utf-8")
    program(
        "finetune.py", "--model", base, "--task", "ner", "--train", data, "--dev", data,
        "--settings", '{"epochs": 3, "batch": 6, "learning_rate": 3e-3}',
        "--backend", "library", "--init", "random-2", "--out", out,
    )  # fmt: skip
    report = json.loads((out / "training.json").read_text())
    assert report["backend"] == "library"
    sets = ["--sets", f"ner/toy/test={data}", "--out", tmp_path / "scores.json"]
    program("evaluate.py", "--base", base, "--tuned", out / "model", *sets)
    scores = json.loads((tmp_path / "scores.json").read_text())
    assert scores["ner/toy/test"]["F1"] == pytest.approx(report["dev"][report["best_epoch"] - 1]["F1"], abs=1e-3)


def settings_of(config, base):
    """What the programs are told of a model and of what is made from it."""
    adjusted, further = Adapted(base, Adjustment("hi", "30k", "avg", "all"), 1), Adapted(base, Mlm("wo"), 1)
    for run in (Base(base), adjusted, further):
        yield finetune_settings(config, Tuned(run.name, "ner", "wikiann_en", "ref", 2))
    yield adjustment_settings(config, adjusted)


def test_the_backend_of_the_config_or_of_a_single_model_reaches_the_programs(root, tmp_path):
    """Whatever is made from a model is computed as the model is."""
    config = load([root / "config.yaml"])
    config |= {"backend": "own", "backends": {"mbert": "library", "xlmr-base": "auto"}}
    for base, backend in (("mbert", "library"), ("xlmr-base", None), ("bert-base", "own")):
        assert {told.get("backend") for told in settings_of(config, base)} == {backend}
    vectors = {
        address: row for address, row in Sheets(catalog_of(config)).rows.items() if row.get("sheet") == "vectors"
    }
    assert vectors["embeddings/models/mbert/pud"]["settings"]["backend"] == "library"
    assert "backend" not in vectors["embeddings/tuned/mbert/pos-en_ewt/ref/seed1/pud"]["settings"]
    mine = tmp_path / "mine.yaml"
    mine.write_text("backends: {mbert: library, mbrt: library}\n")
    with pytest.raises(UserError, match=r"backends\.mbrt: no model of that name is registered, pretrained or studied"):
        load([root / "config.yaml", mine])
