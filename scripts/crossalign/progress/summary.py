"""The words at the end of a run: what held, what did not, and why, in three lines."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from crossalign.papers.all_items import PAPERS
from crossalign.report.claims import JUDGED, Claim, facts, read_claims
from crossalign.results.claims.claim import FAILS, HOLDS, NOT_RUN, UNCHECKED, UNCLEAR

LONGEST = 100


def summary(results: Path) -> Iterator[str]:
    """Three lines on the claims of a finished run; nothing where they were not judged."""
    if (results / "claims.csv").is_file():
        yield from verdict_lines(facts(read_claims(results)))


def verdict_lines(claims: Sequence[Claim]) -> Iterator[str]:
    """What held, what did not, and why."""
    counts = Counter(claim.verdict for claim in claims)
    judged = sum(counts[verdict] for verdict in JUDGED)
    if not judged:
        yield "Held:     no claim could be judged"
        return
    held = f" ({by_paper(claims, HOLDS)})" if counts[HOLDS] else ""
    yield f"Held:     {counts[HOLDS]} of the {judged} claims that this run can judge{held}"
    failed = [claim for claim in claims if claim.verdict == FAILS]
    example = f" ({by_paper(claims, FAILS)}), for example {finding(failed[0])}" if failed else ""
    yield f"Did not:  {counts[FAILS]}{example}"
    yield f"Why:      {reasons(claims, counts)}"


def by_paper(claims: Sequence[Claim], verdict: str) -> str:
    """How many claims of each paper have a verdict."""
    found = Counter(claim.paper for claim in claims if claim.verdict == verdict)
    return ", ".join(f"{paper} {found[paper]}" for paper in PAPERS if found[paper])


def finding(claim: Claim) -> str:
    """A claim that did not hold, without the number in brackets behind it, and what was found instead."""
    words = claim.claim.rpartition(" (")[0] if claim.claim.endswith(")") else claim.claim
    return f"“{short(words)}”" + (f": here {short(claim.measured)}" if claim.measured else "")


def short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1].rstrip()}…"


def reasons(claims: Sequence[Claim], counts: Counter[str]) -> str:
    """Why claims were not judged at all; why others did not hold is a long story, which the page tells."""
    said = []
    if counts[UNCLEAR]:
        said.append(f"{counts[UNCLEAR]} unclear (within the noise)")
    if counts[NOT_RUN]:
        said.append(f"{counts[NOT_RUN]} not run")
    details = [claim.detail for claim in claims if claim.verdict == UNCHECKED]
    unlearnt = [detail for detail in details if detail.startswith("not learnt")]
    if unlearnt:
        said.append(f"{len(unlearnt)} on tasks that the models have not learnt")
    if others := Counter(detail.removeprefix("not judged: ") for detail in details if detail not in unlearnt):
        said.append(f"{others.total()} cannot be checked here (mostly: {short(others.most_common(1)[0][0])})")
    return "; ".join(["the page has the numbers beside each claim", *said])
