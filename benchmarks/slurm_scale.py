"""How fast SLURM gets the jobs of a plan: the workflow's rules, dependencies, groups and profile; the jobs do nothing.

The plans are those of benchmarks/plan.py, or some number of jobs that do not wait for each other. A submission is
replaced on its way by one that only makes its files, as if the nodes were elsewhere: on a small machine their
two starts of Snakemake would be measured instead. --whole leaves submissions as they are.

Starts the SLURM of the tests (tests/slurm) on the loopback interface; --partition names one of the SLURM that is here.
Prints one Markdown row: time until the first submission, from the first to the last, of the whole run, and what
Snakemake needed.

Usage: python benchmarks/slurm_scale.py PLAN [--jobs 1000] [--rate 10/1s] [--runs-per-job 1] [--whole]
PLAN is paper, seeds, languages, or a number.
"""

import argparse
import contextlib
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

import yaml
from common import ROOT, cost_of, new_parser, print_table

sys.path.insert(1, str(ROOT))

from tests.slurm.cluster import Cluster, missing
from tests.slurm.settings import ACCOUNT, PARTITION

from crossalign.catalog.config import load
from crossalign.catalog.layers import merge
from crossalign.papers.all_items import catalog_of
from crossalign.plan.jobs import planned
from plan import PLANS, changes

# Stands before SLURM's own: notes the time, and asks for the files instead of the work.
SBATCH = """\
#!/bin/sh
date +%s.%N >> '{journal}'
[ -n '{whole}' ] && exec '{real}' "$@"
files=$(grep -oE '[a-z_]+:number=[0-9]+' | sed 's/:number=/\\//; s/^/done\\//')
printf '#!/bin/sh\\ntouch %s\\n' "$(echo $files)" | exec '{real}' "$@"
"""


def parse_args() -> argparse.Namespace:
    """The command line."""
    parser = new_parser(__doc__)
    parser.add_argument("plan", help=f"{', '.join(PLANS)}, or a number of jobs")
    parser.add_argument("--jobs", type=int, default=1000, help="submissions that wait or run at the same time")
    parser.add_argument("--rate", default="10/1s", help="submissions per time, as in the profile; 0: no limit")
    parser.add_argument("--runs-per-job", type=int, default=1, help="group-components: run=")
    parser.add_argument("--whole", action="store_true", help="jobs start Snakemake, as they do in earnest")
    parser.add_argument("--partition", help="a partition of the SLURM that is here, instead of a test cluster")
    parser.add_argument("--account", help="the account to name there")
    args = parser.parse_args()
    if args.plan not in PLANS and not args.plan.isdigit():
        parser.error(f"PLAN is {', '.join(PLANS)} or a number, not {args.plan}")
    return args


def make_plan(name: str) -> dict[str, list[list[str]]]:
    """For every rule the jobs that each of its jobs waits for, as rule/number. Downloads are taken as done."""
    if name.isdigit():
        return {"work": [[] for _ in range(int(name))]}
    config = load([])
    merge(config, changes(name))
    graph = planned(catalog_of(config))
    plan: dict[str, list[list[str]]] = {}
    names: dict[str, str] = {}
    for job in graph.jobs.values():
        if not job.rule.startswith("download_"):
            plan.setdefault(job.rule, []).append([])
            names[job.name] = f"{job.rule}/{len(plan[job.rule]) - 1}"
    for job, name in names.items():
        rule, number = name.split("/")
        plan[rule][int(number)] = sorted(names[need] for need in graph.needs[job] if need in names)
    return plan


def fill_in(folder: Path, args: argparse.Namespace, accounting: bool) -> None:
    """The workflow's own profile with the settings that are measured."""
    profile = yaml.safe_load((ROOT / "profiles" / "slurm" / "config.yaml").read_text(encoding="utf-8"))
    resources = profile["default-resources"]
    resources |= {"slurm_partition": args.partition or PARTITION, "slurm_account": args.account or ACCOUNT}
    if not accounting:
        del resources["slurm_account"], profile["slurm-efficiency-report"]
    profile |= {"jobs": args.jobs, "max-jobs-per-timespan": args.rate, "quiet": ["rules", "progress"]}
    profile["group-components"] = [f"run={args.runs_per_job}", "prepare=20"]
    if args.rate == "0":
        del profile["max-jobs-per-timespan"]
    (folder / "profile").mkdir()
    (folder / "profile" / "config.yaml").write_text(yaml.safe_dump(profile, sort_keys=False), encoding="utf-8")


def measure(folder: Path, args: argparse.Namespace, environment: dict[str, str], accounting: bool) -> None:
    """Run the plan and print what it took."""
    plan, journal = make_plan(args.plan), folder / "journal"
    (folder / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    fill_in(folder, args, accounting)
    for rule in plan:
        (folder / "done" / rule).mkdir(parents=True)
    before = folder / "bin"
    before.mkdir()
    real = shutil.which("sbatch", path=environment["PATH"])
    script = SBATCH.format(journal=journal, real=real, whole="yes" if args.whole else "")
    (before / "sbatch").write_text(script, encoding="utf-8")
    (before / "sbatch").chmod(0o755)
    shims = ROOT / "profiles" / "slurm" / "bin"
    path = os.pathsep.join([str(before), str(shims), str(Path(sys.executable).parent), environment["PATH"]])
    environment = environment | {"PATH": path, "CROSSALIGN_SLURM_CONF": environment.get("SLURM_CONF", "")}
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "benchmarks" / "slurm_scale.snakefile")]
    command += ["--directory", str(folder), "--profile", str(folder / "profile")]
    output = folder / "output"
    started, count = time.time(), sum(map(len, plan.values()))
    cost = cost_of(command, output, environment)
    made = sum(1 for file in folder.glob("done/*/*"))
    if made != count:
        sys.exit(f"{output.read_text(encoding='utf-8')[-5000:]}\nerror: {made} of {count} jobs are done")
    times = [float(line) for line in journal.read_text().split()]
    span = max(times[-1] - times[0], 1e-9)
    header = ["plan", "jobs", "submissions", "s before the first", "s to the last", "per minute"]
    numbers = [f"{times[0] - started:.0f}", f"{span:.0f}", f"{60 * (len(times) - 1) / span:.0f}", *cost.columns()]
    row = [PLANS.get(args.plan, args.plan), f"{count:,}", f"{len(times):,}", *numbers]
    print_table([*header, "s in all", "CPU s", "peak MB"], [row])


def main() -> None:
    """Choose a SLURM and measure."""
    args = parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the cluster is taken down
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        if args.partition:
            measure(folder, args, dict(os.environ), accounting=args.account is not None)
            return
        if absent := missing(accounting=True):
            sys.exit(f"error: no SLURM: {', '.join(absent)} not installed (.ci/install-system-packages)")
        cluster = stack.enter_context(Cluster(nodes=4, cpus=256))
        measure(folder, args, cluster.environment, accounting=True)


if __name__ == "__main__":
    main()
