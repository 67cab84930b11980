"""How long planning takes: a dry run of everything at paper scale, with 50 seeds, and with 50 seeds and 30 languages.

Prints one Markdown row per plan: jobs, seconds by the clock and of the processor, peak memory.
Usage: python benchmarks/plan.py [--plans paper seeds languages]
"""

import argparse
import os
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import yaml

ROOT = Path(__file__).resolve().parent.parent
# Languages that the study of layers does not have, with a treebank that can be planned for; the last is a stand-in.
MORE = {
    "fo": "fo_oft", "pcm": "pcm_nsc", "gsw": "gsw_uzh", "bm": "bm_crb", "wo": "wo_wtb", "qaf": "qaf_arabizi",
    "mt": "mt_mudt", "bxr": "bxr_bdt", "myv": "myv_jr", "olo": "olo_kkpp", "ug": "ug_udt", "vi": "en_lines",
}  # fmt: skip
PLANS = {"paper": "the papers", "seeds": "50 seeds", "languages": "50 seeds, 30 languages"}


class Measured(NamedTuple):
    """What a dry run took."""

    jobs: int
    seconds: float
    processor: float
    megabytes: float


def changes(name: str) -> dict:
    """What a plan changes in config.yaml."""
    paper = yaml.safe_load((ROOT / "config.yaml").read_text(encoding="utf-8"))["align-predict"]
    config: dict = {"run": "plan-benchmark"}
    if name != "paper":
        config["seeds"] = list(range(1, 51))
    if name == "languages":
        languages = [*paper["languages"], *MORE]
        config["align-predict"] = {"languages": languages, "test_treebanks": paper["test_treebanks"] | MORE}
    return config


def plan(name: str) -> Measured:
    """Dry-run a plan in a process of its own, whose memory can be told from that of the others."""
    with tempfile.TemporaryDirectory() as folder:
        config, output = Path(folder) / "changes.yaml", Path(folder) / "output"
        config.write_text(yaml.safe_dump(changes(name)), encoding="utf-8")
        command = [sys.executable, "-m", "snakemake", "--dry-run", "--quiet", "rules", "--cores", "1"]
        command += ["--snakefile", str(ROOT / "Snakefile"), "--directory", folder, "--configfile", str(config)]
        start = time.perf_counter()
        actions = [(os.POSIX_SPAWN_OPEN, 1, str(output), os.O_WRONLY | os.O_CREAT, 0o600), (os.POSIX_SPAWN_DUP2, 1, 2)]
        child = os.posix_spawn(sys.executable, [*command, "--", "all"], os.environ, file_actions=actions)
        _, status, used = os.wait4(child, 0)
        seconds = time.perf_counter() - start
        said = output.read_text(encoding="utf-8")
    if status:
        sys.exit(said)
    jobs = re.search(r"^total\s+(\d+)", said, flags=re.MULTILINE)
    return Measured(int(jobs[1]) if jobs else 0, seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plans", nargs="+", choices=PLANS, default=list(PLANS), help="what to plan")
    print("| plan | jobs | seconds | processor seconds | ms per job | peak MB |\n|---|---|---|---|---|---|")
    for name in parser.parse_args().plans:
        done = plan(name)
        each = 1000 * done.processor / max(done.jobs, 1)
        numbers = f"{done.jobs:,} | {done.seconds:.1f} | {done.processor:.1f} | {each:.1f} | {done.megabytes:.0f}"
        print(f"| {PLANS[name]} | {numbers} |", flush=True)


if __name__ == "__main__":
    main()
