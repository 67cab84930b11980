"""Judge the papers' findings by a run: its tidy frames in, findings.csv and findings.json out.

The frames are those of gather_results.py. A run need not be finished: findings without results are told as not run.

Example:
    python scripts/make_findings.py --config results/demo/config.json --results results/demo
"""

from crossalign.papers.all_findings import judge_run, read_frames
from crossalign.papers.common.command import config_of, run_parser
from crossalign.results.findings.files import write_findings
from crossalign.runtime.errors import run_main


def main() -> None:
    """Read, judge, write, count."""
    args = run_parser(__doc__, "findings.csv, and .json beside it; default: in --results").parse_args()
    judged = judge_run(config_of(args), read_frames(args.results))
    for verdict, count in write_findings(judged, args.out or args.results / "findings.csv").items():
        print(f"{verdict}: {count}")


if __name__ == "__main__":
    run_main(main)
