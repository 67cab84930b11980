"""How long planning takes: a dry run of everything at paper scale, with 50 seeds, and with 50 seeds and 30 languages.

Prints one Markdown row per plan: jobs, seconds by the clock and of the processor, peak memory.
Usage: python benchmarks/plan.py [--plans paper seeds languages]
"""

import os
import re
import sys
import tempfile
from pathlib import Path

import yaml
from common import ROOT, Cost, cost_of, new_parser, print_row, print_table

# Languages that the study of layers does not have, with a treebank that can be planned for; the last is a stand-in.
MORE = {
    "fo": "fo_oft", "pcm": "pcm_nsc", "gsw": "gsw_uzh", "bm": "bm_crb", "wo": "wo_wtb", "qaf": "qaf_arabizi",
    "mt": "mt_mudt", "bxr": "bxr_bdt", "myv": "myv_jr", "olo": "olo_kkpp", "ug": "ug_udt", "vi": "en_lines",
}  # fmt: skip
PLANS = {"paper": "the papers", "seeds": "50 seeds", "languages": "50 seeds, 30 languages"}


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


def plan(name: str) -> tuple[int, Cost]:
    """Dry-run a plan in a process of its own, whose memory can be told from that of the others: jobs, and the cost."""
    with tempfile.TemporaryDirectory() as folder:
        config, output = Path(folder) / "changes.yaml", Path(folder) / "output"
        config.write_text(yaml.safe_dump(changes(name)), encoding="utf-8")
        command = [sys.executable, "-m", "snakemake", "--dry-run", "--quiet", "rules", "--cores", "1"]
        command += ["--snakefile", str(ROOT / "Snakefile"), "--directory", folder, "--configfile", str(config)]
        cost = cost_of([*command, "--", "all"], output, dict(os.environ))
        jobs = re.search(r"^total\s+(\d+)", output.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return int(jobs[1]) if jobs else 0, cost


def main() -> None:
    """Print a table."""
    parser = new_parser(__doc__)
    parser.add_argument("--plans", nargs="+", choices=PLANS, default=list(PLANS), help="what to plan")
    names = parser.parse_args().plans
    print_table(["plan", "jobs", "seconds", "processor seconds", "peak MB", "ms per job"])
    for name in names:
        jobs, cost = plan(name)
        print_row([PLANS[name], f"{jobs:,}", *cost.columns(), f"{1000 * cost.cpu / max(jobs, 1):.1f}"])


if __name__ == "__main__":
    main()
