"""Disk of models: what is kept, and how large it is."""

import pytest

from crossalign.catalog.addresses import Adapted, Base, Mlm, Tuned
from crossalign.fetch.register import Model
from crossalign.plan.disk import kept, model_disk, readable, tuned_bytes

MBERT = Model("mbert", "", "", None, "", "mlm", 177_262_848, 12, 768, "104", "")
REF = Tuned("mbert", "pos", "en_ewt", "ref", 1)
RANDOM = Tuned("mbert", "pos", "en_ewt", "random-1-2", 1)
TRIAL = Tuned("mbert", "pos", "en_ewt", "grid-16-5e-5", 1)
CONTINUAL = Tuned("mbert+adjust-hi-30k-avg-all", "adjust-nli", "multinli_en", "continual", 1)
BILSTM = Tuned("bilstm", "unseen-parsing", "wo_wtb", "ref", 1)


@pytest.mark.parametrize(
    ("choice", "runs"),
    [
        ("all", [REF, RANDOM, TRIAL, CONTINUAL, BILSTM]),
        ("ref", [REF, CONTINUAL, BILSTM]),
        ("none", [BILSTM]),
    ],
)
def test_what_stays(choice, runs):
    every = [REF, RANDOM, TRIAL, CONTINUAL, BILSTM]
    assert [run for run in every if kept({"keep_models": choice}, run)] == runs


def test_mbert_takes_what_its_layers_and_some_rows_take():
    # 85 million numbers in the layers, 15 million in the rows, four bytes each.
    assert 390e6 < tuned_bytes((12, 768)) < 410e6


def shape(run):
    return 12, 768


def test_disk_by_what_becomes_of_models():
    runs = [REF, RANDOM, TRIAL, Adapted("mbert", Mlm("wo"), 1), Base("mono-wo")]
    config = {"keep_models": "ref", "models": "hub"}
    disk = model_disk(config, runs, {"mbert": MBERT}, shape)
    assert disk["fine-tuned, kept"] == (1, tuned_bytes((12, 768)))
    assert disk["fine-tuned, deleted after their last use"] == (2, 2 * tuned_bytes((12, 768)))
    assert disk["adapted or pretrained"] == (2, 4 * (177_262_848 + 110_000_000))


def test_small_models_of_a_folder_are_small():
    config = {"keep_models": "ref", "models": "resources/demo/models", "bilstm": {"layers": 1, "hidden": 64}}
    disk = model_disk(config, [REF, BILSTM, Adapted("mbert", Mlm("wo"), 1)], {"mbert": MBERT}, lambda run: (12, 64))
    assert disk["fine-tuned, kept"] == (2, tuned_bytes((12, 64)) + tuned_bytes((1, 64)))
    assert disk["adapted or pretrained"][1] < 10e6


def test_sizes_are_readable():
    assert [readable(size) for size in (5, 1_500, 2_340_000, 4e11, 2.5e12)] == [
        "5 B", "1.5 kB", "2.34 MB", "400 GB", "2.5 TB"
    ]  # fmt: skip
