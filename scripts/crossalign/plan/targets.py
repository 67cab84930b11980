"""The targets of the workflow as jobs, and which of these jobs are still to be done."""

import re
from collections.abc import Callable, Iterable, Mapping

from crossalign.plan.jobs import Job, Jobs
from crossalign.runtime.errors import UserError

PAPERS = {"align_predict": "align-predict", "anc": "anc", "adjust": "adjust", "talk": "talk"}
TARGETS = ("all", *PAPERS, "grid", "data", "download")


def items_of(jobs: Jobs, target: str) -> list[str]:
    """The tables and figures behind a target: a rule's name, an item's, or a file of an item."""
    items = list(jobs.catalog.items)
    if target in ("all", "data", "download", f"{jobs.results}/report/index.html"):
        return items
    if target in PAPERS:
        return [item for item in items if item.startswith(f"{PAPERS[target]}/")]
    named = re.fullmatch(rf"(?:{re.escape(jobs.results)}/(?:tables|figures)/)?([\w-]+/\w+)(?:\.\w+)?", target)
    item = "align-predict/table3" if target == "grid" else named[1] if named else ""
    if item in items:
        return [item]
    raise UserError(
        f"unknown target '{target}': the plan knows {', '.join(TARGETS)}, and tables and figures that the config "
        "chooses, such as align-predict/table1"
    )


def wanted(jobs: Jobs, targets: Iterable[str]) -> list[str]:
    """Add the jobs of the targets, and name those that make the targets themselves."""
    found: dict[str, None] = {}
    for target in targets:
        items = items_of(jobs, target)
        if target in ("data", "download"):
            names = _data(jobs, items) if target == "data" else _downloads(jobs, items)
        elif target == "all" or target.endswith("/report/index.html"):
            names = [*map(jobs.item, items), jobs.page()]
        else:
            names = [jobs.item(item) for item in items]
        found |= dict.fromkeys(names)
    return list(found)


def _downloads(jobs: Jobs, items: list[str]) -> list[str]:
    models = [name for model in jobs.catalog.models(items) for name in jobs.published(model)]
    return [*map(jobs.file, jobs.catalog.files(items)), *models]


def _data(jobs: Jobs, items: list[str]) -> list[str]:
    study = jobs.config["adjust"]["aggregations"]
    names = []
    for data in sorted(jobs.catalog.sets(items)):
        names.append(jobs.prepared(data))
        if data.kind == "bitext":
            names.append(jobs.links(data))
            if data.languages == (study["lang"],) and "subword" in study["values"]:
                names.append(jobs.links(data, pieces=True))
    names += [jobs.vocabulary(name) for name in jobs.catalog.vocabularies(items)]
    return names + [name for model in jobs.catalog.models(items) for name in jobs.published(model)]


def remaining(jobs: Mapping[str, Job], targets: Iterable[str], exists: Callable[[str], bool]) -> set[str]:
    """The jobs that would run, as far as existing files tell.

    As Snakemake sees it: a target that is missing is made; what a running job reads is made where it is missing; what
    depends on a running job is made again. A file that is gone but that no running job reads is not missed.
    """
    dependants: dict[str, list[str]] = {}
    for job in jobs.values():
        for need in job.needs:
            dependants.setdefault(need, []).append(job.name)
    absent = {name for name, job in jobs.items() if not all(map(exists, job.outputs))}
    queue = [name for name in targets if name in absent]
    found = set(queue)
    while queue:
        name = queue.pop()
        before = [need for need in jobs[name].needs if need in absent]
        new = {*before, *dependants.get(name, ())} - found
        found |= new
        queue += sorted(new)
    return found
