"""Make the page of a run: tables, figures, verdicts and findings in, one self-contained HTML file out.

What was not made yet is shown with the command that makes it. provenance.json is written beside the page.

Example:
    python scripts/make_report.py --config results/demo/config.json --results results/demo --out page.html
"""

from crossalign.papers.common.command import config_of, run_parser
from crossalign.report.findings import counted
from crossalign.report.gather import gather
from crossalign.report.page import page, write_page
from crossalign.report.provenance import full_record
from crossalign.runtime.errors import run_main
from crossalign.runtime.files import write_json


def main() -> None:
    """Gather, write, count."""
    args = run_parser(__doc__, "results/<run>/report/index.html", required=True).parse_args()
    report = gather(config_of(args), args.results, args.out)
    known = [entry.provenance for entry in report.entries]
    record = full_record(known, args.results, report.checksums, report.commit, report.config)
    write_json(args.out.with_name("provenance.json"), record, indent=1, ensure_ascii=False)
    write_page(page(report), args.out)
    print(f"findings: {', '.join(counted(report.findings).values()) or 'none'}")
    part = f", {report.states['in part']} in part" if report.states["in part"] else ""
    print(f"tables and figures: {report.states['made']} of {len(report.entries)} made{part}")
    print(f"page: {args.out}")


if __name__ == "__main__":
    run_main(main)
