"""What the run has taken, stage by stage, folded away on the first screen."""

from crossalign.plan.measured import Measured, Spent, remarks
from crossalign.report.escape import text


def time_by_stage(measured: Measured) -> str:
    """The time of all jobs, with a table of the stages; empty where nothing was measured."""
    if not measured.stages:
        return ""
    total = measured.total()
    told = f"{minutes(total.seconds)} min of {total.jobs:,} jobs"
    if total.clock is not None:
        told = f"{minutes(total.clock)} min of the {measured.unit} ({told})"
    heads = ("stage", "jobs", "job-minutes", f"{measured.unit}-minutes")
    head = "".join(f'<th scope="col">{text(name)}</th>' for name in heads)
    rows = "".join(row(stage, spent) for stage, spent in [*measured.stages.items(), ("all", total)])
    return (
        f'{text(told)}<details class="fold"><summary>By stage</summary><table class="plain">'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        f'<p class="muted">{text(" ".join(remarks(measured)))}</p></details>'
    )


def row(stage: str, spent: Spent) -> str:
    """One stage."""
    clock = "" if spent.clock is None else minutes(spent.clock)
    cells = "".join(f"<td>{cell}</td>" for cell in (f"{spent.jobs:,}", minutes(spent.seconds), clock))
    return f'<tr><th scope="row">{text(stage)}</th>{cells}</tr>'


def minutes(seconds: float) -> str:
    """With one digit."""
    return f"{seconds / 60:,.1f}"
