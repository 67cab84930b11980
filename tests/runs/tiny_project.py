"""A copy of the workflow whose demo world is tiny, and runs of it with a config of a few settings."""

import json
import shutil
from pathlib import Path
from subprocess import CompletedProcess

import yaml
from tests.unit.world_for_tests import SETTINGS, small_override
from tests.workflow import snakemake

from crossalign.world.settings import load_settings

COPIED = ("Snakefile", "rules", "scripts", "tools", "resources", "envs", "config.yaml", "config.demo.yaml", "docs")


def copy_project(root: Path, folder: Path, world: dict | None = None) -> None:
    """Write the copy into a new folder; `world` are settings of the world that differ from the tiny one's."""
    folder.mkdir()
    for name in COPIED:
        source = root / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, folder / name)
    settings = load_settings(SETTINGS, small_override() | (world or {}))
    text = yaml.safe_dump(settings, allow_unicode=True, sort_keys=False)
    (folder / "resources" / "demo" / "world.yaml").write_text(text, encoding="utf-8")


def run_project(
    folder: Path, small: dict, targets: list[str], *arguments: str, changes: dict | None
) -> CompletedProcess:
    """Make the targets with the config `small` and then `changes` merged over the demo's."""
    (folder / "config.small.json").write_text(json.dumps(small), encoding="utf-8")
    (folder / "config.changes.json").write_text(json.dumps(changes or {}), encoding="utf-8")
    files = [folder / name for name in ("config.demo.yaml", "config.small.json", "config.changes.json")]
    settings = ["--cores", "2", "--scheduler", "greedy", "--quiet", "rules", "--show-failed-logs"]
    return snakemake(folder, folder, *settings, *arguments, "--configfile", *map(str, files), "--", *targets, warm=True)
