"""What a failed job was for, and the three lines on the claims at the end of a run.

Slow to load: the catalog and the claims come with it. A run needs it when something has happened.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from crossalign.papers.all_items import PAPERS, catalog_of
from crossalign.papers.common.command import read_config
from crossalign.plan.jobs import planned
from crossalign.progress.words import item_words
from crossalign.report.claims import JUDGED, Claim, facts, read_claims
from crossalign.results.claims.claim import FAILS, HOLDS, NOT_RUN, UNCHECKED, UNCLEAR
from crossalign.runtime.errors import UserError

ITEMS = 3
LONGEST = 100


def needed_for(config: Path, outputs: set[str]) -> str:
    """The tables and figures that need one of some files, in words; empty where there are none."""
    items = items_behind(config, outputs)
    more = f" and {len(items) - ITEMS} more" if len(items) > ITEMS else ""
    return ", ".join(map(item_words, items[:ITEMS])) + more


def items_behind(config: Path, outputs: set[str]) -> list[str]:
    """The tables and figures of a run that need one of some files; none where that cannot be worked out."""
    try:
        catalog = catalog_of(read_config(config))
        graph = planned(catalog)
    except (UserError, KeyError):
        return []
    makers = {graph.maker[file] for file in outputs if file in graph.maker}

    @cache
    def needs(name: str) -> bool:
        return name in makers or any(map(needs, graph.needs[name]))

    items = {job.subject: name for name, job in graph.jobs.items() if job.rule in ("make_table", "make_figure")}
    return [item for item in catalog.items if makers and needs(items[item])]


def summary(results: Path) -> Iterator[str]:
    """What held, what did not, and why; nothing where the claims were not judged."""
    if not (results / "claims.csv").is_file():
        return
    claims = facts(read_claims(results))
    counts = Counter(claim.verdict for claim in claims)
    judged = sum(counts[verdict] for verdict in JUDGED)
    if not judged:
        yield "Held:     no claim could be judged"
        return
    yield f"Held:     {counts[HOLDS]} of the {judged} claims that this run can judge{by_paper(claims, HOLDS)}"
    failed = [claim for claim in claims if claim.verdict == FAILS]
    example = f"{by_paper(claims, FAILS)}, for example {finding(failed[0])}" if failed else ""
    yield f"Did not:  {counts[FAILS]}{example}"
    yield f"Why:      {reasons(claims, counts)}"


def by_paper(claims: Sequence[Claim], verdict: str) -> str:
    """How many claims of each paper have a verdict, in brackets; empty where none has."""
    counts = Counter(claim.paper for claim in claims if claim.verdict == verdict)
    return f" ({', '.join(f'{paper} {counts[paper]}' for paper in PAPERS if counts[paper])})" if counts else ""


def finding(claim: Claim) -> str:
    """A claim that did not hold, without the number in brackets behind it, and what was found instead."""
    words = claim.claim.rpartition(" (")[0] if claim.claim.endswith(")") else claim.claim
    return f"“{short(words)}”" + (f": here {short(claim.measured)}" if claim.measured else "")


def short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1].rstrip()}…"


def reasons(claims: Sequence[Claim], counts: Counter[str]) -> str:
    """Why claims were not judged at all; why others did not hold is a long story, which the page tells."""
    said = ["the page has the numbers beside each claim"]
    if counts[UNCLEAR]:
        said.append(f"{counts[UNCLEAR]} unclear (within the noise)")
    if counts[NOT_RUN]:
        said.append(f"{counts[NOT_RUN]} not run")
    details = [claim.detail for claim in claims if claim.verdict == UNCHECKED]
    others = [detail.removeprefix("not judged: ") for detail in details if not detail.startswith("not learnt")]
    if unlearnt := len(details) - len(others):
        said.append(f"{unlearnt} on what the models have not learnt")
    if others:
        mostly = Counter(others).most_common(1)[0][0]
        said.append(f"{len(others)} cannot be checked here (mostly: {short(mostly)})")
    return "; ".join(said)
