"""Running the workflow in tests: copies with a tiny demo world, Snakemake in a folder, what it did or would do."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from subprocess import CompletedProcess

import yaml

from crossalign.catalog.config import load
from crossalign.catalog.runs import Catalog
from crossalign.catalog.sheets import Sheets
from crossalign.papers.all_items import catalog_of
from crossalign.plan import dag
from crossalign.plan.jobs import Graph
from demo_world.settings import load_settings
from tests.unit.world_for_tests import SETTINGS, small_override

# What a copy of the workflow is made of.
PARTS = ("Snakefile", "config.yaml", "config", "rules", "scripts", "demo_world", "tools", "resources", "envs")
PARTS += ("profiles", "docs")
TARGETS = ("all", "align_predict", "anc", "adjust", "talk", "data", "download")


def copy_project(root: Path, folder: Path, **world) -> None:
    """Copy the workflow into a new folder; its demo world is tiny, and `world` are settings that differ from that."""
    folder.mkdir(parents=True)
    for name in PARTS:
        source = root / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, folder / name)
    shrink_world(folder, **world)


def shrink_world(folder: Path, **world) -> None:
    """Make the demo world of a copy tiny."""
    settings = yaml.safe_dump(load_settings(SETTINGS, small_override() | world), allow_unicode=True, sort_keys=False)
    (folder / "resources" / "demo" / "world.yaml").write_text(settings, encoding="utf-8")


def snakemake(root: Path, folder: Path, *arguments: str, config: dict | None = None) -> CompletedProcess:
    """Run the workflow of `root` with `folder` as working folder; `config` is merged over the other config files."""
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(root / "Snakefile")]
    command += ["--directory", str(folder)]
    if config is not None:
        file = folder / "config.test.json"
        file.write_text(json.dumps(config), encoding="utf-8")
        command += ["--configfile", str(file)]
    # Programs of the rules must be this Python's, and caches of the user's must not matter.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "XDG_CACHE_HOME": str(folder / "cache")}
    return subprocess.run([*command, *arguments], capture_output=True, text=True, env=environment, cwd=root)


def run_project(
    folder: Path, small: dict, targets: list[str], *arguments: str, changes: dict | None = None
) -> CompletedProcess:
    """Make the targets of a copy with the config `small` and then `changes` merged over the demo's."""
    (folder / "config.small.json").write_text(json.dumps(small), encoding="utf-8")
    (folder / "config.changes.json").write_text(json.dumps(changes or {}), encoding="utf-8")
    files = [folder / name for name in ("config/demo.yaml", "config.small.json", "config.changes.json")]
    settings = ["--cores", "2", "--scheduler", "greedy", "--quiet", "rules", "--show-failed-logs"]
    return snakemake(folder, folder, *settings, *arguments, "--configfile", *map(str, files), "--", *targets)


def planned(done: CompletedProcess) -> dict[str, int]:
    """Jobs by rule, from the table that a dry run prints; the targets themselves are left out."""
    assert done.returncode == 0, done.stdout + done.stderr
    table = re.findall(r"^(\w+)\s+(\d+)\s*$", done.stdout + done.stderr, flags=re.MULTILINE)
    return {rule: int(count) for rule, count in table if rule not in (*TARGETS, "total")}


def graph_of(folder: Path, *files: Path, changes: dict | None = None) -> tuple[Catalog, Graph]:
    """The catalog of some config files and the jobs behind its target `all`; it takes seconds, so tests share it."""
    last = folder / "changes.json"
    last.write_text(json.dumps(changes or {}), encoding="utf-8")
    catalog = catalog_of(load([*files, last]))
    return catalog, dag.planned([*files, last], Sheets(catalog).target("all"), folder)
