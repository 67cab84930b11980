"""The recipes of docs/extend/claim.md, run as they stand in a copy of the repository."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest
from tests.unit.paper_results import paper_config, read, write_paper

from crossalign.results.claims.claim import HOLDS


def recipe(root, name):
    """The shell commands of a recipe, in their order."""
    text = (root / "docs/extend/claim.md").read_text(encoding="utf-8")
    blocks = re.findall(rf"<!-- recipe: {name} -->\n```bash\n(.*?)```", text, re.DOTALL)
    assert blocks, f"docs/extend/claim.md has no recipe '{name}'"
    return "".join(blocks)


@pytest.fixture
def copy(root, tmp_path):
    """The parts of the repository that judge, and a finished run with the papers' numbers."""
    for name in ("scripts", "resources/papers", "resources/schemas"):
        shutil.copytree(root / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for path in (root / "config.yaml", *(root / "resources").glob("*.tsv")):
        shutil.copy(path, tmp_path / path.relative_to(root))
    folder = tmp_path / "results/demo"
    config = paper_config(root, folder)
    write_paper(folder, config)
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    # The commands say `python`.
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python").symlink_to(sys.executable)
    return tmp_path


def follow(folder, commands):
    environment = os.environ | {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "PYTHONDONTWRITEBYTECODE": "1"}
    # The interpreter finds its packages by its own path, not by the link's.
    environment |= {"PYTHONPATH": os.pathsep.join(path for path in sys.path if "site-packages" in path)}
    done = subprocess.run(["bash", "-euc", commands], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def verdict(folder, name):
    return next(row for row in read(folder / "results/demo/claims.csv") if row["id"] == name)


def test_adding_a_claim(root, copy):
    told = follow(copy, recipe(root, "add"))
    found = verdict(copy, "parse-more-than-pos")
    assert found["verdict"] == HOLDS and found["kind"] == "both"
    assert found["measured"] == "elsewhere, re-initialising layers 1-2 costs parsing 15.77 points and POS 8.94"
    assert "parse-more-than-pos,align-predict,align-predict/table1," in told
    assert "claims holds: 150\n" in told
