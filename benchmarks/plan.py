"""How long planning takes: a dry run of everything at paper scale, and with ten times as many seeds.

Prints one Markdown row per plan: seeds, jobs, seconds, peak memory. Usage: python benchmarks/plan.py [--seeds 5 50]
"""

import argparse
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent


def plan(seeds: int) -> tuple[int, float, float]:
    """Jobs, seconds and megabytes of a dry run with that many seeds."""
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "seeds.yaml"
        config.write_text(yaml.safe_dump({"run": "plan-benchmark", "seeds": list(range(1, seeds + 1))}))
        command = [sys.executable, "-m", "snakemake", "--dry-run", "--quiet", "rules", "--cores", "1"]
        command += ["--snakefile", str(ROOT / "Snakefile"), "--directory", folder, "--configfile", str(config)]
        start = time.perf_counter()
        done = subprocess.run([*command, "--", "all"], capture_output=True, text=True)
        seconds = time.perf_counter() - start
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    jobs = re.search(r"^total\s+(\d+)", done.stdout + done.stderr, flags=re.MULTILINE)
    megabytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return int(jobs[1]) if jobs else 0, seconds, megabytes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[5, 50], help="numbers of seeds to plan for")
    args = parser.parse_args()
    print("| seeds | jobs | seconds | ms per job | peak MB |\n|---|---|---|---|---|")
    for seeds in args.seeds:
        jobs, seconds, megabytes = plan(seeds)
        print(
            f"| {seeds} | {jobs} | {seconds:.1f} | {1000 * seconds / max(jobs, 1):.1f} | {megabytes:.0f} |", flush=True
        )


if __name__ == "__main__":
    main()
