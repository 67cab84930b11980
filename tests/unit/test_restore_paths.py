"""The addresses in a file of scores become folders; those of a file that somebody sends must not lead elsewhere."""

import subprocess
import sys

import pandas as pd
import pytest


@pytest.mark.parametrize("address", ["../../../escaped", "{tmp}/escaped", "tuned/../escaped", ""])
def test_what_is_no_address_is_refused_before_anything_is_written(root, tmp_path, address):
    address = address.format(tmp=tmp_path)
    good = {"address": "tuned/small/pos-en_ewt/ref/seed1", "set": "trees/en_ewt/test", "metric": "accuracy"}
    numbers = {"value": 90.0, "low": None, "high": None, "n": 10}
    (tmp_path / "published").mkdir()
    file = tmp_path / "published" / "scores.parquet"
    pd.DataFrame([good | numbers, good | numbers | {"address": address}]).to_parquet(file)
    out = tmp_path / "a" / "b" / "c" / "out"
    command = [sys.executable, "tools/restore_run.py", tmp_path / "published", "--configs", "config/study.yaml"]
    done = subprocess.run([*command, "--out", out], cwd=root, capture_output=True, text=True)
    assert (done.returncode, done.stderr.partition(";")[0]) == (1, f"error: {file}: '{address}' is no run address")
    assert sorted(tmp_path.rglob("*")) == [tmp_path / "published", file]
