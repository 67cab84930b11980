"""The two ways to install, pip and conda, give the same versions."""

import re

import pytest
import yaml

# conda-forge's name -> the name on the Python index
RENAMED = {"pytorch": "torch", "huggingface_hub": "huggingface-hub"}


def pinned(root):
    lines = (root / "requirements.txt").read_text(encoding="utf-8").splitlines()
    pairs = [line.split("==") for line in lines if line and not line.startswith("#")]
    assert all(len(pair) == 2 for pair in pairs), "every line is name==version"
    return {name.lower(): version for name, version in pairs}


def conda_versions(root, name):
    found = {}
    for entry in yaml.safe_load((root / "envs" / name).read_text(encoding="utf-8"))["dependencies"]:
        for line in entry["pip"] if isinstance(entry, dict) else [entry]:
            package, _, version = re.sub("==", "=", line).partition("=")
            if package not in ("python", "pip"):
                found[RENAMED.get(package, package).lower()] = version
    return found


@pytest.mark.parametrize("name", ["data.yaml", "torch.yaml"])
def test_conda_versions_equal_the_pinned_ones(root, name):
    versions = conda_versions(root, name)
    assert versions == {package: pinned(root).get(package) for package in versions}


def test_everything_pinned_is_in_an_environment(root):
    in_conda = {package for file in (root / "envs").glob("*.yaml") for package in conda_versions(root, file.name)}
    # Snakemake itself runs outside the environments of its rules.
    assert set(pinned(root)) - in_conda == {"snakemake", "snakemake-executor-plugin-slurm"}


def test_every_environment_of_a_rule_exists(root):
    named = {
        name for file in (root / "rules").glob("*.smk") for name in re.findall(r"\.\./envs/(\S+?)\"", file.read_text())
    }
    assert named
    assert all((root / "envs" / name).is_file() for name in named)


def test_tables_figures_and_verdicts_have_what_they_draw_and_judge_with(root):
    """Correlations and verdicts take quantiles from scipy; figures are drawn by matplotlib."""
    assert {"matplotlib", "scipy", "numpy"} <= conda_versions(root, "data.yaml").keys()
