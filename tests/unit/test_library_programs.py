"""A model of the library through the programs, and how the config's `backend` reaches them."""

import json
import os
import shlex
import subprocess
import sys
from types import SimpleNamespace

import pytest
from tests.unit.family_models import write_family
from tests.unit.test_library_families import records_of

from crossalign.catalog.addresses import Adapted, Adjustment, Base, Mlm, Tuned
from crossalign.catalog.commands import adjustment_options, finetune_options
from crossalign.catalog.config import load
from crossalign.catalog.params import embed_model
from crossalign.runtime.errors import UserError


@pytest.mark.slow
@pytest.mark.parametrize(("family", "backend"), [("gemma3_text", "auto"), ("bert", "library")])
def test_a_model_is_tuned_and_scored_from_the_command_line(root, tmp_path, family, backend):
    def program(name, *options):
        command = [sys.executable, root / "scripts" / name, *options, "--device", "cpu"]
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr
        # The library's warnings and bars are not for logs.
        assert "transformers" not in done.stderr and "%|" not in done.stderr, done.stderr

    base, data, out = write_family(family, tmp_path / "base"), tmp_path / "data.jsonl", tmp_path / "out"
    data.write_text("".join(json.dumps(record) + "\n" for record in 5 * records_of("ner")), encoding="utf-8")
    program(
        "finetune.py", "--model", base, "--task", "ner", "--train", data, "--dev", data, "--epochs", 3, "--batch", 6,
        "--learning-rate", 3e-3, "--backend", backend, "--init", "random-2", "--out", out,
    )  # fmt: skip
    report = json.loads((out / "training.json").read_text())
    assert report["backend"] == "library"
    sets = ["--sets", f"ner/toy/test={data}", "--out", tmp_path / "scores.json"]
    program("evaluate.py", "--base", base, "--tuned", out / "model", *sets)
    scores = json.loads((tmp_path / "scores.json").read_text())
    assert scores["ner/toy/test"]["F1"] == pytest.approx(report["dev"][report["best_epoch"] - 1]["F1"], abs=1e-3)


def options_of(config, base):
    """What the programs are told of a model and of what is made from it."""
    files = SimpleNamespace(model=["base/config.json"], get=lambda name: None)
    adjusted, further = Adapted(base, Adjustment("hi", "30k", "avg", "all"), 1), Adapted(base, Mlm("wo"), 1)
    for run in (Base(base), adjusted, further):
        yield embed_model(config, run, files)
        yield finetune_options(config, Tuned(run.name, "ner", "wikiann_en", "ref", 2))
    yield adjustment_options(config, adjusted)


def test_the_backend_of_the_config_or_of_a_single_model_reaches_the_programs(root, tmp_path):
    """Whatever is made from a model is computed as the model is."""
    config = load([root / "config.yaml"])
    config |= {"backend": "own", "backends": {"mbert": "library", "xlmr-base": "auto"}}
    for base, flag in (("mbert", "--backend library"), ("xlmr-base", ""), ("bert-base", "--backend own")):
        for options in options_of(config, base):
            assert (flag in options) and ("--backend" in shlex.split(options)) == bool(flag)
    mine = tmp_path / "mine.yaml"
    mine.write_text("backends: {mbert: library, mbrt: library}\n")
    with pytest.raises(UserError, match=r"backends\.mbrt: no model of that name is registered, pretrained or studied"):
        load([root / "config.yaml", mine])
